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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kafka.errors import KafkaError
from sluice.applications import listed_as
from sluice.codec import DECISIONS, EVENTS, Message, UnreadableRecordError, find_header
from sluice.events import CellConfig, ConfigEvent, Event, RebuildEvent
from sluice.kafka import DEAD_LETTER_PREFIX, Received, dead_letter
from sluice.lifecycle import reasons
from sluice.pace import Pace
from sluice.settings import Settings
from sluice.values import Epoch

from sluice_scheduler import metrics
from sluice_scheduler.core import CORE_VERSION, State, step
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.kube import Lease, LeaseError
from sluice_scheduler.ledger import Commit, FencedError, Ledger, LedgerError, Meta, OutboxEntry
from sluice_scheduler.outbox import DivergenceError, Outbox, decided_in, epochs_in

log = logging.getLogger(__name__)

#: Object kinds that must be listed before anything is decided about a cluster.
KINDS: Final = ("namespace", "node", "pod", "priorityclass", "queue", "resourcepool")
#: So many records at most in one commit: bounds how long a commit blocks Redis.
BATCH_MAX: Final = 500
#: How far back the decision log is read to find its last seq, and to compare what is published again.
TAIL: Final = 5_000
PAUSE_S: Final = 0.5
#: The watcher ticks every second.
SILENT_S: Final = 15
#: Between two commits, at least.
PACE_S: Final = 0.04


class Log(Protocol):
    """The topics, as the owner of a cell needs them."""

    async def topic_id(self) -> str:
        """The events topic's id; a topic made anew has another."""
        ...

    async def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset of the events that is still there, and the one after the last."""
        ...

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        """The events from offset `first` to before `end`."""
        ...

    async def decisions_tail(self, partition: int, count: int) -> list[Received]: ...

    async def append(self, topic: str, partition: int, messages: list[Message]) -> int: ...


class Feed(Protocol):
    """One partition's records, delivered in order."""

    async def take(self, most: int) -> list[Incoming]:
        """Whatever has arrived; waits for the first."""
        ...


