"""The outbox: what is committed goes to the decisions topic, in order of seq, and never with other bytes."""

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
        waiting: list[OutboxEntry],
        before: Published,
    ) -> None:
        self._log = log
        self._topic = settings.decisions_topic
        self._partition = settings.cells[cell]
        self._cell = cell
        self._waiting = [entry for entry in waiting if entry.seq >= published]
        self._arrived = asyncio.Event()
        self._before = before
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
                missing = [entry for entry in entries if not await self._is_in_log(entry)]
                if missing:
                    messages = [self._message(entry) for entry in missing]
                    await self._log.append(self._topic, self._partition, messages)
                self.published = max(self.published, *(entry.seq + 1 for entry in entries))
            else:
                self._arrived.clear()
                await self._arrived.wait()

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
        return DECISIONS.encode(decision, source=f"sluice/scheduler/{self._cell}", epoch=entry.epoch)
