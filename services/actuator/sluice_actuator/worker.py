"""Reads decisions, carries them out, answers each with an outcome.

decisions ──► history ──► lanes ──► settle(effect) ──► outcomes ──► events
               new?      in order    until it is          │
              fenced?   per object      known             └──► progress ──► the group's offsets
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict, deque
from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Final, Protocol

from sluice.codec import UnreadableRecordError
from sluice.decisions import Delete, Fence, ObjectDecision, Report, Resync
from sluice.events import OutcomeEvent, Result
from sluice.kafka import DEAD_LETTER_PREFIX, Position, Received, dead_letter
from sluice.settings import Settings

from sluice_actuator import metrics
from sluice_actuator.clock import Clock
from sluice_actuator.effects import Effects, Outcome
from sluice_actuator.history import DivergenceError, Standing
from sluice_actuator.intake import decode
from sluice_actuator.kube import Cluster
from sluice_actuator.order import Lanes
from sluice_actuator.outcomes import Log, Outcomes
from sluice_actuator.recall import Records, counts, recall
from sluice_actuator.settle import settle
from sluice_actuator.tenure import Job, Tenure

#: API calls under way at a time.
IN_FLIGHT_MAX: Final = 32
#: Decisions taken up and not settled; reading waits beyond.
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
#: A status is answered only if it has to be told again.
_NO_NEWS: Final = ("Applied", "AlreadyApplied", "Superseded")
_log: Final = logging.getLogger(__name__)


class Inbox(Protocol):
    """The decisions topic, read as a member of the cluster's consumer group."""

    @property
    def assigned(self) -> Mapping[int, int]:
        """The partitions that are this member's now, and by which hand-out of the group."""

    @property
    def joined(self) -> bool:
        """Whether the group has taken it in, if only to stand by."""

    async def poll(self, timeout_s: float) -> list[Received]: ...

    async def stand_by(self, timeout_s: float) -> list[Received]:
        """Stay a member and read nothing; what the group hands out just now may come all the same."""

    async def commit(self, positions: Mapping[int, Position]) -> bool:
        """Whether the group took it."""

    async def committed(self, partition: int) -> Position | None: ...

    async def begin_anew(self, partition: int) -> None:
        """Read the partition from its beginning on."""


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
        decisions: Records,
        events: Records,
        log: Log,
        clock: Clock,
        topics: str = "",
        random: Random | None = None,
    ) -> None:
        """`topics`: the id of both topics together."""
        self._tasks = tasks
        self._settings = settings
        self._inbox = inbox
        self._decisions = decisions
        self._events = events
        self._records = log
        self._clock = clock
        self._topics = topics
        self._random = random or Random()
        self._effects = Effects(cluster, termination_s=settings.termination_seconds)
        self._lanes = Lanes[Job](
            tasks,
            self._carry_out,
            slots=IN_FLIGHT_MAX,
            waiting_max=WAITING_MAX,
            makes_needless=_is_newer_report,
        )
        self._outcomes = Outcomes(
            log, topic=settings.events_topic, source=f"sluice-actuator/{settings.cluster}"
        )
        self._tenures: dict[int, Tenure] = {}
        #: What was read and not taken up yet, for want of room.
        self._read: deque[tuple[Received, Tenure]] = deque()
        metrics.IN_FLIGHT.set_function(lambda: sum(len(each.unsettled) for each in self._tenures.values()))

    @property
    def unready(self) -> str:
        """What is missing or must be looked into, in a sentence; empty when all is well."""
        if not self._inbox.joined:
            return "the consumer group has not taken this actuator in yet"
        return "; ".join(tenure.problem for tenure in self._tenures.values() if tenure.problem)

    async def run(self) -> None:
        self._tasks.create_task(self._outcomes.run())
        loop = asyncio.get_running_loop()
        committed: dict[int, Position] = {}
        due_s = 0.0
        while True:
            await self._read_on()
            self._take_up()
            positions = {
                partition: position
                for partition, tenure in self._tenures.items()
                if (position := tenure.progress.position) is not None
            }
            if positions != committed and loop.time() >= due_s:
                if await self._inbox.commit(positions):
                    committed = positions
                due_s = loop.time() + COMMIT_INTERVAL_S

    async def _read_on(self) -> None:
        """Read, if there is room for more. The group is attended to in any case, or it would give us up."""
        if self._lanes.has_room and not self._read:
            received = await self._inbox.poll(POLL_S)
        else:
            received = await self._inbox.stand_by(POLL_S)
        began_anew = await self._keep_tenures()
        self._read.extend(
            (each, self._tenures[each.partition])
            for each in received
            if each.partition in self._tenures and each.partition not in began_anew
        )

    def _take_up(self) -> None:
        while self._read and self._lanes.has_room:
            received, tenure = self._read.popleft()
            if not tenure.is_over:
                self._take(received, tenure)

    async def _keep_tenures(self) -> set[int]:
        """Begin one for each partition that was handed out, and end those that were taken away. Returns those whose
        records are to be read from the first one on, whatever was read of them just now."""
        began_anew = set()
        self._tenures = {p: tenure for p, tenure in self._tenures.items() if not tenure.is_over}
        for partition, hand_out in self._inbox.assigned.items():
            if partition in self._tenures:
                continue
            committed = await self._inbox.committed(partition)
            if committed is not None and not counts(committed, self._topics):
                await self._inbox.begin_anew(partition)
                began_anew.add(partition)
                committed = None
            tenure = await recall(
                partition,
                committed,
                topics=self._topics,
                decisions=self._decisions,
                events=self._events,
                cells=self._settings.cells,
                cluster=self._settings.cluster,
                is_over=partial(self._is_over, partition, hand_out),
            )
            self._tenures[partition] = tenure
            _log.info("partition %d is ours; %d decisions have outcomes", partition, len(tenure.answered))
        return began_anew

    def _is_over(self, partition: int, hand_out: int) -> bool:
        return self._inbox.assigned.get(partition) != hand_out

    def _take(self, received: Received, tenure: Tenure) -> None:
        if tenure.problem:
            return
        tenure.progress.begin(received.offset)
        try:
            decision, epoch = decode(received, self._settings.cells)
        except UnreadableRecordError as error:
            self._tasks.create_task(self._set_aside(received, tenure, str(error)))
            return
        job = Job(
            decision=decision,
            epoch=epoch,
            partition=received.partition,
            offset=received.offset,
            tenure=tenure,
        )
        try:
            standing = tenure.history.take(decision, epoch=epoch, value=received.value or b"")
        except DivergenceError as error:
            self._stop_cell(job, str(error))
        else:
            self._begin(job, standing)

    def _begin(self, job: Job, standing: Standing) -> None:
        decision, tenure = job.decision, job.tenure
        if standing is not Standing.NEW:
            # No outcome: what is behind a fence has no place in the ledger, and another decision has its seq.
            metrics.DROPPED(decision.cell, standing.value).inc()
            tenure.progress.answer(job.offset)
        elif not self._is_ours(job):
            tenure.progress.answer(job.offset)
        elif isinstance(decision, Fence):
            self._tasks.create_task(self._answer_fence(job))
        elif isinstance(decision, ObjectDecision):
            tenure.unsettled[job] = asyncio.get_running_loop().create_future()
            needless = self._lanes.put(decision.uid, job)
            if needless is not None:
                self._settled(needless, Outcome("Superseded", "a later status says it anew"))

    def _is_ours(self, job: Job) -> bool:
        """It is for this cluster and for an actuator (a Resync is the watcher's), and has no outcome yet. What shows an
        application was made by a status, which has none and is carried out again: so its deletion is, too."""
        decision = job.decision
        return (
            decision.cluster == self._settings.cluster
            and not isinstance(decision, Resync)
            and (
                not job.was_answered or (isinstance(decision, Delete) and decision.about == "dynamicworkload")
            )
        )

    async def _carry_out(self, job: Job) -> None:
        assert isinstance(job.decision, ObjectDecision)
        outcome = await settle(
            self._effects.of(job.decision, job.identity),
            now_ms=self._clock.now_ms,
            pause=lambda seconds: self._lanes.pause(self._clock.sleep(seconds)),
            barred=lambda: job.is_barred,
            random=self._random,
        )
        self._settled(job, outcome)

    async def _answer_fence(self, job: Job) -> None:
        """Once a fence is read nothing older makes another call; those under way come to an end."""
        older = list(job.tenure.unsettled.values())
        if older:
            await asyncio.wait(older)
        self._answer(job, Outcome("Applied"))

    def _settled(self, job: Job, outcome: Outcome) -> None:
        job.tenure.unsettled.pop(job).set_result(None)
        self._answer(job, outcome)

    def _answer(self, job: Job, outcome: Outcome) -> None:
        decision = job.decision
        metrics.DECISIONS(decision.cell, decision.type, outcome.result).inc()
        metrics.DECISION_SECONDS(decision.type).observe(time.monotonic() - job.read_s)
        level = _LEVELS[outcome.result]
        if _log.isEnabledFor(level):
            _log.log(level, "%s: %s %s", decision.type, outcome.result, outcome.message, extra=_about(job))
        if job.was_answered or (not decision.seq and outcome.result in _NO_NEWS):
            job.tenure.progress.answer(job.offset)
            return
        event = OutcomeEvent(
            time_ms=self._clock.now_ms(),
            cluster=self._settings.cluster,
            seq=decision.seq,
            epoch=str(job.epoch),
            decision=decision.type,
            result=outcome.result,
            message=outcome.message,
            uid=decision.uid if isinstance(decision, ObjectDecision) else "",
        )
        self._outcomes.put(job, event)

    async def _set_aside(self, received: Received, tenure: Tenure, error: str) -> None:
        topic = self._settings.decisions_topic
        message = dead_letter(received, topic=topic, error=error)
        await self._records.append(DEAD_LETTER_PREFIX + topic, received.partition, [message])
        tenure.progress.answer(received.offset)
        metrics.DEAD_LETTERS.inc()
        event = f"{topic}/{received.partition}/{received.offset}"
        _log.error("set aside as unreadable: %s", error, extra={"event": event})

    def _stop_cell(self, job: Job, error: str) -> None:
        """Carry out nothing further of it, nor move the group past this: the next service is to stop too."""
        cell = job.decision.cell
        job.tenure.problem = f"cell {cell} is stopped: {error} (see divergence in docs/runbook.md)"
        metrics.DIVERGENCES(cell).inc()
        _log.critical("%s", job.tenure.problem, extra=_about(job))
        self._tasks.create_task(self._end_after_alarm(job.tenure.problem))

    async def _end_after_alarm(self, problem: str) -> None:
        await self._clock.sleep(ALARM_S)
        raise DivergenceError(problem)


def _is_newer_report(later: Job, earlier: Job) -> bool:
    """Of one object's reports that wait, only the last says anything."""
    return isinstance(later.decision, Report) and type(later.decision) is type(earlier.decision)


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
