"""The watcher's clock and its ticks."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from fakes.log import FakeLog
from sluice.events import TickEvent, UnmanagedEvent
from sluice_watcher.clock import Clock
from sluice_watcher.publisher import Publisher
from sluice_watcher.ticker import Ticker
from sluice_watcher.unmanaged import Sum, UnmanagedReport


def test_time_never_goes_backwards() -> None:
    wall = iter([10.0, 12.5, 11.0, 12.5004, 13.0])
    clock = Clock(lambda: next(wall))
    assert [clock.now_ms() for _ in range(5)] == [10_000, 12_500, 12_500, 12_500, 13_000]


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


class World:
    """A ticker, and sums of unmanaged pods that tests set."""

    def __init__(self) -> None:
        self.log = FakeLog()
        self.sums = {("one", "gpu"): Sum()}
        clock = Clock(lambda: 1.0)
        self.publisher = Publisher(
            self.log,
            topic="t",
            partitions={"one": 0, "two": 1},
            source="test",
            clock=clock,
            set_aside=lambda event, value: None,
        )
        self.report = UnmanagedReport(
            lambda: dict(self.sums), cluster="c", clock=clock, publisher=self.publisher
        )
        self.ticker = Ticker(
            cluster="c", cells=("one", "two"), clock=clock, publisher=self.publisher, unmanaged=self.report
        )

    async def published(self) -> tuple[list[object], list[object]]:
        running = asyncio.create_task(self.publisher.run())
        await self.publisher.flushed()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        return tuple([*self.log.events("t", partition)] for partition in (0, 1))  # type: ignore[return-value]


TICK = TickEvent(time_ms=1000, cluster="c")


def unmanaged(pods: int, cpu: int) -> UnmanagedEvent:
    requests = {"cpu": cpu} if cpu else {}
    return UnmanagedEvent(time_ms=1000, cluster="c", more=True, pool="gpu", pods=pods, requests=requests)


async def test_a_tick_goes_to_every_cell() -> None:
    world = World()
    world.report.publish_changes()
    world.ticker.tick()
    one, two = await world.published()
    assert (one, two) == ([unmanaged(0, 0), TICK], [TICK])


async def test_sums_go_out_with_a_tick_when_they_changed() -> None:
    world = World()
    world.ticker.tick()
    world.ticker.tick()
    world.sums = {("one", "gpu"): Sum(pods=2, requests={"cpu": 5})}
    world.ticker.tick()
    world.ticker.tick()
    one, _ = await world.published()
    assert [e for e in one if isinstance(e, UnmanagedEvent)] == [unmanaged(0, 0), unmanaged(2, 5)]


async def test_all_sums_go_out_after_a_list() -> None:
    world = World()
    world.ticker.tick()
    world.report.publish_all()
    world.ticker.tick()
    one, _ = await world.published()
    assert [e for e in one if isinstance(e, UnmanagedEvent)] == [unmanaged(0, 0), unmanaged(0, 0)]
