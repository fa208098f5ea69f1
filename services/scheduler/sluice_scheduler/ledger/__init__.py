"""The ledger: a cell's state, its place in the input log and its outbox, written in one atomic step."""

from sluice_scheduler.ports import (
    Commit,
    FencedError,
    Ledger,
    LedgerError,
    Meta,
    OutboxEntry,
)

__all__ = ["Commit", "FencedError", "Ledger", "LedgerError", "Meta", "OutboxEntry"]
