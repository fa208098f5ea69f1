"""Reads decisions, carries them out, answers each with an outcome.

decisions ──► intake ──► lanes ──► settle(effect) ──► outcomes ──► events
              new?      in order    until it is          │
             fenced?   per object      known             └──► progress ──► the group's offsets
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Protocol

from sluice.codec import UnreadableRecordError
from sluice.decisions import Fence, ObjectDecision, ReportPool, ReportQueue
from sluice.events import OutcomeEvent, Result
from sluice.kafka import DEAD_LETTER_PREFIX, Received, dead_letter
from sluice.settings import Settings

from sluice_actuator import metrics
from sluice_actuator.clock import Clock
from sluice_actuator.effects import Effects, Outcome
from sluice_actuator.history import DivergenceError, Standing
from sluice_actuator.intake import Intake, Job
from sluice_actuator.kube import Cluster
from sluice_actuator.order import Lanes
from sluice_actuator.outcomes import Answered, Log, Outcomes
from sluice_actuator.progress import Progress
from sluice_actuator.settle import FENCED_OUT, settle

#: API calls under way at a time.
IN_FLIGHT_MAX: Final = 32
#: Decisions read ahead of those; reading waits beyond.
WAITING_MAX: Final = 5_000
POLL_S: Final = 0.5
COMMIT_INTERVAL_S: Final = 1.0
#: A divergence shows in /readyz and /metrics this long before the service ends: longer than two scrapes.
ALARM_S: Final = 45.0

#: What the log topic says of every outcome, the service's own log says only where somebody may want to act.
_LEVELS: Final[Mapping[Result, int]] = defaultdict(
    lambda: logging.DEBUG,
    {"Conflict": logging.WARNING, "Rejected": logging.WARNING, "Failed": logging.ERROR},
)
_log: Final = logging.getLogger(__name__)


class Inbox(Protocol):
    """The decisions topic, read as a member of the cluster's consumer group."""

    async def poll(self, timeout_s: float) -> list[Received]: ...

    async def commit(self, next_offsets: Mapping[int, int]) -> bool:
        """Whether the group took it."""


