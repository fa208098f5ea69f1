"""How long to wait before another attempt."""

from __future__ import annotations

from random import Random
from typing import Final

FIRST_DELAY_S: Final = 0.25
LONGEST_DELAY_S: Final = 8.0


class Backoff:
    """Delays that double up to a bound, each shortened by up to half so that watchers don't come in step."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._next_s = FIRST_DELAY_S

    def delay_s(self, at_least_s: float | None = None) -> float:
        """The delay before the next attempt; no shorter than what the server asked for."""
        delay_s = self._next_s * self._random.uniform(0.5, 1.0)
        self._next_s = min(2 * self._next_s, LONGEST_DELAY_S)
        return max(delay_s, at_least_s or 0.0)

    def reset(self) -> None:
        self._next_s = FIRST_DELAY_S
