"""The world of a cell's owner: topics that remember, a feed that may skip and repeat, a lease that counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

from fakes.log import FakeLog
from sluice.codec import Message
from sluice.kafka import Received
from sluice.settings import Settings
from sluice_scheduler.ports import Incoming


class FakeTopics:
    """Both topics of one cell, in a FakeLog."""

    def __init__(self, settings: Settings) -> None:
        self.log = FakeLog()
        self.id = "made first"
        #: What is below these offsets is gone.
        self.begins = {settings.events_topic: 0, settings.decisions_topic: 0}
        #: The most records that were asked for at a time.
        self.most_read = 0
        self.closed = 0
        self._settings = settings

    def tell(self, messages: Sequence[Message]) -> None:
        """Events of somebody else's."""
        self.log.messages[self._settings.events_topic, 0] += messages

    async def topic_id(self) -> str:
        return self.id

    async def bounds(self, partition: int) -> tuple[int, int]:
        topic = self._settings.events_topic
        return self.begins[topic], len(self.log.messages[topic, partition])

    async def decision_bounds(self, partition: int) -> tuple[int, int]:
        topic = self._settings.decisions_topic
        return self.begins[topic], len(self.log.messages[topic, partition])

    async def snapshots(self, partition: int) -> AsyncIterator[Received]:
        topic = self._settings.snapshots_topic
        parts = self.records(topic, partition, 0, len(self.log.messages[topic, partition]))
        for received in reversed(parts):
            yield received

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.events_topic, partition, first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.decisions_topic, partition, first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        topic = self._settings.decisions_topic
        end = len(self.log.messages[topic, partition])
        return self.records(topic, partition, max(self.begins[topic], end - count), end)

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        return await self.log.append(topic, partition, messages)

    async def close(self) -> None:
        self.closed += 1

    async def _between(self, topic: str, partition: int, first: int, end: int) -> list[Received]:
        await asyncio.sleep(0)
        self.most_read = max(self.most_read, end - first)
        return self.records(topic, partition, max(first, self.begins[topic]), end)

    def records(self, topic: str, partition: int, first: int, end: int) -> list[Received]:
        return [
            Received(
                partition=partition,
                offset=offset,
                key=message.key,
                value=message.value,
                headers=message.headers,
            )
            for offset, message in enumerate(self.log.messages[topic, partition][first:end], first)
        ]


class FakeFeed:
    """Delivers from `at` on whatever is in the log; a test moves `at` to skip records or to repeat them."""

    def __init__(self, topics: FakeTopics, topic: str) -> None:
        self.at = 0
        self.acknowledged: list[int] = []
        self._topics = topics
        self._topic = topic

    async def take(self, most: int) -> list[Incoming]:
        while True:
            found = self._topics.records(self._topic, 0, self.at, self.at + most)
            if found:
                break
            await asyncio.sleep(0.001)
        self.at += len(found)
        return [Incoming(each, partial(self.acknowledged.append, each.offset)) for each in found]


class FakeLease:
    def __init__(self) -> None:
        self.cluster_uid = "earth"
        self.resource_version = 100

    async def write(self, cell: str, holder: str) -> tuple[str, int]:
        self.resource_version += 1
        return self.cluster_uid, self.resource_version
