"""The outbox: what is committed goes to the decisions topic, in order of seq, and never with other bytes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress

from sluice.codec import DECISIONS, EPOCH_HEADER, Message, UnreadableRecordError, find_header
from sluice.kafka import Received
from sluice.settings import Settings
from sluice.values import Epoch

from sluice_scheduler import metrics
from sluice_scheduler.ports import Log, OutboxEntry

log = logging.getLogger(__name__)


class DivergenceError(Exception):
    """A decision was published before with other bytes: never go on."""


class Outbox:
    """Publishes committed decisions in order of seq; what a crash left unpublished comes first."""

    def __init__(
        self,
        *,
        log: Log,
        settings: Settings,
        cell: str,
        published: int,
        waiting: list[OutboxEntry],
        tail: list[Received],
    ) -> None:
        self._log = log
        self._topic = settings.decisions_topic
        self._partition = settings.cells[cell]
        self._cell = cell
        self._waiting = [entry for entry in waiting if entry.seq >= published]
        self._arrived = asyncio.Event()
        self._in_log = decided_in(tail)
        #: Every decision below this seq is in Kafka.
        self.published = published

    def put(self, entries: list[OutboxEntry]) -> None:
        if entries:
            self._waiting += entries
            self._arrived.set()

    async def publish(self) -> None:
        while True:
            entries, self._waiting = self._waiting, []
            if entries:
                missing = [entry for entry in entries if not self._is_in_log(entry)]
                if missing:
                    messages = [self._message(entry) for entry in missing]
                    await self._log.append(self._topic, self._partition, messages)
                self.published = entries[-1].seq + 1
            else:
                self._arrived.clear()
                await self._arrived.wait()

    def _is_in_log(self, entry: OutboxEntry) -> bool:
        """Whether it was published before the ledger could say so, or before it lost its last writes."""
        before = self._in_log.pop(entry.seq, None)
        if before is not None and before != entry.value:
            metrics.DIVERGENCES.labels(self._cell).inc()
            log.critical(
                "divergence: decided %r, but published before was %r",
                entry.value,
                before,
                extra={"cell": self._cell, "epoch": entry.epoch, "seq": entry.seq},
            )
            raise DivergenceError(f"cell {self._cell}, seq {entry.seq}")
        return before is not None

    def _message(self, entry: OutboxEntry) -> Message:
        decision = DECISIONS.decode_as(entry.ce_type, entry.value)
        return DECISIONS.encode(decision, source=f"sluice/scheduler/{self._cell}", epoch=entry.epoch)


# What stands at the end of the decision log is not always a scheduler's, or not of this version. Readers set
# such a record aside; a cell that could not be taken over for it would stand still as long as it is there.


def decided_in(tail: Iterable[Received]) -> dict[int, bytes | None]:
    """The decisions that can be read, by seq."""
    found = {}
    for received in tail:
        with suppress(UnreadableRecordError):
            found[DECISIONS.decode(received.headers, received.value).seq] = received.value
    return found


def epochs_in(tail: Iterable[Received]) -> list[Epoch]:
    """Under which they were published."""
    found = []
    for received in tail:
        with suppress(ValueError):
            found.append(Epoch.parse(find_header(received.headers, EPOCH_HEADER) or ""))
    return found
