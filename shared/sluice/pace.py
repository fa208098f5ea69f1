"""How long a loop that hands on batches gathers before the next one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

#: So many records lengthen the pause by its whole length, up to the longest.
_MANY: Final = 6
_LONGEST: Final = 4
#: So many small batches go one right after the other. Within the shortest pause as many more may go as that could have
#: been cut into.
_AT_ONCE: Final = 8
_PARTS: Final = 4


class Pace:
    """A batch costs the broker, and everybody behind it, as much for one record as for dozens.

    A few records are handed on at once, and so are those behind them, as long as they stay few. While batch after batch
    brings many, it pays to wait for those behind them.
    """

    def __init__(self, least_s: float, now_s: Callable[[], float], *, full: float = math.inf) -> None:
        self._least_s = least_s
        self._now_s = now_s
        self._full = full
        self._before = 0
        self._at_once: float = _AT_ONCE
        self._counted_s = now_s()

    def pause_s(self, count: int) -> float:
        """After a batch of so many; none after a full one, behind which the next has gathered already."""
        steady, self._before = min(count, self._before), count
        if not self._least_s or count >= self._full or self._goes_on_at_once(count):
            return 0.0
        return self._least_s * min(_LONGEST, max(1, steady // _MANY))

    def _goes_on_at_once(self, count: int) -> bool:
        """Whether batches have been small, and not too many of late. A large one is the beginning of a stream."""
        now_s = self._now_s()
        more = (now_s - self._counted_s) / self._least_s * _PARTS
        self._counted_s = now_s
        self._at_once = min(_AT_ONCE, self._at_once + more) if count < _MANY else 0.0
        if self._at_once < 1:
            return False
        self._at_once -= 1
        return True
