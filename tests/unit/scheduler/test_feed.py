"""Records on their way from Faust to the owners of cells: one owner never holds up the rest."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP
from sluice.settings import Settings
from sluice_scheduler.feed import FEED_MAX, GO_ON_AT, HOLD_AT, FaustFeed, Owners
from sluice_scheduler.ports import Feed

SETTINGS = Settings(cells={"left": 0, "right": 1})
BOTH = {TP(SETTINGS.events_topic, partition) for partition in (0, 1)}


class Faust:
    """What a feed asks of Faust, and what Faust is told that it may commit."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.acknowledged: list[int] = []

    def hold(self) -> None:
        self.asked.append("hold")

    def go_on(self) -> None:
        self.asked.append("go on")

    def acknowledge(self, first: int, end: int) -> None:
        self.acknowledged += range(first, end)

    def event(self, offset: int, partition: int = 0) -> Any:
        message = SimpleNamespace(
            partition=partition, offset=offset, key=b"", value=bytes(100), headers=[("a", b"b")]
        )
        return SimpleNamespace(message=message, ack=lambda: self.acknowledged.append(offset))


class Reader:
    """An owner that does nothing but read, unless it is told to hang."""

    missing = ""
    hangs: frozenset[str] = frozenset()

    def __init__(self, *, cell: str, feed: Feed) -> None:
        self.cell = cell
        self.feed = feed
        self.offsets: list[int] = []
        self.has_ended = False

    async def run(self) -> None:
        try:
            while True:
                if self.cell in self.hangs:
                    await asyncio.sleep(3600)
                batch = await self.feed.take(500)
                self.offsets += [incoming.received.offset for incoming in batch]
                for incoming in batch:
                    incoming.acknowledge()
        finally:
            self.has_ended = True


class Worker:
    """Owners, and the one agent that feeds them."""

    def __init__(self) -> None:
        self.owned: list[Reader] = []
        self.faust = Faust()
        self.owners = Owners(SETTINGS, self.own)

    def own(self, **details: Any) -> Reader:
        self.owned.append(Reader(**details))
        return self.owned[-1]

    async def put(self, partition: int, *offsets: int) -> None:
        async with asyncio.timeout(30):
            for offset in offsets:
                await self.owners.put(self.faust.event(offset, partition))


@pytest.fixture
async def worker(monkeypatch: pytest.MonkeyPatch) -> Worker:
    monkeypatch.setattr(Reader, "hangs", frozenset({"left"}))
    return Worker()


async def settle() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


# ---- the owners


async def test_a_partition_that_is_taken_away_with_a_backlog_is_read_when_it_comes_back(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.owners.assigned(BOTH)
    await settle()
    agent = asyncio.create_task(worker.put(0, *range(FEED_MAX + 10_000)))
    await settle()
    await worker.owners.revoked(BOTH)
    monkeypatch.setattr(Reader, "hangs", frozenset())
    await worker.owners.assigned(BOTH)
    await asyncio.wait_for(agent, 5)
    await worker.put(0, *range(700, 2_000))  # Faust begins again at what was committed
    await settle()
    assert worker.owned[-2].offsets == list(range(700, 2_000))
    assert worker.owned[0].offsets == []


@pytest.mark.parametrize("rounds", [1, 5])
async def test_it_may_be_taken_away_and_given_back_again_and_again(worker: Worker, rounds: int) -> None:
    for _ in range(rounds):
        await worker.owners.assigned(BOTH)
        await worker.put(0, *range(FEED_MAX + 1))
        await worker.put(1, *range(1_000))
        await settle()
        assert worker.owned[-1].offsets == list(range(1_000))
        await worker.owners.revoked(BOTH)
    assert all(owner.has_ended or owner.cell == "left" for owner in worker.owned)
    assert len(worker.owned) == 2 * rounds


async def test_a_slow_owner_does_not_hold_up_another(worker: Worker) -> None:
    await worker.owners.assigned(BOTH)
    for offset in range(3 * FEED_MAX):
        await worker.put(0, offset)
        await worker.put(1, offset)
        if offset % 100 == 0:
            await asyncio.sleep(0)
    await settle()
    assert worker.owned[1].offsets == list(range(3 * FEED_MAX))


async def test_what_is_assigned_twice_has_one_owner(worker: Worker) -> None:
    await worker.owners.assigned(BOTH)
    await settle()
    await worker.owners.assigned(BOTH)
    await settle()
    assert [owner.has_ended for owner in worker.owned] == [True, True, False, False]


async def test_an_owner_that_has_ended_holds_nobody_up(worker: Worker) -> None:
    class Broken(Reader):
        async def run(self) -> None:
            raise RuntimeError("broken")

    worker.owners._own = Broken
    await worker.owners.assigned(BOTH)
    await settle()
    await worker.put(0, *range(2 * FEED_MAX))
    with pytest.raises(RuntimeError, match="broken"):
        await worker.owners.failed


# ---- one feed


async def test_records_come_in_order_and_are_acknowledged_in_order() -> None:
    """What does not fit is passed over: its last record is delivered, and stands for all of it."""
    faust = Faust()
    feed = FaustFeed(faust)
    for offset in range(FEED_MAX + 1_000):
        feed.put(faust.event(offset))
    taken: list[int] = []
    while len(taken) <= FEED_MAX:
        batch = await feed.take(700)
        taken += [incoming.received.offset for incoming in batch]
        for incoming in batch:
            incoming.acknowledge()
    assert taken == [*range(FEED_MAX), FEED_MAX + 999]
    assert faust.acknowledged == list(range(FEED_MAX + 1_000))
    feed.put(faust.event(FEED_MAX + 1_000))
    assert [incoming.received.offset for incoming in await feed.take(700)] == [FEED_MAX + 1_000]


async def test_what_comes_behind_records_that_were_passed_over_comes_behind_them() -> None:
    faust = Faust()
    feed = FaustFeed(faust)
    for offset in range(FEED_MAX + 10):
        feed.put(faust.event(offset))
    await feed.take(500)  # there is room now, but these must not overtake the ten
    for offset in range(FEED_MAX + 10, FEED_MAX + 20):
        feed.put(faust.event(offset))
    taken = [incoming.received.offset for incoming in await feed.take(2 * FEED_MAX)]
    assert taken == [*range(500, FEED_MAX), FEED_MAX + 19]


async def test_faust_is_asked_to_wait_before_the_feed_is_full_and_to_go_on_before_it_is_empty() -> None:
    faust = Faust()
    feed = FaustFeed(faust)
    for offset in range(HOLD_AT - 1):
        feed.put(faust.event(offset))
    assert faust.asked == []
    feed.put(faust.event(HOLD_AT))
    assert faust.asked == ["hold"]
    await feed.take(HOLD_AT - GO_ON_AT - 1)
    assert faust.asked == ["hold"]
    await feed.take(1)
    assert faust.asked == ["hold", "go on"]
    await feed.take(1)
    assert faust.asked == ["hold", "go on"]
