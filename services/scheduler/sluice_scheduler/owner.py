"""One cell's owner: takes it over, then turns batches of its input log into commits and decisions.

    records ──► step, one by one ──► commit (one atomic write) ──► acknowledge
                                        └──► outbox ──► decisions topic

A batch is whatever has arrived, so it only groups commits; decisions do not depend on it. Whatever goes wrong
with Redis or Kafka ends in the same place: take the cell over again, from what was committed.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final, TypeAlias

from kafka.errors import KafkaError
from sluice.chain import link
from sluice.codec import DECISIONS, EVENTS, UnreadableRecordError, find_header
from sluice.events import Event, RebuildEvent, TickEvent
from sluice.kafka import DEAD_LETTER_PREFIX, Received, dead_letter
from sluice.lifecycle import apart, reasons
from sluice.pace import Pace
from sluice.settings import Settings
from sluice.topics import TopicsMadeAnewError
from sluice.values import Epoch

from sluice_scheduler import metrics
from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.outbox import Outbox
from sluice_scheduler.ports import (
    Clock,
    Commit,
    Feed,
    FencedError,
    Incoming,
    Lease,
    LeaseError,
    Ledger,
    LedgerError,
    Log,
    Meta,
    NewerLedgerError,
    OutboxEntry,
)
from sluice_scheduler.published import DivergenceError
from sluice_scheduler.quarantine import HopelessError, LookAhead, PoisonedError, Quarantine
from sluice_scheduler.snapshots import Snapshots
from sluice_scheduler.takeover import TakeOver
from sluice_scheduler.validator import Validator

log = logging.getLogger(__name__)

#: So many records at most in one commit: bounds how long a commit blocks Redis, and what is held in memory.
BATCH_MAX: Final = 500
PAUSE_S: Final = 0.5
#: A ledger that a newer version wrote is looked at again after this long.
REFUSED_PAUSE_S: Final = 10.0
#: The watcher ticks every second.
SILENT_S: Final = 15
#: Between two commits, at least.
PACE_S: Final = 0.04


Pieces: TypeAlias = AsyncGenerator[list[Received], None]


class WallClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LostRecordsError(Exception):
    """The log no longer has what the ledger has not read: take the cell over again, and judge anew."""


class CellOwner:
    def __init__(
        self,
        *,
        cell: str,
        settings: Settings,
        policies: Mapping[str, Policy],
        ledger: Ledger,
        lease: Lease,
        records: Log,
        feed: Feed,
        holder: str,
        clock: Clock | None = None,
        topics: str = "",
    ) -> None:
        """`topics`: their id when the feed began, if anybody looked."""
        self._cell = cell
        self._partition = settings.cells[cell]
        self._settings = settings
        self._ledger = ledger
        self._log = records
        self._feed = feed
        self._clock = clock or WallClock()
        self._take_over = TakeOver(
            cell=cell,
            settings=settings,
            policies=policies,
            ledger=ledger,
            lease=lease,
            log=records,
            holder=holder,
            clock=self._clock,
        )
        self._quarantine = Quarantine()
        self._look_ahead = LookAhead(self._quarantine, records, self._partition)
        self._validator: Validator | None = None
        #: Up to here records have been delivered; and where one of them raised, they are read from the log again,
        #: for nobody delivers them a second time.
        self._delivered = 0
        self._again = 0
        #: What offsets are counted in. Those of other topics say nothing here.
        self._topics = topics
        self._snapshots = self._new_snapshots()
        self._problem = "not taken over yet"
        self._heard_s = self._clock.monotonic_s()

    @property
    def missing(self) -> str:
        """Why the cell is not decided about, in a sentence; empty when it is."""
        silent_s = self._clock.monotonic_s() - self._heard_s
        problem = self._problem
        if not problem and silent_s > SILENT_S:
            problem = (
                f"nothing was read for {silent_s:.0f} s, not even a tick: are Kafka and the watcher well?"
            )
        return problem and f"cell {self._cell}: {problem}"

    async def run(self) -> None:
        """Own the cell until cancelled, fenced off, or diverged, or Kafka is made anew."""
        try:
            await self._keep_owning()
        finally:
            metrics.forget(self._cell)
            await self._log.close()

    async def _keep_owning(self) -> None:
        while True:
            pause_s = PAUSE_S
            poisoned: PoisonedError | None = None
            try:
                await apart(self._own())
            except* PoisonedError as errors:
                poisoned = next(error for error in errors.exceptions if isinstance(error, PoisonedError))
            except* (FencedError, DivergenceError, TopicsMadeAnewError):
                raise
            except* NewerLedgerError as errors:
                self._start_over(reasons(errors))
                pause_s = REFUSED_PAUSE_S
            except* (LedgerError, KafkaError, LeaseError, LostRecordsError, OSError) as errors:
                self._start_over(reasons(errors))
            # Not while it is caught: a cancellation would be one of several errors there.
            if poisoned is None or not await self._is_set_aside(poisoned):
                await self._clock.sleep(pause_s)

    async def _is_set_aside(self, poisoned: PoisonedError) -> bool:
        try:
            await self._set_aside(poisoned)
        except (HopelessError, KafkaError, OSError) as error:
            self._start_over(str(error))
            return False
        return True

    def _start_over(self, problem: str) -> None:
        self._problem = problem
        metrics.TAKEOVERS.labels(self._cell, "error").inc()
        log.warning("starting over: %s", problem, extra={"cell": self._cell})

    async def _own(self) -> None:
        meta, state, outbox = await self._take_over.run()
        if self._topics not in ("", meta.topic_id):  # the feed may hold records of the former ones still
            raise TopicsMadeAnewError("Kafka was made anew, and the ledger with it: begin with a new feed")
        self._topics = meta.topic_id
        self._validator = Validator(self._cell, state, self._settings.validate_ticks)
        self._snapshots = self._new_snapshots()
        await self._look_ahead.run(meta.next_offset)
        self._problem, self._heard_s = "", self._clock.monotonic_s()
        metrics.TAKEOVERS.labels(self._cell, "ok").inc()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(outbox.publish())
            tasks.create_task(self._keep_snapshots())
            tasks.create_task(self._decide(meta, state, outbox))

    def _new_snapshots(self) -> Snapshots:
        return Snapshots(
            cell=self._cell,
            settings=self._settings,
            log=self._log,
            clock=self._clock,
            topics=self._topics,
        )

    async def _keep_snapshots(self) -> None:
        while True:
            try:
                await self._snapshots.publish()
            except (KafkaError, OSError) as error:
                self._snapshots.give_up()
                log.warning("a snapshot was given up: %s", error, extra={"cell": self._cell})

    async def _decide(self, meta: Meta, state: State, outbox: Outbox) -> None:
        pace = Pace(PACE_S, self._clock.monotonic_s, full=BATCH_MAX)
        again, self._again = self._again, 0
        while meta.next_offset < again:
            piece = await self._skipped(meta.next_offset, min(meta.next_offset + BATCH_MAX, again))
            meta = await self._commit(piece, meta, state, outbox)
        while True:
            batch = await self._feed.take(BATCH_MAX)
            self._delivered = batch[-1].received.offset + 1
            async with aclosing(self._in_sequence(batch, meta.next_offset)) as pieces:
                async for piece in pieces:
                    meta = await self._commit(piece, meta, state, outbox)
                    self._heard_s = self._clock.monotonic_s()
            self._heard_s = self._clock.monotonic_s()
            for incoming in batch:
                incoming.acknowledge()
            await self._clock.sleep(pace.pause_s(len(batch)))

    async def _commit(self, records: list[Received], meta: Meta, state: State, outbox: Outbox) -> Meta:
        """Step them, and write what that came to; where the ledger stands then."""
        decided: list[OutboxEntry] = []
        chain = meta.chain
        for record in records:
            entries, chain = await self._step(meta.epoch, state, record, chain)
            decided += entries
        commit = Commit(
            epoch=meta.epoch,
            expected_offset=meta.next_offset,
            next_offset=meta.next_offset + len(records),
            expected_seq=meta.next_seq,
            next_seq=state.cell.next_seq if state.begun else meta.next_seq,
            published=outbox.published,
            told_ms=outbox.told_ms,
            chain=chain,
            changes=state.take_changes(),
            decisions=[entry for entry in decided if entry.seq],
        )
        await self._ledger.commit(self._cell, commit)
        self._snapshots.follow(state, commit)
        outbox.put(decided, time_ms=state.now_ms if state.begun else 0)
        metrics.observe_commit(self._cell, commit, state)
        self._quarantine.forget(below=commit.next_offset)
        return replace(meta, next_offset=commit.next_offset, next_seq=commit.next_seq, chain=chain)

    async def _in_sequence(
        self, batch: list[Incoming], next_offset: int
    ) -> AsyncGenerator[list[Received], None]:
        """The records from `next_offset` on without a hole, in pieces fit for one commit each.

        What was delivered before is left out. What the feed has skipped (it had no room, an earlier owner had
        taken it and failed, or the group's offset ran ahead of the ledger) is read from the log itself, a
        piece at a time: it may be all that there is.
        """
        ready: list[Received] = []
        for received in (incoming.received for incoming in batch):
            if received.offset > next_offset:
                if ready:
                    yield ready
                    ready = []
                while next_offset < received.offset:
                    piece = await self._skipped(next_offset, min(next_offset + BATCH_MAX, received.offset))
                    yield piece
                    next_offset += len(piece)
            if received.offset == next_offset:
                ready.append(received)
                next_offset += 1
        if ready:
            yield ready

    async def _skipped(self, first: int, end: int) -> list[Received]:
        found = await self._log.events(self._partition, first, end)
        if [received.offset for received in found] != list(range(first, end)):
            raise LostRecordsError(f"the log does not hold all events from offset {first} to {end - 1}")
        return found

    async def _step(
        self, epoch: Epoch, state: State, received: Received, chain: str
    ) -> tuple[list[OutboxEntry], str]:
        """What a record leads to, and the hash of the last decision so far."""
        event = await self._read(received)
        started = time.perf_counter()
        decisions = self._quarantine.step(state, received.offset, event)
        metrics.STEP_SECONDS.observe(time.perf_counter() - started)
        if isinstance(event, TickEvent) and self._validator is not None:
            self._validator.tick()
        if isinstance(event, RebuildEvent):
            chain = event.previous
        entries = []
        for decision in decisions:
            ce_type, value = DECISIONS.ce_type(decision.type), DECISIONS.value(decision)
            previous = chain if decision.seq else ""
            entries.append(
                OutboxEntry(seq=decision.seq, epoch=epoch, ce_type=ce_type, value=value, previous=previous)
            )
            if decision.seq:
                chain = link(chain, ce_type, value)
        return entries, chain

    async def _set_aside(self, poisoned: PoisonedError) -> None:
        """Write down, for every replay, what is set aside just before the record that raised."""
        about: dict[str, Any] = {"exc_info": poisoned.__cause__, "extra": {"cell": self._cell}}
        self._again = max(self._delivered, poisoned.offset + 1)
        event = self._quarantine.judge(poisoned, self._settings.cluster)
        if event is None:
            log.warning("offset %s raised %s: it is stepped once more", poisoned.offset, poisoned, **about)
            return
        metrics.SET_ASIDE.labels(self._cell).inc()
        log.error(
            "set aside %s, which raised %s at offset %s: everybody else's work goes on",
            event.what,
            poisoned,
            poisoned.offset,
            **about,
        )
        message = EVENTS.encode(event, source=f"sluice/scheduler/{self._cell}")
        at = await self._log.append(self._settings.events_topic, self._partition, [message])
        self._quarantine.learn(at, event)

    async def _read(self, received: Received) -> Event | None:
        """The record's event; what can't be read goes to the dead letters, and the rest goes on."""
        try:
            return EVENTS.decode(received.headers, received.value)
        except UnreadableRecordError as error:
            topic = self._settings.events_topic
            metrics.UNREADABLE.labels(self._cell).inc()
            log.error(
                "unreadable record at %s[%s]@%s, set aside in %s: %s",
                topic,
                received.partition,
                received.offset,
                DEAD_LETTER_PREFIX + topic,
                error,
                extra={"cell": self._cell, "event": find_header(received.headers, "ce_id") or ""},
            )
            letter = dead_letter(received, topic=topic, error=str(error))
            await self._log.append(DEAD_LETTER_PREFIX + topic, received.partition, [letter])
            return None
