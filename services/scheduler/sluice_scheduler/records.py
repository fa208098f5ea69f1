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

    async def topic_id(self) -> str:
        topics = await asyncio.to_thread(ensure_topics, self._settings)
        return topics[self._settings.events_topic]

    async def bounds(self, partition: int) -> tuple[int, int]:
        reader = LogReader(self._settings, self._settings.events_topic)
        try:
            return await reader.bounds(partition)
        finally:
            await reader.close()

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        reader = LogReader(self._settings, self._settings.events_topic)
        try:
            return [record async for record in reader.between(partition, first, end)]
        finally:
            await reader.close()

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        """Read at a take-over; what was being appended is given up first, so that nothing comes late."""
        await self.close()
        await asyncio.to_thread(ensure_topics, self._settings)
        reader = LogReader(self._settings, self._settings.decisions_topic)
        try:
            return await reader.tail(partition, count)
        finally:
            await reader.close()

    async def append(self, topic: str, partition: int, messages: list[Message]) -> int:
        return await self._writer.append(topic, partition, messages)

    async def close(self) -> None:
        await self._writer.close()
