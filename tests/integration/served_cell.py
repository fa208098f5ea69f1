"""A cell whose topics are in a real Kafka, and whose ledger is in a real Redis."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fakes.cell import FakeFeed, FakeTopics
from fakes.owned_cell import OwnedCell
from redis import Redis
from sluice.codec import Message
from sluice.kafka import LogReader, LogWriter, Received
from sluice.settings import Settings
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.records import KafkaLog


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
    def __init__(self, settings: Settings, redis: Redis, url: str) -> None:
        super().__init__(settings)
        self.topics = RealTopics(settings)
        self.feed = FakeFeed(self.topics, settings.events_topic)
        self.redis = redis
        self.ledger: Any = RedisLedger(url)

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
