"""Time as records: the scheduler's core has no clock."""

from __future__ import annotations

import asyncio

from sluice.events import TickEvent

from sluice_watcher.clock import Clock
from sluice_watcher.publisher import Publisher
from sluice_watcher.unmanaged import UnmanagedReport


class Ticker:
    def __init__(
        self,
        *,
        cluster: str,
        cells: tuple[str, ...],
        clock: Clock,
        publisher: Publisher,
        unmanaged: UnmanagedReport,
    ) -> None:
        self._cluster = cluster
        self._cells = cells
        self._clock = clock
        self._publisher = publisher
        self._unmanaged = unmanaged

    async def run(self) -> None:
        """A tick a second; those that are missed (the process stood still) are not made up for."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self.tick()
            due = max(due + 1, loop.time())
            await asyncio.sleep(due - loop.time())

    def tick(self) -> None:
        self._unmanaged.publish_changes()
        tick = TickEvent(time_ms=self._clock.now_ms(), cluster=self._cluster)
        for cell in self._cells:
            self._publisher.put(cell, tick)
