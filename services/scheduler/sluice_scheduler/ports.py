"""What the owner of a cell needs of the world: a log, a feed, a ledger, a lease.

Each has a real adapter (records.py, feed.py, ledger/redis.py, kube.py) and a fake; the adapters of the ledger
pass one contract suite, tests/contract/test_ledger_port.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from sluice.codec import Message
from sluice.kafka import Received
from sluice.values import Epoch

from sluice_scheduler.core.entities import Entity

# ---- the topics


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


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record that the feed has delivered, and how to say that it is done with."""

    received: Received
    acknowledge: Callable[[], None]


class Feed(Protocol):
    """One partition's records, delivered in order."""

    async def take(self, most: int) -> list[Incoming]:
        """Whatever has arrived; waits for the first."""
        ...


# ---- the lease


class LeaseError(Exception):
    """The Lease could not be written: nobody may own the cell on our word."""


class Lease(Protocol):
    async def write(self, cell: str, holder: str) -> tuple[str, int]:
        """The uid of the home cluster, and the resourceVersion that the write was given."""
        ...


# ---- the ledger


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
