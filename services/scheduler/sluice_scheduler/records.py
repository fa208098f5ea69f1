"""The topics through Kafka, as a cell's owner needs them."""

from __future__ import annotations

from sluice.codec import Message
from sluice.kafka import LogWriter, Received
from sluice.records import KafkaRecords
from sluice.settings import Settings
from sluice.topics import topics_id


class KafkaLog(KafkaRecords):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._writer = LogWriter(settings)
        #: Nobody depends on snapshots: a writer that fails is closed, with all that it had taken up.
        self._snapshot_writer = LogWriter(settings)

    async def topic_id(self) -> str:
        return await topics_id(self._settings)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        """Read at a take-over; what was being appended is given up first, so that nothing comes late."""
        await self.close()
        await self.topic_id()  # which makes what is missing
        return await super().decisions_tail(partition, count)

    async def append(self, topic: str, partition: int, messages: list[Message]) -> int:
        writer = self._snapshot_writer if topic == self._settings.snapshots_topic else self._writer
        return await writer.append(topic, partition, messages)

    async def close(self) -> None:
        await self._writer.close()
        await self._snapshot_writer.close()
        await super().close()