class Actuator:
    """Carries out the decisions about one cluster, of every cell that spans it.

    Whatever breaks inside ends `tasks`, and with them the service. Stopping is no different from crashing:
    decisions without an acknowledged outcome are read again by the next one, and found applied or not.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        *,
        settings: Settings,
        cluster: Cluster,
        inbox: Inbox,
        log: Log,
        clock: Clock,
    ) -> None:
        self._tasks = tasks
        self._settings = settings
        self._inbox = inbox
        self._records = log
        self._clock = clock
        self._intake = Intake(settings)
        self._effects = Effects(cluster)
        self._lanes = Lanes[Job](
            tasks,
            self._carry_out,
            slots=IN_FLIGHT_MAX,
            waiting_max=WAITING_MAX,
            makes_needless=_is_newer_report,
        )
        self._progress = Progress()
        self._outcomes = Outcomes(
            log,
            topic=settings.events_topic,
            source=f"sluice-actuator/{settings.cluster}",
            progress=self._progress,
        )
        self._unsettled: defaultdict[str, dict[Job, asyncio.Future[None]]] = defaultdict(dict)
        self._diverged: dict[int, str] = {}
        metrics.IN_FLIGHT.set_function(lambda: sum(map(len, self._unsettled.values())))

    @property
    def problem(self) -> str:
        """What a person must look into, in a sentence; empty when there is nothing."""
        return "; ".join(self._diverged.values())

    async def run(self) -> None:
        self._tasks.create_task(self._outcomes.run())
        committed: dict[int, int] = {}
        due_s = 0.0
        while True:
            await self._lanes.room()
            for received in await self._inbox.poll(POLL_S):
                self._take(received)
            offsets = self._progress.offsets()
            if offsets != committed and time.monotonic() >= due_s:
                if await self._inbox.commit(offsets):
                    committed = offsets
                due_s = time.monotonic() + COMMIT_INTERVAL_S

    def _take(self, received: Received) -> None:
        if received.partition in self._diverged:
            return
        self._progress.begin(received.partition, received.offset)
        try:
            job = self._intake.decode(received)
            standing = self._intake.place(job, received.value or b"")
        except UnreadableRecordError as error:
            self._tasks.create_task(self._set_aside(received, str(error)))
        except DivergenceError as error:
            self._stop_cell(job, str(error))
        else:
            self._begin(job, standing)

    def _begin(self, job: Job, standing: Standing) -> None:
        decision = job.decision
        if standing is Standing.DUPLICATE:
            metrics.DUPLICATES.labels(decision.cell).inc()
            self._progress.answered(job.partition, job.offset)
        elif decision.cluster != self._settings.cluster:
            self._progress.answered(job.partition, job.offset)
        elif standing is Standing.FENCED:
            self._answer(job, FENCED_OUT)
        elif isinstance(decision, ObjectDecision):
            self._unsettled[decision.cell][job] = asyncio.get_running_loop().create_future()
            needless = self._lanes.put(decision.uid, job)
            if needless is not None:
                self._settled(needless, Outcome("Superseded", f"decision {decision.seq} says it anew"))
        elif isinstance(decision, Fence):
            self._tasks.create_task(self._answer_fence(job))
        else:  # a Resync is the watcher's to answer
            self._progress.answered(job.partition, job.offset)

    async def _carry_out(self, job: Job) -> None:
        assert isinstance(job.decision, ObjectDecision)
        outcome = await settle(
            self._effects.of(job.decision, job.identity),
            now_ms=self._clock.now_ms,
            pause=lambda seconds: self._lanes.pause(self._clock.sleep(seconds)),
            fenced=lambda: self._intake.fences(job),
        )
        self._settled(job, outcome)

    async def _answer_fence(self, job: Job) -> None:
        """Once a fence is read nothing older makes another call; those under way come to an end."""
        older = list(self._unsettled[job.decision.cell].values())
        if older:
            await asyncio.wait(older)
        self._answer(job, Outcome("Applied"))

    def _settled(self, job: Job, outcome: Outcome) -> None:
        self._unsettled[job.decision.cell].pop(job).set_result(None)
        self._answer(job, outcome)

    def _answer(self, job: Job, outcome: Outcome) -> None:
        decision = job.decision
        metrics.DECISIONS.labels(decision.cell, decision.type, outcome.result).inc()
        metrics.DECISION_SECONDS.labels(decision.type).observe(time.monotonic() - job.read_s)
        level = _LEVELS[outcome.result]
        if _log.isEnabledFor(level):
            _log.log(level, "%s: %s %s", decision.type, outcome.result, outcome.message, extra=_about(job))
        event = OutcomeEvent(
            time_ms=self._clock.now_ms(),
            cluster=self._settings.cluster,
            seq=decision.seq,
            epoch=str(job.epoch),
            decision=decision.type,
            result=outcome.result,
            message=outcome.message,
        )
        self._outcomes.put(Answered(partition=job.partition, offset=job.offset, outcome=event))

    async def _set_aside(self, received: Received, error: str) -> None:
        topic = self._settings.decisions_topic
        message = dead_letter(received, topic=topic, error=error)
        await self._records.append(DEAD_LETTER_PREFIX + topic, received.partition, [message])
        self._progress.answered(received.partition, received.offset)
        metrics.DEAD_LETTERS.inc()
        event = f"{topic}/{received.partition}/{received.offset}"
        _log.error("set aside as unreadable: %s", error, extra={"event": event})

    def _stop_cell(self, job: Job, error: str) -> None:
        """Nothing further of the cell is carried out, nor passed in the group: the next service stops too."""
        cell = job.decision.cell
        sentence = f"cell {cell} is stopped: {error} (docs/runbook.md, divergence)"
        self._diverged[job.partition] = sentence
        metrics.DIVERGENCES.labels(cell).inc()
        _log.critical("%s", sentence, extra=_about(job))
        self._tasks.create_task(self._end_after_alarm(sentence))

    async def _end_after_alarm(self, sentence: str) -> None:
        await self._clock.sleep(ALARM_S)
        raise DivergenceError(sentence)


def _is_newer_report(later: Job, earlier: Job) -> bool:
    """Of one object's reports that wait, only the last says anything."""
    return isinstance(later.decision, ReportQueue | ReportPool) and type(later.decision) is type(
        earlier.decision
    )


def _about(job: Job) -> dict[str, object]:
    """The fields of a log line."""
    decision = job.decision
    return {
        "cell": decision.cell,
        "epoch": job.epoch,
        "seq": decision.seq,
        "event": decision.id,
        "object": decision.subject,
    }
