"""How long a loop that hands on batches gathers before the next one."""

from __future__ import annotations

import math
from typing import Final

#: So many records lengthen the pause by its whole length, up to the longest.
_MANY: Final = 6
_LONGEST: Final = 4


class Pace:
    """A batch costs the broker, and everybody behind it, as much for one record as for dozens.

    One record after another is handed on soon; while batch after batch brings many, it pays to wait for those
    behind them.
    """

    def __init__(self, least_s: float, *, full: float = math.inf) -> None:
        self._least_s = least_s
        self._full = full
        self._before = 0

    def pause_s(self, count: int) -> float:
        """After a batch of so many; none after a full one, behind which the next has gathered already."""
        steady, self._before = min(count, self._before), count
        return 0.0 if count >= self._full else self._least_s * min(_LONGEST, max(1, steady // _MANY))