@dataclass(frozen=True, slots=True)
class Incoming:
    received: Received
    acknowledge: Callable[[], None]


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
    ) -> None:
        self._cell = cell
        self._partition = settings.cells[cell]
        self._settings = settings
        self._policies = policies
        self._ledger = ledger
        self._lease = lease
        self._log = records
        self._feed = feed
        self._holder = holder
        self._problem = "not taken over yet"
        self._heard_s = time.monotonic()

    @property
    def missing(self) -> str:
        """Why the cell is not decided about, in a sentence; empty when it is."""
        silent_s = time.monotonic() - self._heard_s
        problem = self._problem
        if not problem and silent_s > SILENT_S:
            problem = (
                f"nothing was read for {silent_s:.0f} s, not even a tick: are Kafka and the watcher well?"
            )
        return problem and f"cell {self._cell}: {problem}"

    async def run(self) -> None:
        """Own the cell until cancelled, fenced off, or diverged."""
        try:
            await self._keep_owning()
        finally:
            metrics.forget(self._cell)

    async def _keep_owning(self) -> None:
        while True:
            try:
                await self._own()
            except* (FencedError, DivergenceError):
                raise
            except* (LedgerError, KafkaError, LeaseError, OSError) as errors:
                self._problem = reasons(errors)
                metrics.TAKEOVERS.labels(self._cell, "error").inc()
                log.warning("starting over: %s", self._problem, extra={"cell": self._cell})
                await asyncio.sleep(PAUSE_S)

    async def _own(self) -> None:
        meta, state, outbox = await self._take_over()
        self._problem, self._heard_s = "", time.monotonic()
        metrics.TAKEOVERS.labels(self._cell, "ok").inc()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(outbox.publish())
            tasks.create_task(self._decide(meta, state, outbox))

    # ---- taking over

    async def _take_over(self) -> tuple[Meta, State, Outbox]:
        tail = await self._log.decisions_tail(self._partition, TAIL)
        epoch, cluster_uid = await self._mint(tail)
        meta = await self._ledger.acquire(self._cell, epoch)
        reason = await self._why_rebuild(meta, cluster_uid)
        if reason:
            meta = await self._rebuild(meta, cluster_uid, tail, reason)
        entities, unpublished = await self._ledger.load(self._cell)
        state = State(self._policies, entities)
        if state.begun and state.config != self._config:
            await self._append(ConfigEvent(config=self._config, **self._now()))
        log.info(
            "took over at offset %s with %s entities",
            meta.next_offset,
            len(entities),
            extra={"cell": self._cell, "epoch": epoch, "seq": meta.next_seq},
        )
        outbox = Outbox(
            log=self._log,
            settings=self._settings,
            cell=self._cell,
            published=meta.published,
            waiting=unpublished,
            tail=tail,
        )
        return meta, state, outbox

    async def _mint(self, tail: list[Received]) -> tuple[Epoch, str]:
        """An epoch above every earlier one: by the Lease's resourceVersion as long as that rises."""
        cluster_uid, resource_version = await self._lease.write(self._cell, self._holder)
        known, known_uid = await self._ledger.known_epoch(self._cell)
        last = max([*epochs_in(tail), *([known] if known else [])], default=Epoch(1, 0))
        same_cluster = known_uid in ("", cluster_uid)
        rises = resource_version > last.resource_version
        generation = last.generation if same_cluster and rises else last.generation + 1
        return Epoch(generation, resource_version), cluster_uid

    async def _why_rebuild(self, meta: Meta, cluster_uid: str) -> str:
        if not meta.topic_id:
            return "the ledger is empty"
        if meta.topic_id != await self._log.topic_id():
            return "Kafka was made anew"
        if meta.cluster_uid != cluster_uid:
            return "the home cluster is another one"
        first, end = await self._log.bounds(self._partition)
        if not first <= meta.next_offset <= end:
            return f"the log holds offsets {first} to {end}, the ledger stands at {meta.next_offset}"
        return ""

    async def _rebuild(self, meta: Meta, cluster_uid: str, tail: list[Received], reason: str) -> Meta:
        """The ledger begins again at a REBUILD record of its own; seq goes on from what was published."""
        next_seq = max([meta.next_seq, *(seq + 1 for seq in decided_in(tail))])
        topic_id = await self._log.topic_id()
        rebuild = RebuildEvent(config=self._config, next_seq=next_seq, reason=reason, **self._now())
        offset = await self._append(rebuild)
        begun = Meta(
            epoch=meta.epoch,
            topic_id=topic_id,
            cluster_uid=cluster_uid,
            next_offset=offset,
            next_seq=next_seq,
            published=next_seq,
        )
        await self._ledger.begin(self._cell, begun)
        log.warning("rebuilding: %s", reason, extra={"cell": self._cell, "epoch": meta.epoch})
        return begun

    @property
    def _config(self) -> CellConfig:
        home = self._settings.cluster
        others = (name for name in self._settings.all_clusters if name != home)
        return CellConfig(
            cell=self._cell,
            clusters=(home, *sorted(others)),
            kinds=(*KINDS, *map(listed_as, sorted(self._settings.applications))),
            policy=self._settings.policy,
            core_version=CORE_VERSION,
            half_life_ms=self._settings.half_life_seconds * 1000,
            tenure_ms=self._settings.tenure_seconds * 1000,
            patience_ms=self._settings.patience_seconds * 1000,
            reclaim_after_ms=self._settings.reclaim_after_seconds * 1000,
            start_deadline_ms=self._settings.start_deadline_seconds * 1000,
            cells=tuple(self._settings.cells),
        )

    def _now(self) -> dict[str, Any]:
        return {"time_ms": time.time_ns() // 1_000_000, "cluster": self._settings.cluster}

    async def _append(self, event: Event) -> int:
        message = EVENTS.encode(event, source=f"sluice/scheduler/{self._cell}")
        return await self._log.append(self._settings.events_topic, self._partition, [message])

    # ---- deciding

    async def _decide(self, meta: Meta, state: State, outbox: Outbox) -> None:
        next_offset, next_seq = meta.next_offset, meta.next_seq
        pace = Pace(PACE_S, full=BATCH_MAX)
        while True:
            batch = await self._feed.take(BATCH_MAX)
            self._heard_s = time.monotonic()
            for received in await self._in_sequence(batch, next_offset):
                decided: list[OutboxEntry] = []
                for record in received:
                    decided += await self._step(meta.epoch, state, record)
                commit = Commit(
                    epoch=meta.epoch,
                    expected_offset=next_offset,
                    next_offset=next_offset + len(received),
                    expected_seq=next_seq,
                    next_seq=state.cell.next_seq if state.begun else next_seq,
                    published=outbox.published,
                    changes=state.take_changes(),
                    decisions=decided,
                )
                await self._ledger.commit(self._cell, commit)
                next_offset, next_seq = commit.next_offset, commit.next_seq
                outbox.put(decided)
                metrics.observe_commit(self._cell, commit, state)
            for incoming in batch:
                incoming.acknowledge()
            await asyncio.sleep(pace.pause_s(len(batch)))

    async def _in_sequence(self, batch: list[Incoming], next_offset: int) -> list[list[Received]]:
        """The records from `next_offset` on without a hole, in pieces fit for one commit each.

        What was delivered before is left out. What the feed has skipped (an earlier owner had taken it and
        failed, or the group's offset ran ahead of the ledger) is read from the log itself.
        """
        found: list[Received] = []
        for received in (incoming.received for incoming in batch):
            expected = next_offset + len(found)
            if received.offset > expected:
                found += await self._log.events(self._partition, expected, received.offset)
            if received.offset >= expected:
                found.append(received)
        return [found[at : at + BATCH_MAX] for at in range(0, len(found), BATCH_MAX)]

    async def _step(self, epoch: Epoch, state: State, received: Received) -> list[OutboxEntry]:
        event = await self._read(received)
        if event is None:
            return []
        started = time.perf_counter()
        decisions = step(state, event)
        metrics.STEP_SECONDS.observe(time.perf_counter() - started)
        return [
            OutboxEntry(
                seq=decision.seq,
                epoch=epoch,
                ce_type=DECISIONS.ce_type(decision.type),
                value=DECISIONS.value(decision),
            )
            for decision in decisions
        ]

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
