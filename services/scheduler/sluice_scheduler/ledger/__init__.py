"""The ledger: a cell's state, its place in the input log and its outbox, written in one atomic step."""

from sluice_scheduler.ports import (
    SCHEMA,
    Commit,
    FencedError,
    Ledger,
    LedgerError,
    Meta,
    NewerLedgerError,
    OutboxEntry,
    UnreadableLedgerError,
)

__all__ = [
    "SCHEMA",
    "Commit",
    "FencedError",
    "Ledger",
    "LedgerError",
    "Meta",
    "NewerLedgerError",
    "OutboxEntry",
    "UnreadableLedgerError",
]
