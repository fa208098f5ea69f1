"""Evicting: what was chosen to be taken back leaves, pod by pod or with its application's suspension."""

from __future__ import annotations

from typing import Final

from sluice.decisions import Evict

from sluice_scheduler.core.applications.release import suspend
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import LostWork

#: So long an operator may take to end the pods of an application that was suspended.
SUSPENSION_MS: Final = 30_000
#: Why pods leave of which their queue is not the cause. What it loses by itself protects it from nobody.
_BY_OTHERS: Final = ("Overcommitted", "Reclaimed")


def evict(state: State, unit: Unit, *, reason: str, sentence: str) -> int:
    """Decide that a unit's pods leave; until when they may hold it up."""
    queue = unit.leaf.queue
    deadline_ms = state.cell.time_ms + (queue.facts.grace_ms if queue else 0)
    app = unit.application
    workload = app.workload if app else None
    suspended = 0
    if workload is not None:
        workload.barred, workload.barred_ms = state.cell.grounds, state.now_ms
        for pod in unit.pods:
            workload.taken = workload.with_one_more(workload.taken, pod.pod_set)
        state.workload_changed(workload)
        if unit.is_whole:
            seq = suspend(state, workload, deadline_ms=deadline_ms, reason=reason, sentence=sentence)
            suspended = seq if workload.facts.suspendable else 0
    _count_lost_work(state, unit, by_others=reason in _BY_OTHERS)
    for pod in unit.pods:
        evict_pod(state, pod, deadline_ms, reason, sentence, by=suspended)
    if app is not None and unit.is_whole:
        state.settle_application(app)
    return deadline_ms


def _count_lost_work(state: State, unit: Unit, *, by_others: bool) -> None:
    work_ms = unit.work_ms(state.now_ms)
    if work_ms > 0 and unit.leaf.queue is not None:
        lost = state.lost_work.get(f"{LostWork.kind}/{unit.leaf.name}") or LostWork(queue=unit.leaf.name)
        lost.add(state.now_ms, work_ms, by_others=by_others)
        state.lost_work.put(lost)


def hasten(state: State) -> None:
    """Evict pods one by one whose application should have suspended them long ago."""
    for key in sorted(key for key in state.suspending if not state.is_stuck(key)):
        workload = state.workloads.get(key)
        if workload is not None and state.cell.time_ms < workload.deadline_ms + SUSPENSION_MS:
            continue
        del state.suspending[key]
        if workload is not None:
            for pod in [state.pod(key) for key in sorted(state.evicting.get(workload.seq, ()))]:
                why = f"{workload.title} was suspended and has not taken its pods back"
                evict_pod(state, pod, state.cell.time_ms, "Suspended", why)
            workload.deadline_ms = 0
            state.workloads.put(workload)


def overdue_ms(state: State) -> list[int]:
    """When `hasten` does so."""
    workloads = [state.workloads.get(key) for key in state.suspending]
    return [w.deadline_ms + SUSPENSION_MS if w is not None else state.now_ms for w in workloads]


def evict_pod(state: State, pod: Pod, deadline_ms: int, reason: str, sentence: str, *, by: int = 0) -> None:
    """Decide that a pod leaves, unless it does so by another decision."""
    with state.changing(pod):
        if not by:
            decision = state.decide(
                Evict(
                    **state.about(pod),
                    queue=pod.queue,
                    deadline_ms=deadline_ms,
                    reason=reason,
                    sentence=sentence,
                )
            )
        pod.evicting = by or decision.seq
