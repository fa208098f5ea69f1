"""The time that records carry."""

from __future__ import annotations

import time
from collections.abc import Callable


class Clock:
    """Wall-clock milliseconds that never go backwards within the process."""

    def __init__(self, wall_s: Callable[[], float] = time.time) -> None:
        self._wall_s = wall_s
        self._latest_ms = 0

    def now_ms(self) -> int:
        self._latest_ms = max(self._latest_ms, int(self._wall_s() * 1000))
        return self._latest_ms
