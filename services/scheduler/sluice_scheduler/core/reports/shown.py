"""What DynamicWorkloads show of applications: once a tick, those of which something has changed.

One is made for each application when it is first told of, so one that is admitted within a tick of its
creation is never shown as pending: its release and one status are all that is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, TypedDict

from sluice.applications import BY_HAND
from sluice.decisions import (
    Condition,
    CreateWorkload,
    GrantedPods,
    ReportJob,
    ReportWorkload,
    ShownPodSet,
    WorkloadPhase,
)

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim
from sluice_scheduler.core.passes.lifted import any_rules
from sluice_scheduler.core.reports.explain import Lines
from sluice_scheduler.core.reports.granted import granted_pods, is_short
from sluice_scheduler.core.reports.kept_aside import (
    about_shown,
    all_are_silent,
    is_plain,
    is_silent,
    report_plainly,
)
from sluice_scheduler.core.reports.why import BEHIND_FIRST, Why, reason_of, reason_of_application
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.conditions import condition, since
from sluice_scheduler.core.state.kinship import controlled
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.core.state.minima import reclaimable
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import JOB_REPORT, STATUS, Report

#: The generation that a status is about, for applications whose DynamicWorkload is made once and never changed.
_GENERATION: Final = 1
#: So many of those that only wait are told of it at one tick: when thousands come at once, those whose turn
#: it is need the API server more.
WAITING_TOLD_MAX: Final = 20


class JobFigures(TypedDict):
    """What a QueueJob's status says, its conditions apart."""

    generation: int
    phase: WorkloadPhase
    active: int
    running: int
    succeeded: int
    failed: int
    start_ms: int
    end_ms: int


def show(state: State) -> None:
    lines = Lines(state)
    _tell_new_reasons(state)
    status_due, state.status_due = state.status_due, {}
    there = (workload for key in sorted(status_due) if (workload := state.workloads.get(key)) is not None)
    found = [each for each in there if not (is_silent(state, each.key) or controlled(state, each))]
    live = [workload for workload in found if state.is_live(workload.cluster)]
    waiting = [workload for workload in live if not workload.admitted and not workload.facts.finished]
    waiting.sort(key=partial(_last_told, state))
    later = {workload.key for workload in waiting[WAITING_TOLD_MAX:]}
    for workload in found:
        if workload.key in later or not state.is_live(workload.cluster):
            state.status_due[workload.key] = None
            continue
        _tell(state, workload, lines)


def _tell_new_reasons(state: State) -> None:
    """Nothing has happened to an application that waits for something else now than its status says: it has come to
    be the first of a strict line, room is kept for it no more, or a rule of others' queues stands in its way."""
    for claim in _whose_reason_may_differ(state):
        last = _last_of(state, claim)
        if last is not None:
            reason = reason_of(state, last.about).reason
            if all(each.reason != reason for each in last.conditions):
                state.status_due[last.about] = None


def _whose_reason_may_differ(state: State) -> Iterator[Claim]:
    """Though no pod came or went. Who has a turn, or might push others out, is looked at with every few ticks where
    there are many: to find out what is in the way costs as much as a search for victims."""
    claims = [claim for turn in state.turns if (claim := state.forest.claims.get(turn.claim)) is not None]
    ruled = any_rules(state)
    for leaf in state.forest.leaves.values():
        first = leaf.line.first()
        if first is None:
            continue
        last = _last_of(state, first) if leaf.line.strict else None
        if last is not None and any(each.reason == BEHIND_FIRST for each in last.conditions):
            yield first
        if ruled and _is_due(state, leaf, first):
            claims.append(first)
    begin = state.now_ms // 1_000 * WAITING_TOLD_MAX % max(1, len(claims))
    yield from (claims[begin:] + claims[:begin])[:WAITING_TOLD_MAX]


def _last_of(state: State, claim: Claim) -> Report | None:
    """What was last told of the application that a claim is of."""
    workload = workload_of(state, claim.key)
    return state.reports.get(f"{Report.kind}/{workload.key}") if workload is not None else None


def _is_due(state: State, leaf: Branch, claim: Claim) -> bool:
    return any(
        leaf.covering(spot.cost) or leaf.is_owed(spot.kinds, state.forest.whole)
        for spot in state.forest.spots_of(claim.shape)
    )


def _last_told(state: State, workload: Workload) -> tuple[int, str]:
    """Whose status is the oldest comes first."""
    last = state.reports.get(f"{Report.kind}/{workload.key}")
    return (last.told_ms if last is not None else 0, workload.key)


def _tell(state: State, workload: Workload, lines: Lines) -> None:
    if is_plain(state, workload):
        if not state.is_aside(STATUS + workload.key):
            _create(state, workload)
        report_plainly(state, workload)
        return
    if workload.facts.job is not None:
        _report_job(state, workload)
    _create(state, workload)
    _report(state, workload, state.applications[workload.place], lines)


def show_release(state: State) -> None:
    """A workload that was written by hand has nothing to release: whether it is admitted, its status says."""
    if all_are_silent(state):
        return
    lines = Lines(state)
    status_at_once, state.status_at_once = state.status_at_once, {}
    for key in status_at_once:
        workload = state.workloads.get(key)
        if workload is not None and state.is_live(workload.cluster) and not is_silent(state, key):
            state.status_due.pop(key, None)
            _tell(state, workload, lines)


