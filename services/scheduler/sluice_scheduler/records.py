"""The topics through Kafka, as a cell's owner needs them."""

from __future__ import annotations

import asyncio

from sluice.codec import Message
from sluice.kafka import LogReader, LogWriter, Received, ensure_topics
from sluice.settings import Settings


class KafkaLog:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._writer = LogWriter(settings)
        #: By topic, because the reader of one piece is likely to read the next.
        self._readers: dict[str, LogReader] = {}

    async def topic_id(self) -> str:
        topics = await asyncio.to_thread(ensure_topics, self._settings)
        return topics[self._settings.events_topic]

    async def bounds(self, partition: int) -> tuple[int, int]:
        return await self._reader(self._settings.events_topic).bounds(partition)

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.events_topic, partition, first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.decisions_topic, partition, first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        """Read at a take-over; what was being appended is given up first, so that nothing comes late."""
        await self.close()
        await asyncio.to_thread(ensure_topics, self._settings)
        return await self._reader(self._settings.decisions_topic).tail(partition, count)

    async def append(self, topic: str, partition: int, messages: list[Message]) -> int:
        return await self._writer.append(topic, partition, messages)

    async def close(self) -> None:
        await self._writer.close()
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            await reader.close()

    async def _between(self, topic: str, partition: int, first: int, end: int) -> list[Received]:
        """Never beyond the log's own bounds: a reader would wait there for ever."""
        reader = self._reader(topic)
        log_first, log_end = await reader.bounds(partition)
        records = reader.between(partition, max(first, log_first), min(end, log_end))
        return [record async for record in records]

    def _reader(self, topic: str) -> LogReader:
        if topic not in self._readers:
            self._readers[topic] = LogReader(self._settings, topic)
        return self._readers[topic]
