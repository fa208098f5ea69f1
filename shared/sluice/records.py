"""What stands in a cell's topics, as whoever plays it again reads it; from Kafka here, from a file in `bugreport`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

from sluice.kafka import LogReader, Received
from sluice.settings import Settings
from sluice.topics import standing_topics_id

#: So many records of a log are read at a time, and so many parts of snapshots.
PIECE: Final = 5_000
_PARTS: Final = 50


class Records(Protocol):
    """One or several cells' records, by partition."""

    async def topic_id(self) -> str:
        """The id of events and decisions together; it is another one when either is made anew. Empty where all that
        there is belongs together."""
        ...

    async def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset of the events that is still there, and the one after the last."""
        ...

    async def decision_bounds(self, partition: int) -> tuple[int, int]:
        """The same of the decisions."""
        ...

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        """The events from offset `first` to before `end`, as far as the log has them."""
        ...

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        """The same of the decisions."""
        ...

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        """The last `count` decisions. Nothing that was being appended before comes later than these."""
        ...

    def snapshots(self, partition: int) -> AsyncIterator[Received]:
        """Parts of snapshots, the last one first."""
        ...

    async def close(self) -> None: ...


class KafkaRecords:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: By topic, because the reader of one piece is likely to read the next.
        self._readers: dict[str, LogReader] = {}

    async def topic_id(self) -> str:
        return await standing_topics_id(self._settings)

    async def bounds(self, partition: int) -> tuple[int, int]:
        return await (await self._reader(self._settings.events_topic)).bounds(partition)

    async def decision_bounds(self, partition: int) -> tuple[int, int]:
        return await (await self._reader(self._settings.decisions_topic)).bounds(partition)

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.events_topic, partition, first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        return await self._between(self._settings.decisions_topic, partition, first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        return await (await self._reader(self._settings.decisions_topic)).tail(partition, count)

    async def snapshots(self, partition: int) -> AsyncIterator[Received]:
        topic = self._settings.snapshots_topic
        first, end = await (await self._reader(topic)).bounds(partition)
        while first < end:
            for received in reversed(await self._between(topic, partition, max(first, end - _PARTS), end)):
                yield received
            end -= _PARTS

    async def close(self) -> None:
        readers, self._readers = self._readers, {}
        for reader in readers.values():
            await reader.close()

    async def _between(self, topic: str, partition: int, first: int, end: int) -> list[Received]:
        """Never beyond the log's own bounds: a reader would wait there for ever."""
        reader = await self._reader(topic)
        log_first, log_end = await reader.bounds(partition)
        records = reader.between(partition, max(first, log_first), min(end, log_end))
        return [record async for record in records]

    async def _reader(self, topic: str) -> LogReader:
        if topic not in self._readers:
            reader = self._readers[topic] = self._read(topic)
            await reader.expect()
        return self._readers[topic]

    def _read(self, topic: str) -> LogReader:
        return LogReader(self._settings, topic)