def _create(state: State, workload: Workload) -> None:
    facts = workload.facts
    if workload.shown or facts.finished:
        return
    workload.shown = workload.shown_name
    state.workloads.put(workload)
    if facts.kind == BY_HAND:
        return
    pod_sets = tuple(
        ShownPodSet(
            name=each.name,
            count=each.count,
            min_count=each.min_count,
            max_count=each.max_count,
            requests=each.requests,
        )
        for each in facts.pod_sets
    )
    state.decide(
        CreateWorkload(
            **about_shown(state, workload),
            application=facts.kind,
            application_name=workload.name,
            queue=workload.queue,
            priority=workload.priority,
            priority_class=facts.priority_class,
            pod_sets=pod_sets,
            application_spec=facts.application_spec,
            reason="Found",
            sentence=f"{workload.title} is admitted as a whole: this shows how far it is",
        )
    )


def _report(state: State, workload: Workload, app: Application, lines: Lines) -> None:
    """Decide to write its status, unless that is what was last written.

    Where it stands in line goes along, and is no news: of thousands that wait, all move up with each that is
    served.
    """
    if not workload.shown:
        return
    last = state.reports.get(f"{Report.kind}/{workload.key}")
    sets = granted_pods(state, workload, app)
    found = reason_of_application(state, app, workload, sets)
    why = found.in_short
    granted = ", ".join(f"{each.admitted} of {each.desired} {each.name}".rstrip() for each in sets)
    phase = _phase(state, workload, sets)
    generation = workload.facts.generation if workload.facts.kind == BY_HAND else _GENERATION
    conditions = since(last, _conditions(state, workload, found, granted))
    reclaimed = _reclaimed(state, workload)
    shown = {
        "generation": generation,
        "phase": phase,
        "pod_sets": [[e.name, e.desired, e.admitted, e.running, e.taken] for e in sets],
        "reclaimed": reclaimed,
        "why": why,
    }
    if last is not None and last.says(shown, conditions):
        return
    standing = lines.standing(found)
    state.decide(
        ReportWorkload(
            **about_shown(state, workload),
            generation=generation,
            resource_version=workload.resource_version if workload.facts.kind == BY_HAND else 0,
            phase=phase,
            pod_sets=sets,
            reclaimed=reclaimed,
            why=why,
            conditions=conditions,
            position=standing.position,
            eta_ms=standing.eta_ms,
            reason=phase,
            sentence=f"{workload.title}: {phase.lower()}, granted {granted or 'nothing'}",
        )
    )
    state.reports.put(Report(about=workload.key, told_ms=state.now_ms, figures=shown, conditions=conditions))


def _conditions(state: State, workload: Workload, found: Why, granted: str) -> tuple[Condition, ...]:
    kept_out = "" if workload.admitted else found.sentence
    missing = f"granted {granted}; {found.in_short}" if found.waits else ""
    return (
        condition(state, "Ready", good=True, problem=workload.problem),
        condition(state, "Admitted", good=True, problem=kept_out, reason=found.reason),
        condition(state, "Granted", good=True, problem=missing, reason=found.reason),
    )


def _report_job(state: State, workload: Workload) -> None:
    """The QueueJob's own status: how many of its pods are how far."""
    about, job = workload.key + JOB_REPORT, workload.job
    last = state.reports.get(f"{Report.kind}/{about}")
    pods = [pod for pod in state.kinship.pods_below(state, workload) if not pod.facts.finished]
    sets = granted_pods(state, workload, state.applications[workload.place])
    figures: JobFigures = {
        "generation": workload.facts.generation,
        "phase": _phase(state, workload, sets),
        "active": len(pods),
        "running": sum(1 for pod in pods if pod.facts.phase == "Running"),
        "succeeded": job.successes,
        "failed": job.failures,
        "start_ms": job.start_ms,
        "end_ms": job.end_ms,
    }
    failed = job.why if job.outcome == "Failed" else ""
    conditions = since(
        last,
        (
            condition(state, "Ready", good=True, problem=workload.problem or job.refusal),
            condition(state, "Failed", good=False, problem=failed),
        ),
    )
    if last is not None and last.says(dict(figures), conditions):
        return
    state.decide(
        ReportJob(
            **state.status_about(workload),
            **figures,
            conditions=conditions,
            reason=figures["phase"],
            sentence=f"{workload.title}: {job.successes} of its pods have succeeded, {job.failures} failed",
        )
    )
    state.reports.put(Report(about=about, told_ms=state.now_ms, figures=dict(figures), conditions=conditions))


def _reclaimed(state: State, workload: Workload) -> dict[str, int]:
    """How many pods of each set were given back. It never falls while the application is admitted."""
    if not workload.admitted:
        return {}
    reclaimed = {
        each.name: most
        for each in workload.facts.pod_sets
        if (most := max(reclaimable(workload, each), workload.reclaimed.get(each.name, 0)))
    }
    if reclaimed != workload.reclaimed:
        workload.reclaimed = reclaimed
        state.workloads.put(workload)
    return reclaimed


def _phase(state: State, workload: Workload, sets: Iterable[GrantedPods]) -> WorkloadPhase:
    if workload.facts.finished:
        return "Failed" if workload.facts.failed else "Finished"
    if any(pod.evicting and pod.holds for pod in state.kinship.pods_below(state, workload)):
        return "Reclaiming"
    if not workload.admitted:
        return "Pending"
    return "Growing" if is_short(sets) else "Running"
