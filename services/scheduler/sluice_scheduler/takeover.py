"""How a cell is taken over: an epoch of one's own, a ledger that can be trusted, and what it is to publish.

    decisions' end ──► epoch ──► acquire ──► can it be trusted? ──► load ──► State, Outbox
                                              no: REBUILD, and begin

A ledger that is older than its log (a fail-over of Redis, a restored backup) can be trusted as long as the
events are there: they are stepped again, and what was published is published no second time. Statuses that may
not have been published, and all that an older ledger knows of, are told again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice.applications import listed_as
from sluice.codec import EVENTS
from sluice.events import CellConfig, ConfigEvent, Event, RebuildEvent
from sluice.settings import Settings
from sluice.values import Epoch

from sluice_scheduler import metrics
from sluice_scheduler.core import CORE_VERSION, State, repeat_statuses_since
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.outbox import Outbox
from sluice_scheduler.ports import Clock, Lease, Ledger, Log, Meta, OutboxEntry, UnreadableLedgerError
from sluice_scheduler.published import Published

log = logging.getLogger(__name__)

#: Object kinds that must be listed before anything is decided about a cluster.
KINDS: Final = ("namespace", "node", "pod", "priorityclass", "queue", "resourcepool")


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeOver:
    cell: str
    settings: Settings
    policies: Mapping[str, Policy]
    ledger: Ledger
    lease: Lease
    log: Log
    holder: str
    clock: Clock

    async def run(self) -> tuple[Meta, State, Outbox]:
        published = Published(self.log, cell=self.cell, partition=self._partition)
        epoch, cluster_uid = await self._mint(await published.epochs())
        meta = await self.ledger.acquire(self.cell, epoch)
        await published.find(since=meta.next_seq if meta.unusable else meta.published)
        meta, entities, waiting = await self._load(meta, cluster_uid, published)
        if published.last >= meta.next_seq:
            self._tell_of_rollback(meta, published)
        state = State(self.policies, entities, derives=False)
        self._tell_again(state, meta, published)
        if state.begun and state.config != self._config:
            await self._append(ConfigEvent(config=self._config, **self._now()))
        log.info(
            "took over at offset %s with %s entities",
            meta.next_offset,
            len(entities),
            extra={"cell": self.cell, "epoch": epoch, "seq": meta.next_seq},
        )
        outbox = Outbox(
            log=self.log,
            settings=self.settings,
            cell=self.cell,
            published=meta.published,
            told_ms=meta.told_ms,
            waiting=waiting,
            before=published,
        )
        return meta, state, outbox

    async def _mint(self, published: list[Epoch]) -> tuple[Epoch, str]:
        """An epoch above every earlier one: by the Lease's resourceVersion as long as that rises."""
        cluster_uid, resource_version = await self.lease.write(self.cell, self.holder)
        known, known_uid = await self.ledger.known_epoch(self.cell)
        last = max([*published, *([known] if known else [])], default=Epoch(1, 0))
        same_cluster = known_uid in ("", cluster_uid)
        rises = resource_version > last.resource_version
        generation = last.generation if same_cluster and rises else last.generation + 1
        return Epoch(generation, resource_version), cluster_uid

    async def _load(
        self, meta: Meta, cluster_uid: str, published: Published
    ) -> tuple[Meta, list[Entity], list[OutboxEntry]]:
        """What the ledger holds, or what it begins with if that can't be trusted."""
        reason = await self._why_rebuild(meta, cluster_uid)
        if not reason:
            try:
                return meta, *await self.ledger.load(self.cell)
            except UnreadableLedgerError as error:
                reason = str(error)
        meta = await self._rebuild(meta, cluster_uid, published, reason)
        return meta, *await self.ledger.load(self.cell)

    async def _why_rebuild(self, meta: Meta, cluster_uid: str) -> str:
        if meta.unusable:
            return meta.unusable
        if meta.topic_id != await self.log.topic_id():
            return "Kafka was made anew"
        if meta.cluster_uid != cluster_uid:
            return "the home cluster is another one"
        first, end = await self.log.bounds(self._partition)
        if not first <= meta.next_offset <= end:
            return f"the log holds offsets {first} to {end}, the ledger stands at {meta.next_offset}"
        return ""

    async def _rebuild(self, meta: Meta, cluster_uid: str, published: Published, reason: str) -> Meta:
        """The ledger begins again at a REBUILD record of its own; seq goes on from what was published."""
        next_seq = max(meta.next_seq, published.unused)
        topic_id = await self.log.topic_id()
        rebuild = RebuildEvent(
            config=self._config, next_seq=next_seq, reason=reason, previous=published.hash, **self._now()
        )
        offset = await self._append(rebuild)
        begun = Meta(
            epoch=meta.epoch,
            topic_id=topic_id,
            cluster_uid=cluster_uid,
            next_offset=offset,
            next_seq=next_seq,
            published=next_seq,
            chain=published.hash,
        )
        await self.ledger.begin(self.cell, begun)
        log.warning("rebuilding: %s", reason, extra={"cell": self.cell, "epoch": meta.epoch})
        return begun

    def _tell_again(self, state: State, meta: Meta, published: Published) -> None:
        """Statuses that may not be in Kafka. A ledger that came back older knows of none that was told later,
        so nobody knows what objects show: then all are told again."""
        if state.begun:
            is_older = published.time_ms > state.now_ms
            repeat_statuses_since(state, 0 if is_older else meta.told_ms)

    def _tell_of_rollback(self, meta: Meta, published: Published) -> None:
        metrics.ROLLBACKS.labels(self.cell).inc()
        log.warning(
            "the ledger came back older: it stands before seq %s, and decisions up to %s are published; "
            "the events from offset %s on are stepped again",
            meta.next_seq,
            published.last,
            meta.next_offset,
            extra={"cell": self.cell, "epoch": meta.epoch, "seq": meta.next_seq},
        )

    @property
    def _partition(self) -> int:
        return self.settings.cells[self.cell]

    @property
    def _config(self) -> CellConfig:
        home = self.settings.cluster
        others = (name for name in self.settings.all_clusters if name != home)
        return CellConfig(
            cell=self.cell,
            clusters=(home, *sorted(others)),
            kinds=(*KINDS, *map(listed_as, sorted(self.settings.applications))),
            policy=self.settings.policy,
            core_version=CORE_VERSION,
            half_life_ms=self.settings.half_life_seconds * 1000,
            tenure_ms=self.settings.tenure_seconds * 1000,
            patience_ms=self.settings.patience_seconds * 1000,
            reclaim_after_ms=self.settings.reclaim_after_seconds * 1000,
            start_deadline_ms=self.settings.start_deadline_seconds * 1000,
            cells=tuple(self.settings.cells),
        )

    def _now(self) -> dict[str, Any]:
        return {"time_ms": self.clock.now_ms(), "cluster": self.settings.cluster}

    async def _append(self, event: Event) -> int:
        message = EVENTS.encode(event, source=f"sluice/scheduler/{self.cell}")
        return await self.log.append(self.settings.events_topic, self._partition, [message])
