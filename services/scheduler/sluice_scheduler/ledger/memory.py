"""A ledger in memory, of real bytes, for simulations and tests. It passes Redis' contract suite."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sluice.values import Epoch

from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.ledger import entities
from sluice_scheduler.ports import (
    SCHEMA,
    Commit,
    FencedError,
    LedgerError,
    Meta,
    NewerLedgerError,
    OutboxEntry,
)


@dataclass(slots=True)
class _Cell:
    meta: Meta
    state: dict[str, bytes] = field(default_factory=dict)
    outbox: dict[int, bytes] = field(default_factory=dict)


class MemoryLedger:
    def __init__(self) -> None:
        self._cells: dict[str, _Cell] = {}

    async def known_epoch(self, cell: str) -> tuple[Epoch | None, str]:
        held = self._cells.get(cell)
        return (held.meta.epoch, held.meta.cluster_uid) if held else (None, "")

    async def acquire(self, cell: str, epoch: Epoch) -> Meta:
        held = self._cells.get(cell)
        if held is None:
            held = self._cells[cell] = _Cell(Meta(epoch=epoch))
        if held.meta.schema > SCHEMA:
            raise NewerLedgerError(cell, held.meta.schema)
        if epoch < held.meta.epoch:
            raise FencedError(f"cell {cell} belongs to epoch {held.meta.epoch}")
        held.meta = replace(held.meta, epoch=epoch)
        return held.meta

    async def begin(self, cell: str, meta: Meta) -> None:
        held = self._held(cell, meta.epoch)
        held.meta = replace(meta, published=meta.next_seq, schema=SCHEMA)
        held.state.clear()
        held.outbox.clear()

    async def load(self, cell: str) -> tuple[list[Entity], list[OutboxEntry]]:
        held = self._cells.get(cell)
        if held is None:
            return [], []
        entities.check_schema(held.meta.schema)
        return entities.load_all(held.state), entities.load_outbox(held.outbox)

    async def commit(self, cell: str, commit: Commit) -> None:
        self.write(cell, commit)

    def write(self, cell: str, commit: Commit) -> None:
        held = self._held(cell, commit.epoch)
        if commit.expected_offset != held.meta.next_offset:
            raise LedgerError(f"cell {cell}: the ledger's offset is {held.meta.next_offset}")
        if commit.expected_seq != held.meta.next_seq:
            raise LedgerError(f"cell {cell}: the ledger's seq is {held.meta.next_seq}")
        for key, entity in commit.changes.items():
            if entity is None:
                held.state.pop(key, None)
            else:
                held.state[key] = entities.dump(entity)
        for entry in commit.decisions:
            held.outbox[entry.seq] = entry.pack()
        for seq in range(held.meta.published, commit.published):
            held.outbox.pop(seq, None)
        held.meta = replace(
            held.meta,
            next_offset=commit.next_offset,
            next_seq=commit.next_seq,
            published=commit.published,
            told_ms=commit.told_ms,
            chain=commit.chain,
        )

    async def close(self) -> None:
        """Nothing to close."""

    def _held(self, cell: str, epoch: Epoch) -> _Cell:
        held = self._cells.get(cell)
        if held is None:
            raise LedgerError(f"cell {cell}: the ledger is lost")
        if held.meta.epoch != epoch:
            raise FencedError(f"cell {cell} belongs to epoch {held.meta.epoch}")
        return held
