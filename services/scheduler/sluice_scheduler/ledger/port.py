"""What the shell asks of a ledger. The fake in tests/fakes and Redis pass the same contract suite."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice.values import Epoch

from sluice_scheduler.core.stored.entities import Entity


class LedgerError(Exception):
    """The ledger is not where its writer believed: load it again."""


class FencedError(LedgerError):
    """A later epoch has the cell: stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """Where a ledger stands. It has not begun while `topic_id` is empty."""

    epoch: Epoch
    topic_id: str = ""
    cluster_uid: str = ""
    next_offset: int = 0
    next_seq: int = 1
    published: int = 1  # every decision below this seq is in Kafka


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """A decision as it will be published: the epoch that committed it, its type and its bytes."""

    seq: int
    epoch: Epoch
    ce_type: str
    value: bytes

    def pack(self) -> bytes:
        return f"{self.epoch} {self.ce_type}\n".encode() + self.value

    @classmethod
    def unpack(cls, seq: int, packed: bytes) -> OutboxEntry:
        head, _, value = packed.partition(b"\n")
        epoch, _, ce_type = head.decode().partition(" ")
        return cls(seq=seq, epoch=Epoch.parse(epoch), ce_type=ce_type, value=value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One batch: what it changed, how far it read, what it decided."""

    epoch: Epoch
    expected_offset: int
    next_offset: int
    expected_seq: int
    next_seq: int
    published: int
    changes: dict[str, Entity | None]
    decisions: Sequence[OutboxEntry]


class Ledger(Protocol):
    async def known_epoch(self, cell: str) -> tuple[Epoch | None, str]:
        """The epoch that has the cell, and the uid of the cluster that minted it."""
        ...

    async def acquire(self, cell: str, epoch: Epoch) -> Meta:
        """Fence off every earlier epoch. FencedError if a later one has the cell."""
        ...

    async def begin(self, cell: str, meta: Meta) -> None:
        """Start the ledger at `meta`, empty."""
        ...

    async def load(self, cell: str) -> tuple[list[Entity], list[OutboxEntry]]:
        """Every entity, and the outbox in order of seq."""
        ...

    async def commit(self, cell: str, commit: Commit) -> None:
        """All of it or nothing."""
        ...
