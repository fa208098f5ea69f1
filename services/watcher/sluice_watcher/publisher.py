"""Records → Kafka, in order and acknowledged.

One lane a partition, one append under way in each: the first record goes at once; whatever arrives until
shortly after its acknowledgement is the next append. Of the records of one append only the last still asks
for a scheduling pass. The others are marked `more`: they are written together and in order.

An append that fails ends the watcher's work. It begins anew and lists everything again, so nothing that
Kafka has not acknowledged is ever passed over.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, Protocol

from sluice.codec import EVENTS, Message
from sluice.events import Event
from sluice.kafka import VALUE_BYTES_MAX
from sluice.pace import Pace

from sluice_watcher import metrics
from sluice_watcher.clock import Clock

APPEND_MAX: Final = 500
#: Between two appends, at least: in a burst this saves more time than it takes.
PACE_S: Final = 0.025
#: Reading the cluster pauses while this many records wait for Kafka.
UNACKNOWLEDGED_MAX: Final = 5_000


class Appender(Protocol):
    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        """Write in order; the offset of the last, once Kafka has acknowledged all."""


class Publisher:
    def __init__(
        self,
        writer: Appender,
        *,
        topic: str,
        partitions: Mapping[str, int],
        source: str,
        clock: Clock,
        set_aside: Callable[[Event, bytes], None],
    ) -> None:
        """`set_aside` takes what is too long for Kafka, and its bytes."""
        self._lanes = {
            cell: _Lane(
                writer, topic=topic, partition=partition, source=source, clock=clock, set_aside=set_aside
            )
            for cell, partition in partitions.items()
        }

    async def run(self) -> None:
        async with asyncio.TaskGroup() as lanes:
            for lane in self._lanes.values():
                lanes.create_task(lane.run())

    def put(self, cell: str, event: Event) -> None:
        """Never waits, so that records put one after another stay together; producers wait for `room`."""
        self._lanes[cell].put(event)

    async def room(self) -> None:
        """Return when no cell has too many records waiting."""
        for lane in self._lanes.values():
            await lane.acknowledged(lane.puts - UNACKNOWLEDGED_MAX)

    async def flushed(self) -> None:
        """Return when Kafka has acknowledged everything that was put before."""
        puts = [(lane, lane.puts) for lane in self._lanes.values()]
        for lane, count in puts:
            await lane.acknowledged(count)

    @property
    def unacknowledged(self) -> int:
        return sum(lane.unacknowledged for lane in self._lanes.values())

    @property
    def stalled_ms(self) -> int:
        """For how long the append that has waited longest waits."""
        return max(lane.stalled_ms for lane in self._lanes.values())


class _Lane:
    def __init__(
        self,
        writer: Appender,
        *,
        topic: str,
        partition: int,
        source: str,
        clock: Clock,
        set_aside: Callable[[Event, bytes], None],
    ) -> None:
        self._writer = writer
        self._topic = topic
        self._partition = partition
        self._source = source
        self._clock = clock
        self._set_aside = set_aside
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._progress = asyncio.Event()
        self.puts = 0
        self.acknowledgements = 0
        self._appending_since_ms: int | None = None

    @property
    def stalled_ms(self) -> int:
        since = self._appending_since_ms
        return 0 if since is None else self._clock.now_ms() - since

    @property
    def unacknowledged(self) -> int:
        return self.puts - self.acknowledgements

    def put(self, event: Event) -> None:
        self.puts += 1
        self._waiting.append(event)
        self._arrived.set()

    async def acknowledged(self, count: int) -> None:
        """Return when the first `count` records are acknowledged."""
        while self.acknowledgements < count:
            await self._progress.wait()

    async def run(self) -> None:
        pace = Pace(PACE_S, asyncio.get_running_loop().time, full=APPEND_MAX)
        while True:
            await self._arrived.wait()
            events = self._take()
            if messages := list(self._encoded(events)):
                self._appending_since_ms = self._clock.now_ms()
                await self._writer.append(self._topic, self._partition, messages)
                self._appending_since_ms = None
            self._acknowledge(events)
            await asyncio.sleep(pace.pause_s(len(events)))

    def _encoded(self, events: list[Event]) -> Iterator[Message]:
        for event in asking_once(events):
            message = EVENTS.encode(event, source=self._source)
            if len(message.value) <= VALUE_BYTES_MAX:
                yield message
            else:
                self._set_aside(event, message.value)

    def _take(self) -> list[Event]:
        events = [self._waiting.popleft() for _ in range(min(len(self._waiting), APPEND_MAX))]
        if not self._waiting:
            self._arrived.clear()
        return events

    def _acknowledge(self, events: list[Event]) -> None:
        self.acknowledgements += len(events)
        self._progress.set()
        self._progress.clear()  # whoever waits now is on the way; whoever comes later waits for the next
        metrics.LAG.observe((self._clock.now_ms() - events[0].time_ms) / 1000)
        for type_, count in Counter(event.type for event in events).items():
            metrics.RECORDS.labels(type_).inc(count)


def asking_once(events: Sequence[Event]) -> list[Event]:
    """The same records, of which only the last that asks for a scheduling pass still does."""
    result = list(events)
    asking = [index for index, event in enumerate(events) if not event.more]
    for index in asking[:-1]:
        result[index] = replace(events[index], more=True)
    return result
