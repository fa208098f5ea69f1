"""Outcomes into the input log: in batches, and counted as given once Kafka has acknowledged them."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Protocol

from sluice.codec import EVENTS, Message
from sluice.events import OutcomeEvent
from sluice.pace import Pace

from sluice_actuator.tenure import Job

#: Between two appends, at least: nobody waits for an outcome of what went well.
PACE_S: Final = 0.05


class Log(Protocol):
    """Where records are appended: in order, and acknowledged on return."""

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        """The offset of the last."""


class Outcomes:
    """The first goes at once; what comes while an append is under way, or just was, goes together."""

    def __init__(self, log: Log, *, topic: str, source: str) -> None:
        self._log = log
        self._topic = topic
        self._source = source
        self._ready: defaultdict[int, list[tuple[Job, OutcomeEvent]]] = defaultdict(list)
        self._news = asyncio.Event()

    def put(self, job: Job, outcome: OutcomeEvent) -> None:
        self._ready[job.partition].append((job, outcome))
        self._news.set()

    async def run(self) -> None:
        pace = Pace(PACE_S, asyncio.get_running_loop().time)
        while True:
            await self._news.wait()
            self._news.clear()
            ready, self._ready = self._ready, defaultdict(list)
            await asyncio.gather(*(self._append(partition, batch) for partition, batch in ready.items()))
            await asyncio.sleep(pace.pause_s(max(map(len, ready.values()))))

    async def _append(self, partition: int, batch: list[tuple[Job, OutcomeEvent]]) -> None:
        batch = [(job, outcome) for job, outcome in batch if not job.tenure.is_over]
        if not batch:
            return
        last = batch[-1][1]
        messages = [
            EVENTS.encode(replace(outcome, more=outcome is not last), source=self._source)
            for _, outcome in batch
        ]
        offset = await self._log.append(self._topic, partition, messages)
        for job, _ in batch:
            job.tenure.progress.appended(offset)
            job.tenure.progress.answer(job.offset)
