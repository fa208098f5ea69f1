"""Kafka's semantics: topics with an id, bounds and records; writers that are idempotent; groups that rebalance."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

from kafka.errors import KafkaError, KafkaTimeoutError
from simulation.system.loop import PROCESS, Process, VirtualLoop
from simulation.system.network import LostError, Network
from sluice.codec import Message
from sluice.kafka import (
    DEAD_LETTER_PREFIX,
    DELIVERY_TIMEOUT_MS,
    SESSION_TIMEOUT_MS,
    LogReader,
    LogWriter,
    NoTopicError,
    Position,
    Received,
)
from sluice.settings import Settings

SERVER: Final = "kafka"
POLLED_MAX: Final = 200
#: An append is one batch, mostly; else so many records are one.
WHOLE: Final = 0.95


@dataclass
class Partition:
    """Records from an offset on: those before it are gone."""

    first: int = 0
    messages: list[Message] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.first + len(self.messages)

    def records(self, number: int, start: int, end: int) -> list[Received]:
        start = max(start, self.first)
        found = self.messages[start - self.first : max(0, end - self.first)]
        return [
            Received(partition=number, offset=offset, key=each.key, value=each.value, headers=each.headers)
            for offset, each in enumerate(found, start)
        ]


@dataclass
class Topic:
    id: str
    partitions: defaultdict[int, Partition] = field(default_factory=lambda: defaultdict(Partition))


@dataclass
class Member:
    process: Process | None
    generation: int
    heard_s: float


@dataclass
class Group:
    """A consumer group of one topic. Each membership change begins a generation, which all members must join
    before anything is handed out."""

    topic: str
    members: dict[int, Member] = field(default_factory=dict)
    generation: int = 0
    holders: dict[int, int] = field(default_factory=dict)
    positions: dict[int, Position] = field(default_factory=dict)

    def change(self) -> None:
        self.generation += 1
        self.holders.clear()


#: Told of whatever is appended: topic, partition, offset, message.
Heard = Callable[[str, int, int, Message], None]


class Broker:
    def __init__(self, loop: VirtualLoop, network: Network, rng: Random, settings: Settings) -> None:
        self.loop, self.network, self.rng, self.settings = loop, network, rng, settings
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Group] = {}
        self.heard: list[Heard] = []
        self._ids = 0
        self._acknowledged: dict[tuple[int, int], int] = {}
        self._waiting: defaultdict[str, list[asyncio.Future[None]]] = defaultdict(list)
        self.partitions = sorted(settings.cells.values())

    def number(self) -> int:
        self._ids += 1
        return self._ids

    # ---- topics

    def ensure_topics(self) -> dict[str, str]:
        names = [self.settings.events_topic, self.settings.decisions_topic]
        names += [DEAD_LETTER_PREFIX + name for name in names] + [self.settings.snapshots_topic]
        for name in names:
            if name not in self.topics:
                self.topics[name] = Topic(f"{name}#{self.number()}")
        return {name: self.topics[name].id for name in names}

    def topics_id(self) -> str:
        ids = self.ensure_topics()
        return f"{ids[self.settings.events_topic]}/{ids[self.settings.decisions_topic]}"

    def at(self, topic: str, partition: int) -> Partition:
        if topic not in self.topics:
            raise NoTopicError(topic)
        return self.topics[topic].partitions[partition]

    def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        log = self.at(topic, partition)
        for message in messages:
            log.messages.append(message)
            log.times.append(self.loop.time())
            for hear in self.heard:
                hear(topic, partition, log.end - 1, message)
        waiting, self._waiting[topic] = self._waiting[topic], []
        for future in waiting:
            self.loop.call_later(self.network.delay_s(), _wake, future)
        return log.end - 1

    def append_once(
        self, writer: tuple[int, int], topic: str, partition: int, batch: Sequence[Message]
    ) -> int:
        if writer not in self._acknowledged:
            self._acknowledged[writer] = self.append(topic, partition, batch)
        return self._acknowledged[writer]

    def make_anew(self, topic: str) -> None:
        """Deleted and created again: empty, with another id; what groups have committed of it is gone."""
        self.topics[topic] = Topic(f"{topic}#{self.number()}")
        for group in self.groups.values():
            if group.topic == topic:
                group.positions.clear()

    def truncate(self, topic: str, partition: int, first: int) -> None:
        """Retention: what is below an offset is gone."""
        log = self.at(topic, partition)
        dropped = min(max(0, first - log.first), len(log.messages))
        del log.messages[:dropped], log.times[:dropped]
        log.first += dropped

    def fetch(self, topic: str, positions: dict[int, int]) -> list[Received]:
        """What follows each position, which is moved; one that is out of range goes back to the beginning."""
        found = []
        for number, position in positions.items():
            log = self.at(topic, number)
            start = position if log.first <= position <= log.end else log.first
            positions[number] = min(start + POLLED_MAX, log.end)
            found += log.records(number, start, positions[number])
        return found

    async def news(self, topic: str, until_s: float) -> None:
        """Return when something is appended, or at that time."""
        future: asyncio.Future[None] = self.loop.create_future()
        self._waiting[topic].append(future)
        timer = self.loop.call_at(until_s, _wake, future)
        try:
            await future
        finally:
            timer.cancel()

    # ---- groups

    def join(self, name: str, topic: str, member: int, process: Process | None) -> None:
        group = self.groups.setdefault(name, Group(topic))
        group.members[member] = Member(process, group.generation, self.loop.time())
        group.change()

    def leave(self, name: str, member: int) -> None:
        if self.groups[name].members.pop(member, None):
            self.groups[name].change()

    def rebalance(self, name: str) -> None:
        self.groups[name].change()

    def expire(self) -> None:
        """Whoever was not heard of for the length of a session is out."""
        for group in self.groups.values():
            for number, member in list(group.members.items()):
                process = member.process
                if process is None or (process.alive and process.stopped_at is None):
                    member.heard_s = self.loop.time()
                elif self.loop.time() - member.heard_s > SESSION_TIMEOUT_MS / 1000:
                    del group.members[number]
                    group.change()

    def generation_of(self, name: str, member: int) -> int | None:
        """Of the group; None for whom it does not know (any more)."""
        group = self.groups[name]
        return group.generation if member in group.members else None

    def sync(self, name: str, member: int, generation: int) -> list[int]:
        """Join a generation; what it gives to this member, once all others have joined it too."""
        group = self.groups[name]
        if member not in group.members or generation != group.generation:
            return []
        group.members[member].generation = generation
        if any(each.generation != generation for each in group.members.values()):
            return []
        if not group.holders:
            members = sorted(group.members)
            group.holders = {partition: self.rng.choice(members) for partition in self.partitions}
        return [partition for partition, holder in group.holders.items() if holder == member]

    def commit(self, name: str, member: int, generation: int, positions: Mapping[int, Position]) -> bool:
        group = self.groups[name]
        if member not in group.members or group.generation != generation:
            return False
        group.positions.update(positions)
        return True


class SimulatedReader(LogReader):
    """Reads a simulated topic. How pieces are read between two offsets is the real reader's business."""

    def __init__(
        self,
        broker: Broker,
        topic: str,
        *,
        group: str | None = None,
        revoked: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._broker = broker
        self._topic = topic
        self._group = group
        self._revoked = revoked
        self._member = broker.number()
        self._positions: dict[int, int] = {}
        self._generation: int | None = None
        self._hand_out: dict[int, int] = {}
        self._joined = False
        self._hand_outs = 0

    @property
    def assigned(self) -> Mapping[int, int]:
        return self._hand_out

    @property
    def joined(self) -> bool:
        return self._joined

    async def _ask(self, serve: Callable[[], Any]) -> Any:
        try:
            return await self._broker.network.ask(SERVER, serve)
        except LostError as error:
            raise KafkaTimeoutError(str(error)) from error

    async def assign(self, offsets: Mapping[int, int]) -> None:
        self._positions = dict(offsets)

    async def poll(self, timeout_s: float) -> list[Received]:
        until_s = self._broker.loop.time() + timeout_s
        while True:
            try:
                found = await self._fetch()
            except (KafkaTimeoutError, NoTopicError):
                found = []
            if found or self._broker.loop.time() >= until_s:
                return found
            await self._broker.news(self._topic, until_s)

    async def _fetch(self) -> list[Received]:
        if self._group is not None:
            await self._attend()
        positions = dict(self._positions)
        found: list[Received] = await self._ask(partial(self._broker.fetch, self._topic, positions))
        self._positions = positions
        return found

    async def stand_by(self, timeout_s: float) -> list[Received]:
        with suppress(KafkaTimeoutError):
            await self._attend()
        await asyncio.sleep(timeout_s)
        return []

    async def _attend(self) -> None:
        """Do what the group asks of its members."""
        group = self._group
        assert group is not None
        if group not in self._broker.groups or self._generation is None:
            await self._ask(partial(self._broker.join, group, self._topic, self._member, PROCESS.get()))
        generation = await self._ask(partial(self._broker.generation_of, group, self._member))
        if generation != self._generation:
            self._generation = generation
            self._hand_out, self._positions = {}, {}
            if self._revoked is not None:
                await self._revoked()
        if generation is None or self._hand_out:
            return
        held = await self._ask(partial(self._broker.sync, group, self._member, generation))
        self._joined = True
        if held:
            self._hand_outs += 1
            committed = {partition: await self.committed(partition) for partition in held}
            self._positions = {p: at.offset if at else 0 for p, at in committed.items()}
            self._hand_out = dict.fromkeys(held, self._hand_outs)

    async def commit(self, positions: Mapping[int, Position]) -> bool:
        if self._generation is None or self._group is None:
            return False
        commit = partial(self._broker.commit, self._group, self._member, self._generation, dict(positions))
        try:
            return bool(await self._ask(commit))
        except KafkaError:
            return False

    async def committed(self, partition: int) -> Position | None:
        assert self._group is not None
        found: Position | None = await self._ask(
            lambda: self._broker.groups[self._group or ""].positions.get(partition)
        )
        return found

    async def begin_anew(self, partition: int) -> None:
        self._positions[partition] = 0

    async def expect(self) -> None:
        await self._ask(lambda: self._broker.at(self._topic, 0))

    async def bounds(self, partition: int) -> tuple[int, int]:
        def bounds() -> tuple[int, int]:
            log = self._broker.at(self._topic, partition)
            return log.first, log.end

        found: tuple[int, int] = await self._ask(bounds)
        return found

    async def close(self) -> None:
        if self._group is not None and self._group in self._broker.groups:
            self._broker.leave(self._group, self._member)


class SimulatedWriter(LogWriter):
    """Tries again until Kafka has answered, and writes nothing twice; what is too long for one batch may be
    written in part."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._number = broker.number()
        self._batches = 0

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        offset = -1
        until_s = self._broker.loop.time() + DELIVERY_TIMEOUT_MS / 1000
        for batch in self._cut(messages):
            self._batches += 1
            writer = (self._number, self._batches)
            append = partial(self._append, writer, topic, partition, batch)
            while True:
                try:
                    offset = await self._broker.network.ask(SERVER, append)
                    break
                except LostError as error:
                    if self._broker.loop.time() >= until_s:
                        await self.close()
                        raise KafkaError(f"append to {topic}[{partition}]: {error}") from error
        return offset

    def _append(self, writer: tuple[int, int], topic: str, partition: int, batch: Sequence[Message]) -> int:
        if writer[0] != self._number:
            raise KafkaError("this writer was closed")
        return self._broker.append_once(writer, topic, partition, batch)

    def _cut(self, messages: Sequence[Message]) -> Iterable[Sequence[Message]]:
        if len(messages) < 2 or self._broker.rng.random() < WHOLE:
            return [messages]
        at = self._broker.rng.randrange(1, len(messages))
        return [messages[:at], messages[at:]]

    async def close(self) -> None:
        """What Kafka has not taken by now does not come late."""
        self._number = self._broker.number()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
