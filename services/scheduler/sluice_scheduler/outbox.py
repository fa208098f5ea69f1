"""The outbox: what is committed goes to the decisions topic, in order of seq, and never with other bytes.

Statuses go along. They have no seq, and no ledger keeps them: it only knows up to which time of the cell they
were published, and after a take-over those that were told later are told again.
"""

from __future__ import annotations

import asyncio
import logging

from sluice.codec import DECISIONS, Message
from sluice.settings import Settings

from sluice_scheduler import metrics
from sluice_scheduler.ports import Log, OutboxEntry
from sluice_scheduler.published import DivergenceError, Published

log = logging.getLogger(__name__)


class Outbox:
    """Publishes committed decisions in order of seq; what a crash left unpublished comes first."""

    def __init__(
        self,
        *,
        log: Log,
        settings: Settings,
        cell: str,
        published: int,
        told_ms: int,
        waiting: list[OutboxEntry],
        before: Published,
    ) -> None:
        self._log = log
        self._topic = settings.decisions_topic
        self._partition = settings.cells[cell]
        self._cell = cell
        self._waiting = [entry for entry in waiting if entry.seq >= published]
        self._arrived = asyncio.Event()
        self._arrived.set()
        self._before = before
        self._time_ms = told_ms
        #: Every decision below this seq is in Kafka, and every status that was told before this time of the cell.
        self.published, self.told_ms = published, told_ms

    def put(self, entries: list[OutboxEntry], *, time_ms: int) -> None:
        """Take up what was committed at this time of the cell."""
        self._waiting += entries
        self._time_ms = time_ms
        self._arrived.set()

    async def publish(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            entries, self._waiting, time_ms = self._waiting, [], self._time_ms
            missing = [entry for entry in entries if not await self._is_in_log(entry)]
            if missing:
                messages = [self._message(entry) for entry in missing]
                await self._log.append(self._topic, self._partition, messages)
            self.published = max([self.published, *(entry.seq + 1 for entry in entries)])
            self.told_ms = time_ms

    async def _is_in_log(self, entry: OutboxEntry) -> bool:
        """Whether it was published before the ledger could say so, or before it lost its last writes."""
        try:
            return await self._before.holds(entry)
        except DivergenceError as error:
            metrics.DIVERGENCES.labels(self._cell).inc()
            details = {"cell": self._cell, "epoch": entry.epoch, "seq": entry.seq}
            log.critical("divergence: %s", error, extra=details)
            raise DivergenceError(f"cell {self._cell}, seq {entry.seq}") from error

    def _message(self, entry: OutboxEntry) -> Message:
        decision = DECISIONS.decode_as(entry.ce_type, entry.value)
        source = f"sluice/scheduler/{self._cell}"
        return DECISIONS.encode(decision, source=source, epoch=entry.epoch, previous=entry.previous)
