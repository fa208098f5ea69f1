"""Appends to a real Kafka: in order, once, and never after the writer has closed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from sluice.codec import Message
from sluice.kafka import BATCH_BYTES, LogReader, LogWriter, ensure_topics
from sluice.settings import Settings
from sluice_local import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def kafka_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A Kafka of this module's own, to kill."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("appended", say=print)
        stack.up(["kafka"])
        yield stack
        stack.down(purge=True)


class World:
    def __init__(self, stack: Stack, topics: str) -> None:
        endpoints = stack.endpoints
        self.stack = stack
        self.settings = Settings(
            kafka=endpoints.kafka,
            kafka_username=endpoints.kafka_username,
            kafka_password=endpoints.kafka_password,
            topics=topics,
        )
        self.topic = self.settings.events_topic
        ensure_topics(self.settings)
        self.writer = LogWriter(self.settings)

    async def append(self, *messages: Message) -> int:
        return await self.writer.append(self.topic, 0, messages)

    async def keys(self) -> list[str]:
        """Those of all messages, in the log's order."""
        reader = LogReader(self.settings, self.topic)
        records = await reader.tail(0, 10**9)
        await reader.close()
        return [(record.key or b"").decode() for record in records]


@pytest.fixture
async def world(kafka_alone: Stack, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    world = World(kafka_alone, topics=request.node.name)
    yield world
    await world.writer.close()


def message(number: int, *, size: int = 0) -> Message:
    return Message(key=str(number).encode(), value=bytes(size), headers=[("ce_id", b"x")])


async def test_an_append_is_in_order_and_gives_the_last_offset(world: World) -> None:
    assert await world.append(message(0)) == 0
    assert await world.append(*(message(number) for number in range(1, 1000))) == 999
    assert await world.keys() == [str(number) for number in range(1000)]


async def test_what_fills_more_than_a_batch_stays_in_order(world: World) -> None:
    messages = [message(number, size=BATCH_BYTES // 3) for number in range(10)]
    messages.insert(5, message(10, size=BATCH_BYTES + 1))
    assert await world.append(*messages) == 10
    assert await world.keys() == [each.key.decode() for each in messages]


async def test_appends_made_at_once_stay_whole(world: World) -> None:
    offsets = await asyncio.gather(*(world.append(message(number), message(number)) for number in range(50)))
    assert sorted(offsets) == list(range(1, 100, 2))
    keys = await world.keys()
    assert keys[::2] == keys[1::2]


async def test_a_killed_kafka_loses_nothing_and_doubles_nothing(world: World) -> None:
    enough = asyncio.Event()

    async def write() -> int:
        count = 0
        while not enough.is_set():
            await world.append(*(message(number) for number in range(count, count + 10)))
            count += 10
        return count

    writing = asyncio.create_task(write())
    for _ in range(3):
        await asyncio.sleep(0.3)
        world.stack.kill("kafka")
        await asyncio.to_thread(world.stack.start, "kafka")
    enough.set()
    count = await asyncio.wait_for(writing, 60)
    assert await world.keys() == [str(number) for number in range(count)]


async def test_nothing_comes_after_the_writer_has_closed(world: World) -> None:
    await world.append(message(0))
    world.stack.kill("kafka")
    late = asyncio.create_task(world.append(message(1)))
    await asyncio.sleep(0.5)
    late.cancel()
    await asyncio.wait_for(world.writer.close(), 10)
    await asyncio.to_thread(world.stack.start, "kafka")
    await asyncio.sleep(5)
    assert await world.keys() == ["0"]
