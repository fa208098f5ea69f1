"""Records on their way from Faust's one stream to the owners of the cells.

    stream ──► agent ──► Owners.put ──► a FaustFeed per partition ──► take: the cell's owner

One agent hands out the records of all cells, so it never waits for an owner: one that is slow, or gone, would
hold up the others. A feed that fills asks Faust to fetch no more of its partition. What is on its way still
comes; what the feed has no room for is passed over. Nothing is lost by that: the owner is given the last of
these records, finds the hole before it, and reads it from the log itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from faust.types import TP, EventT
from sluice.kafka import Received
from sluice.settings import Settings

from sluice_scheduler.ports import Feed, Incoming

#: Records that wait for their owner.
FEED_MAX: Final = 5_000
#: Faust is asked to fetch no more from here on, and to go on once the owner has taken all but so many.
HOLD_AT: Final = FEED_MAX // 2
GO_ON_AT: Final = FEED_MAX // 4


class Flow(Protocol):
    """Where the records of one partition come from."""

    def hold(self) -> None:
        """Fetch no more for now. What is on its way still comes."""

    def go_on(self) -> None: ...

    def acknowledge(self, first: int, end: int) -> None:
        """Records that were passed over, from offset `first` to before `end`, are done with."""


class FreeFlow:
    """One that nobody can hold."""

    def hold(self) -> None: ...

    def go_on(self) -> None: ...

    def acknowledge(self, first: int, end: int) -> None: ...


@dataclass(slots=True)
class _PassedOver:
    """Records that did not fit: where they begin, and the last of them."""

    first: int
    last: Incoming


class FaustFeed:
    """One partition's records, in order. It is closed when the partition is taken away."""

    def __init__(self, flow: Flow | None = None) -> None:
        self._flow = flow or FreeFlow()
        self._queue: deque[Incoming] = deque()
        self._passed_over: _PassedOver | None = None
        self._is_held = False
        self._is_closed = False
        self._arrived = asyncio.Event()

    def put(self, event: EventT[Any]) -> None:
        if self._is_closed:
            return
        incoming = Incoming(_received(event), event.ack)
        if self._passed_over is not None:
            self._passed_over.last = incoming
        elif len(self._queue) < FEED_MAX:
            self._queue.append(incoming)
        else:
            self._passed_over = _PassedOver(incoming.received.offset, incoming)
        self._arrived.set()
        if len(self._queue) >= HOLD_AT:
            self._is_held = True
            self._flow.hold()

    async def take(self, most: int) -> list[Incoming]:
        while not self._queue and self._passed_over is None:
            self._arrived.clear()
            await self._arrived.wait()
        batch = [self._queue.popleft() for _ in range(min(most, len(self._queue)))]
        if len(batch) < most and self._passed_over is not None:
            batch.append(self._as_one(self._passed_over))
            self._passed_over = None
        if self._is_held and len(self._queue) <= GO_ON_AT:
            self._is_held = False
            self._flow.go_on()
        return batch

    def close(self) -> None:
        """What comes from now on is another owner's."""
        self._is_closed = True

    def _as_one(self, passed_over: _PassedOver) -> Incoming:
        """The last of the records stands for all of them: they are acknowledged together, and in order."""
        first, last = passed_over.first, passed_over.last

        def acknowledge() -> None:
            self._flow.acknowledge(first, last.received.offset)
            last.acknowledge()

        return Incoming(last.received, acknowledge)


def _received(event: EventT[Any]) -> Received:
    message = event.message
    return Received(
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=list(message.headers or ()),
    )


class Owner(Protocol):
    """The owner of a cell, as the feed knows it."""

    @property
    def missing(self) -> str:
        """Why the cell is not decided about, in a sentence; empty when it is."""

    async def run(self) -> None: ...


class Own(Protocol):
    def __call__(self, *, cell: str, feed: Feed) -> Owner:
        """Make the owner of a cell."""


class Owners:
    """The owners of the cells that this worker was assigned."""

    def __init__(
        self, settings: Settings, own: Own, flow: Callable[[int], Flow] = lambda _: FreeFlow()
    ) -> None:
        """`flow`: makes the flow of a partition."""
        self._settings = settings
        self._own = own
        self._flow = flow
        self._feeds: dict[int, FaustFeed] = {}
        self._tasks: dict[int, tuple[Owner, asyncio.Task[None]]] = {}
        self._is_told = False  # whether it has any
        #: Raises when an owner must not go on: fenced off, diverged, or broken.
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def assigned(self, partitions: set[TP]) -> None:
        await self.revoked(set())  # two owners of one cell would fence each other off
        for tp in sorted(partitions):
            if tp.topic == self._settings.events_topic and tp.partition in self._settings.cells.values():
                feed = FaustFeed(self._flow(tp.partition))
                owner = self._own(cell=self._settings.cell_of(tp.partition), feed=feed)
                task = asyncio.create_task(owner.run())
                task.add_done_callback(self.ended)
                self._feeds[tp.partition] = feed
                self._tasks[tp.partition] = owner, task
        self._is_told = True

    async def revoked(self, _: set[TP]) -> None:
        """The partitions that were taken away: the group hands all of them out anew each time."""
        tasks = [task for _, task in self._tasks.values()]
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def put(self, event: EventT[Any]) -> None:
        """Hand a record to its cell's owner; what belongs to nobody here is dropped."""
        feed = self._feeds.get(event.message.partition)
        if feed is not None:
            feed.put(event)

    def unready(self) -> str:
        if not self._is_told:
            return "no assignment from Kafka yet"
        return "; ".join(owner.missing for owner, _ in self._tasks.values() if owner.missing)

    def ended(self, task: asyncio.Task[None]) -> None:
        """Something has ended that all of them need."""
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)
