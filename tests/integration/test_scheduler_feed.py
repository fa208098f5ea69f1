"""Records of a real Kafka through a real Faust worker to the owners of two cells, one of which is stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from kafka import KafkaConsumer, TopicPartition
from sluice.codec import Message
from sluice.kafka import LogWriter, client_options, ensure_topics
from sluice.settings import Settings
from sluice_local import Stack
from sluice_scheduler import feed
from sluice_scheduler.app import GROUP, build, connect
from sluice_scheduler.feed import FEED_MAX, Owners
from sluice_scheduler.ports import Feed

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

BACKLOG = 20_000


@pytest.fixture(scope="module")
def kafka_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("fed", say=print)
        stack.up(["kafka"])
        yield stack
        stack.down(purge=True)


class Reader:
    """An owner that does nothing but read, and not even that while it is stuck."""

    missing = ""

    def __init__(self, cell: str, fed: Feed, free: asyncio.Event) -> None:
        self.cell = cell
        self.offsets: list[int] = []
        self._feed = fed
        self._free = free

    async def run(self) -> None:
        while True:
            await self._free.wait()
            for incoming in await self._feed.take(500):
                self.offsets.append(incoming.received.offset)
                incoming.acknowledge()
            await asyncio.sleep(0.01)

    def has_read_to(self, count: int) -> bool:
        return bool(self.offsets) and self.offsets[-1] == count - 1


class World:
    def __init__(self, stack: Stack, topics: str, folder: Path) -> None:
        endpoints = stack.endpoints
        self.settings = Settings(
            kafka=endpoints.kafka,
            kafka_username=endpoints.kafka_username,
            kafka_password=endpoints.kafka_password,
            topics=topics,
            cells={"left": 0, "right": 1},
        )
        self.free = {"left": asyncio.Event(), "right": asyncio.Event()}
        self.free["right"].set()
        self.readers: list[Reader] = []
        self.put = 0  # records of the left cell that came from Kafka
        self._folder = folder
        ensure_topics(self.settings)

    async def append(self, partition: int, count: int) -> None:
        writer = LogWriter(self.settings)
        messages = [Message(key=b"k", value=bytes(300), headers=[("ce_id", b"x")])] * count
        await writer.append(self.settings.events_topic, partition, messages)
        await writer.close()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Owners]:
        """A Faust worker, until it leaves."""
        app = build(self.settings, str(self._folder))
        owners = connect(app, self.settings, self.own)
        hand_out = owners.put

        async def put(event: object) -> None:
            self.put += event.message.partition == 0  # type: ignore[attr-defined]
            await hand_out(event)

        owners.put = put  # type: ignore[method-assign]
        await app.start()
        try:
            yield owners
        finally:
            await owners.revoked(set())
            await app.stop()

    def await_commit(self, offset: int) -> None:
        """By Faust's group, within a few of its intervals."""
        consumer = KafkaConsumer(**client_options(self.settings), group_id=f"{self.settings.topics}-{GROUP}")
        ends = time.monotonic() + 20
        while (found := consumer.committed(TopicPartition(self.settings.events_topic, 0))) != offset:
            assert time.monotonic() < ends, found
            time.sleep(0.2)
        consumer.close()

    def own(self, *, cell: str, feed: Feed) -> Reader:
        self.readers.append(Reader(cell, feed, self.free[cell]))
        return self.readers[-1]

    def last(self, cell: str) -> Reader:
        return [reader for reader in self.readers if reader.cell == cell][-1]


async def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        await asyncio.sleep(0.05)


@pytest.fixture
def world(kafka_alone: Stack, request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(kafka_alone, request.node.name.replace("_", "-"), tmp_path)


async def test_a_stuck_owner_holds_up_no_other_and_little_is_fetched_for_it(world: World) -> None:
    await world.append(0, BACKLOG)
    async with world.working():
        await until(lambda: world.put >= FEED_MAX // 2)
        await world.append(1, BACKLOG)
        await until(lambda: bool(world.readers) and world.last("right").has_read_to(BACKLOG))
        assert world.last("left").offsets == []
        print(f"{world.put} of {BACKLOG} records were fetched for the stuck owner")
        assert world.put < BACKLOG
        world.free["left"].set()
        await until(lambda: world.last("left").has_read_to(BACKLOG))
    assert world.last("left").offsets == sorted(world.last("left").offsets)


async def test_a_backlog_outlives_rebalances(world: World) -> None:
    """Its partition is taken away and given back while the agent has more than the owner would take."""
    await world.append(0, BACKLOG)
    async with world.working():
        await until(lambda: world.put >= FEED_MAX // 2)
        for _ in range(2):
            known = len(world.readers)
            async with world.working():
                await until(lambda known=known: len(world.readers) >= known + 2)
            await until(lambda known=known: len(world.readers) >= known + 4)
        await world.append(1, 100)
        world.free["left"].set()
        await until(lambda: world.last("left").has_read_to(BACKLOG))
        await until(lambda: world.last("right").has_read_to(100))
    assert world.last("left").offsets[0] == 0


async def test_what_is_passed_over_is_committed_with_the_rest(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust commits up to the first record that it was not told of: none may be left out."""
    monkeypatch.setattr(feed, "FEED_MAX", 500)
    monkeypatch.setattr(feed, "HOLD_AT", BACKLOG)
    await world.append(0, BACKLOG)
    async with world.working():
        await until(lambda: world.put == BACKLOG)
        assert world.last("left").offsets == []
        world.free["left"].set()
        await until(lambda: world.last("left").has_read_to(BACKLOG))
        assert world.last("left").offsets == [*range(500), BACKLOG - 1]
        await asyncio.to_thread(world.await_commit, BACKLOG)
