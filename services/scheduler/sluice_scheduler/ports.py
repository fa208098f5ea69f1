"""What the owner of a cell needs of the world: a log, a feed, a ledger, a lease.

Each has a real adapter (records.py, feed.py, ledger/redis.py, kube.py) and a fake; the adapters of the ledger
pass one contract suite, tests/contract/test_ledger_port.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from sluice.chain import BEGINNING
from sluice.codec import Message
from sluice.kafka import Received
from sluice.records import Records
from sluice.values import Epoch

from sluice_scheduler.core.stored.entities import Entity

# ---- the topics


class Log(Records, Protocol):
    """The topics, as the owner of a cell needs them. Closing gives up what is being appended."""

    async def append(self, topic: str, partition: int, messages: list[Message]) -> int:
        """The offset of the last, once all are acknowledged."""
        ...


@dataclass(frozen=True, slots=True)
class Incoming:
    """A record that the feed has delivered, and how to say that it is done with."""

    received: Received
    acknowledge: Callable[[], None]


class Feed(Protocol):
    """One partition's records, delivered in order."""

    async def take(self, most: int) -> list[Incoming]:
        """All records that have arrived; waits for the first."""
        ...


# ---- time


class Clock(Protocol):
    def now_ms(self) -> int: ...

    def monotonic_s(self) -> float: ...

    async def sleep(self, seconds: float) -> None: ...


# ---- the lease


class LeaseError(Exception):
    """The Lease could not be written: nobody may own the cell on our word."""


class Lease(Protocol):
    async def write(self, cell: str, holder: str) -> tuple[str, int]:
        """The uid of the home cluster, and the resourceVersion that the write was given."""
        ...


# ---- the ledger


#: The version of what a ledger stores. Raise it whenever an entity's fields or the meaning of one change: a
#: ledger of an older version is rebuilt from a re-list, which is always safe; there are no migrations to get
#: wrong. tests/contract/test_ledger_schema.py notices a change of fields.
SCHEMA: Final = 3


class LedgerError(Exception):
    """The ledger is not where its writer believed: load it again."""


class SilentLedgerError(LedgerError):
    """Its server gives no answer."""


class UnreadableLedgerError(LedgerError):
    """What the ledger holds can't be made sense of, and says why: rebuild it."""


class NewerLedgerError(LedgerError):
    """A newer version of the scheduler wrote the ledger: leave it alone."""

    def __init__(self, cell: str, schema: int) -> None:
        super().__init__(
            f"cell {cell}: its ledger has schema {schema}, written by a newer scheduler, and this one reads "
            f"schema {SCHEMA}. Run the newer version again; or give this ledger up, and it is rebuilt from "
            "the cluster (docs/runbook.md, A ledger of another version)"
        )


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
    told_ms: int = 0  # and every status that was told before this time of the cell
    chain: str = BEGINNING  # the hash of the decision before `next_seq`
    schema: int = SCHEMA
    flaw: str = ""  # why the rest of this says nothing

    @property
    def unusable(self) -> str:
        """Why this ledger must be rebuilt; empty for one that can be read."""
        if self.flaw:
            return self.flaw
        if not self.topic_id:
            return "the ledger is empty"
        if self.schema < SCHEMA:
            return f"the ledger has schema {self.schema}, of an older version, and this one reads {SCHEMA}"
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEntry:
    """A decision as it will be published: the epoch that committed it, its type and its bytes."""

    seq: int  # 0 of a status, which no ledger keeps
    epoch: Epoch
    ce_type: str
    value: bytes
    previous: str = ""  # the hash of the decision before it; empty of a status

    def pack(self) -> bytes:
        return f"{self.epoch} {self.ce_type} {self.previous}\n".encode() + self.value

    @classmethod
    def unpack(cls, seq: int, packed: bytes) -> OutboxEntry:
        head, _, value = packed.partition(b"\n")
        epoch, ce_type, previous = head.decode().split(" ")
        return cls(seq=seq, epoch=Epoch.parse(epoch), ce_type=ce_type, value=value, previous=previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One batch: what it changed, how far it read, what it decided. Statuses are no part of it."""

    epoch: Epoch
    expected_offset: int
    next_offset: int
    expected_seq: int
    next_seq: int
    published: int
    told_ms: int = 0
    chain: str = BEGINNING
    changes: dict[str, Entity | None]
    decisions: Sequence[OutboxEntry]


class Ledger(Protocol):
    async def known_epoch(self, cell: str) -> tuple[Epoch | None, str]:
        """The epoch that has the cell, and the uid of the cluster that minted it."""
        ...

    async def acquire(self, cell: str, epoch: Epoch) -> Meta:
        """Fence off every earlier epoch. FencedError if a later one has the cell; NewerLedgerError, and
        nothing is changed, if the ledger is of a newer schema."""
        ...

    async def begin(self, cell: str, meta: Meta) -> None:
        """Start the ledger at `meta`, empty, with the present schema."""
        ...

    async def load(self, cell: str) -> tuple[list[Entity], list[OutboxEntry]]:
        """Every entity, and the outbox in order of seq. UnreadableLedgerError if there is any doubt."""
        ...

    async def commit(self, cell: str, commit: Commit) -> None:
        """All of it or nothing."""
        ...
