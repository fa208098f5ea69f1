"""A clock whose sleeps take no time but its own."""

from __future__ import annotations

import asyncio


class FakeClock:
    def __init__(self, now_ms: int = 1_000_000) -> None:
        self._now_ms = now_ms
        self.pauses_s: list[float] = []

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._now_ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.pauses_s.append(seconds)
        self._now_ms += round(seconds * 1000)
        await asyncio.sleep(0)
