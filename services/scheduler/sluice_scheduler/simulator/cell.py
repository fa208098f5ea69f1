"""A cell without servers: events, decisions and commits pass through the bytes that the real one writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from sluice.codec import DECISIONS, EVENTS
from sluice.decisions import Decision, Fence, Resync
from sluice.events import CellConfig, Event, OutcomeEvent, RebuildEvent, SyncEvent, TickEvent
from sluice.values import Epoch

from sluice_scheduler.core import CORE_VERSION, State, step
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.ledger import Commit, Meta, OutboxEntry
from sluice_scheduler.ledger.memory import MemoryLedger

CLUSTER: Final = "sim"
CELL: Final = "default"
CONFIG: Final = CellConfig(
    cell=CELL, clusters=(CLUSTER,), kinds=("queue",), policy="drf", core_version=CORE_VERSION
)
_EPOCH: Final = Epoch(1, 1)


class SimulatedCell:
    def __init__(
        self, policies: Mapping[str, Policy], config: CellConfig = CONFIG, *, tells: bool = True
    ) -> None:
        """`tells`: whether statuses are; nothing is decided by them."""
        self._policies = policies
        self._tells = tells
        self._ledger = MemoryLedger()
        self._offset = 0
        self._seq = 1
        self.decided = 0
        self.state = self._begun_with(())
        asyncio.run(self._begin())
        (fence,) = self.feed(
            [RebuildEvent(config=config, next_seq=1, reason="simulation", time_ms=0, cluster=CLUSTER)]
        )
        assert isinstance(fence, Fence)
        (resync,) = self.feed([outcome(fence, 0)])
        assert isinstance(resync, Resync)
        self.feed(
            [
                SyncEvent(
                    phase=phase,
                    kind="queue",
                    sync="1",
                    resource_version=0,
                    request=resync.seq,
                    time_ms=0,
                    cluster=CLUSTER,
                )
                for phase in ("BEGIN", "END")
            ]
        )
        self.decided = 0  # what follows is about the scenario

    async def _begin(self) -> None:
        await self._ledger.acquire(CELL, _EPOCH)
        await self._ledger.begin(CELL, Meta(epoch=_EPOCH, topic_id="sim", cluster_uid="sim"))

    def feed(self, events: list[Event], *, more: bool = False) -> list[Decision]:
        """Events of one moment: one input, one commit, and a pass behind the last, unless `more` follow."""
        entries: list[OutboxEntry] = []
        decisions: list[Decision] = []
        for index, event in enumerate(events):
            follows = more or index < len(events) - 1
            record = event if event.more == follows else replace(event, more=follows)
            read = EVENTS.decode_as(EVENTS.ce_type(record.type), EVENTS.value(record))
            for decision in self._step(self._offset + index, read):
                ce_type, value = DECISIONS.ce_type(decision.type), DECISIONS.value(decision)
                if decision.seq:
                    entries.append(OutboxEntry(seq=decision.seq, epoch=_EPOCH, ce_type=ce_type, value=value))
                decisions.append(DECISIONS.decode_as(ce_type, value))
        self._commit(len(events), entries)
        self.decided += len(entries)
        return decisions

    def _step(self, offset: int, event: Event) -> list[Decision]:
        return step(self.state, event)

    def restart(self) -> None:
        """Go on from what was committed, as another worker would."""
        entities, _ = asyncio.run(self._ledger.load(CELL))
        self.state = self._begun_with(entities)

    def _begun_with(self, entities: Iterable[Entity]) -> State:
        state = State(self._policies, entities)
        state.tells = self._tells
        return state

    def more_rounds(self) -> list[Decision]:
        """One more pass, though nothing has happened: what is at rest decides nothing."""
        self.state.pass_due = True
        tick = TickEvent(time_ms=self.state.cell.time_ms, cluster=CLUSTER)
        return _without_statuses(self.feed([tick]))

    def _commit(self, read: int, entries: list[OutboxEntry]) -> None:
        next_seq = self.state.cell.next_seq
        self._ledger.write(
            CELL,
            Commit(
                epoch=_EPOCH,
                expected_offset=self._offset,
                next_offset=self._offset + read,
                expected_seq=self._seq,
                next_seq=next_seq,
                published=next_seq,
                changes=self.state.take_changes(),
                decisions=entries,
            ),
        )
        self._offset += read
        self._seq = next_seq


def _without_statuses(decisions: list[Decision]) -> list[Decision]:
    return [each for each in decisions if each.seq]


def outcome(decision: Decision, time_ms: int) -> OutcomeEvent:
    return OutcomeEvent(
        seq=decision.seq,
        epoch=str(_EPOCH),
        decision=decision.type,
        result="Applied",
        time_ms=time_ms,
        cluster=CLUSTER,
    )
