"""Playing a log again: an owner without a ledger, who publishes nothing and compares everything."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic_core import from_json
from sluice.beginnings import Beginning
from sluice.codec import DECISIONS, EVENTS, UnreadableRecordError
from sluice.decisions import Decision
from sluice.events import Event, SetAsideEvent
from sluice.places import Place, Time
from sluice.records import PIECE, Records
from sluice.times import clock

from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.published import Published
from sluice_scheduler.quarantine import LookAhead, PoisonedError, Quarantine
from sluice_scheduler.snapshots import entities_of


class HoleError(Exception):
    """The log lacks events: nobody knows what followed from them."""


class Played(NamedTuple):
    offset: int
    event: Event | None  # None: it can't be read
    decisions: list[Decision]


class Player:
    """The core, stepping a log from a beginning on."""

    def __init__(
        self,
        records: Records,
        *,
        cell: str,
        partition: int,
        policies: Mapping[str, Policy],
        beginning: Beginning,
    ) -> None:
        self.records = records
        self.cell = cell
        self.partition = partition
        self.beginning = beginning
        entities = entities_of(beginning.snapshot) if beginning.snapshot else ()
        self.state = State(policies, entities, derives=False)
        self._quarantine = Quarantine()

    async def play(self, until: Place | None) -> AsyncIterator[Played]:
        """Up to that offset, or to the last record that is not later. PoisonedError if the core raises: then
        the state says nothing any more."""
        at = self.beginning.next_offset
        await LookAhead(self._quarantine, self.records, self.partition).run(at)
        _, end = await self.records.bounds(self.partition)
        if isinstance(until, int):
            end = min(end, until + 1)
        expected = at
        for first in range(at, end, PIECE):
            for received in await self.records.events(self.partition, first, min(first + PIECE, end)):
                event = _read(received.headers, received.value)
                if received.offset != expected and not isinstance(event, SetAsideEvent):
                    raise HoleError(
                        f"the log lacks the events from offset {expected} to {received.offset - 1}"
                    )
                expected = received.offset + 1
                if isinstance(until, Time) and event is not None and event.time_ms > until.ms:
                    return
                decisions = self._quarantine.step(self.state, received.offset, event)
                yield Played(received.offset, event, decisions)
            self.state.take_changes()


def _read(headers: list[tuple[str, bytes]], value: bytes | None) -> Event | None:
    try:
        return EVENTS.decode(headers, value)
    except UnreadableRecordError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where the log and the core part."""

    offset: int  # of the record that was stepped
    seq: int
    what: str  # a sentence
    logged: bytes | None = None  # the decision as it was published
    replayed: Decision | None = None
    raised: bool = False  # the core, which is then in no state


@dataclass(slots=True)
class Comparison:
    """What a replay has found out, up to the first difference."""

    player: Player
    difference: Difference | None = None
    offset: int = -1  # of the last record
    records: int = 0
    same: int = 0  # decisions
    gone: int = 0  # of the first ones, that the log no longer holds
    unpublished: int = 0  # of the last ones, that it does not hold yet
    first_ms: int = 0
    last_ms: int = 0
    cpu_s: float = 0.0
    _published: Published = field(init=False)

    @property
    def lived_s(self) -> float:
        return (self.last_ms - self.first_ms) / 1000

    async def run(self, until: Place | None = None) -> None:
        started = time.process_time()
        try:
            await self._run(until)
        except PoisonedError as error:
            what = f"the core raised {error}, and the log sets nothing aside for that"
            self.difference = Difference(offset=error.offset, seq=0, what=what, raised=True)
        self.cpu_s = time.process_time() - started

    async def _run(self, until: Place | None) -> None:
        player = self.player
        self._published = Published(player.records, cell=player.cell, partition=player.partition)
        await self._published.epochs()
        await self._published.find(since=player.beginning.next_seq)
        async for played in player.play(until):
            self.records += 1
            self.offset = played.offset
            if played.event is not None:
                self.first_ms = self.first_ms or played.event.time_ms
                self.last_ms = max(self.last_ms, played.event.time_ms)
            for decision in played.decisions:
                if decision.seq and not await self._is_same(decision):
                    return
        await self._miss()

    async def _is_same(self, decision: Decision) -> bool:
        seq = decision.seq
        if seq > self._published.last:
            self.unpublished += 1
            return True
        value = DECISIONS.value(decision)
        logged = await self._published.said(seq, value)
        if logged == value:
            self.same += 1
        elif logged is None and not self.same:
            self.gone += 1
        else:
            what = f"the log holds no decision #{seq}" if logged is None else _in_what(seq, logged, value)
            self.difference = Difference(
                offset=self.offset, seq=seq, what=what, logged=logged, replayed=decision
            )
        return self.difference is None

    async def _miss(self) -> None:
        """What the log holds behind the last decision of the core, of a time that is over, was not decided."""
        state = self.player.state
        if not state.begun or self._published.last < state.cell.next_seq:
            return
        seq = state.cell.next_seq
        logged = await self._published.said(seq, b"")
        at_ms = from_json(logged)["timeMs"] if logged else state.now_ms
        if at_ms < state.now_ms:
            what = f"the log holds decision #{seq} of {clock(at_ms)}, and the core has not decided it"
            self.difference = Difference(offset=self.offset, seq=seq, what=what, logged=logged)


def _in_what(seq: int, logged: bytes, replayed: bytes) -> str:
    before, now = from_json(logged), from_json(replayed)
    fields = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    return f"decision #{seq} differs in {', '.join(fields) or 'the order of its fields'}"
