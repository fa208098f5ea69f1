"""A topic of a FakeLog as its readers see it: one as a member of a consumer group, others by offset."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

from fakes.log import FakeLog
from sluice.kafka import Position, Received

#: What a reader is given at a time.
POLLED_MAX = 1000


class FakeTopic:
    """Records by offset."""

    def __init__(self, log: FakeLog, topic: str) -> None:
        self._log = log
        self._topic = topic

    async def bounds(self, partition: int) -> tuple[int, int]:
        return 0, len(self._log.messages[self._topic, partition])

    async def between(self, partition: int, start: int, end: int) -> AsyncIterator[Received]:
        for received in self.records(partition, start)[: end - start]:
            yield received

    def records(self, partition: int, start: int) -> list[Received]:
        messages = self._log.messages[self._topic, partition][start:]
        return [
            Received(
                partition=partition,
                offset=offset,
                key=message.key,
                value=message.value,
                headers=message.headers,
            )
            for offset, message in enumerate(messages, start)
        ]


class FakeGroup:
    """What the group has committed; it outlives its members."""

    def __init__(self, *partitions: int) -> None:
        self.partitions = partitions
        self.positions: dict[int, Position] = {}
        self.hand_outs = 0


class FakeMember:
    """One member's reader. `hand_out` gives it all partitions anew, `take_away` none."""

    def __init__(self, group: FakeGroup, topic: FakeTopic) -> None:
        self._group = group
        self._topic = topic
        self._next: dict[int, int] = {}
        self.assigned: Mapping[int, int] = {}
        self.joined = False
        #: Every position that was ever committed.
        self.commits: list[Mapping[int, Position]] = []
        #: How often it attended to the group without reading.
        self.stood_by = 0
        self.hand_out()

    def hand_out(self) -> None:
        self._group.hand_outs += 1
        self.joined = True
        self.assigned = dict.fromkeys(self._group.partitions, self._group.hand_outs)
        committed = self._group.positions
        self._next = {p: committed[p].offset if p in committed else 0 for p in self.assigned}

    def take_away(self) -> None:
        self.assigned = {}

    async def poll(self, timeout_s: float) -> list[Received]:
        """What is there now; tests have no time to wait for what is not."""
        await asyncio.sleep(0.001)
        found: list[Received] = []
        for partition in self.assigned:
            found += self._topic.records(partition, self._next[partition])[:POLLED_MAX]
            self._next[partition] += len([each for each in found if each.partition == partition])
        return found

    async def stand_by(self, timeout_s: float) -> list[Received]:
        await asyncio.sleep(0.001)
        self.stood_by += 1
        return []

    async def commit(self, positions: Mapping[int, Position]) -> bool:
        self.commits.append(positions)
        self._group.positions |= positions
        return True

    async def committed(self, partition: int) -> Position | None:
        return self._group.positions.get(partition)

    async def begin_anew(self, partition: int) -> None:
        self._next[partition] = 0
