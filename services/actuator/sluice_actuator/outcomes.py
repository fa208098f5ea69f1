"""Outcomes into the input log: whatever is ready goes together, and counts once Kafka has acknowledged it."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from sluice.codec import EVENTS, Message
from sluice.events import OutcomeEvent

from sluice_actuator.progress import Progress


class Log(Protocol):
    """Where records are appended: in order, and acknowledged on return."""

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """The outcome of the decision that was read there."""

    partition: int
    offset: int
    outcome: OutcomeEvent


class Outcomes:
    """Collects while an append is under way, so that batches grow with the load and nobody waits for one."""

    def __init__(self, log: Log, *, topic: str, source: str, progress: Progress) -> None:
        self._log = log
        self._topic = topic
        self._source = source
        self._progress = progress
        self._ready: defaultdict[int, list[Answered]] = defaultdict(list)
        self._news = asyncio.Event()

    def put(self, answered: Answered) -> None:
        self._ready[answered.partition].append(answered)
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            ready, self._ready = self._ready, defaultdict(list)
            await asyncio.gather(*(self._append(partition, batch) for partition, batch in ready.items()))

    async def _append(self, partition: int, batch: Sequence[Answered]) -> None:
        last = batch[-1]
        messages = [
            EVENTS.encode(replace(each.outcome, more=each is not last), source=self._source) for each in batch
        ]
        await self._log.append(self._topic, partition, messages)
        for each in batch:
            self._progress.answered(partition, each.offset)
