"""Pods in line one by one: offered when they wait, and again once their pause is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Claim, part_of
from sluice_scheduler.core.stored.accounts import Pod, Workload

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def offer(state: State, pod: Pod) -> None:
    """Put a pod in line, unless it pauses. A workload's stand where it does; those of a replica only
    together."""
    key, facts = pod.key, pod.facts
    if key in state.forest.claims or key in state.retries or pod.queue not in state.forest.leaves:
        return
    if len(state.promises) and state.promise_for(key) is not None:
        return
    workload = None
    if pod.application:
        workload = state.workload_by_title.get((pod.cluster, pod.namespace, pod.application))
        app = state.application_of(pod)
        if app is not None and (not app.offered or pod.pod_set in app.replicated):
            return
    names: tuple[int | str, ...] = (pod.namespace, pod.uid)
    priority, created_ms, line_ms = facts.priority, facts.created_ms, facts.created_ms
    if workload is not None:
        names = (pod.namespace, workload.uid, facts.created_ms, pod.uid)
        priority, line_ms = workload.priority, workload.in_line_ms
        created_ms = max(line_ms, facts.created_ms)
    shape = state.forest.shape((part_of(pod),))
    state.forest.join(
        Claim(
            key=key,
            line=pod.queue,
            priority=priority,
            created_ms=created_ms,
            line_ms=line_ms,
            names=names,
            shape=shape,
            gang=False,
            ends_in_ms=facts.ends_in_ms,
        )
    )


def pause(state: State, workload: Workload, until_ms: int) -> None:
    """It waits a little before it may have its turn again."""
    workload.retry_ms = state.pauses[workload.key] = until_ms
    state.workload_changed(workload)


def offer_retries(state: State) -> None:
    """With the first tick behind its pause, what could not be admitted is in line again, and what could
    not be evicted a victim again: by what accounts say, not by the clock, so that a worker that takes
    over just before that tick does not hurry."""
    over = [key for key, retry_ms in state.pauses.items() if retry_ms <= state.cell.time_ms]
    for key in [key for key in over if not state.is_aside(key)]:
        del state.pauses[key]
        workload = state.workloads.get(key)
        if workload is not None:
            workload.retry_ms = 0
            state.workload_changed(workload)
    over = [key for key, retry_ms in state.retries.items() if retry_ms <= state.cell.time_ms]
    for key in [key for key in over if not state.is_stuck(key)]:
        pod = state.pod(key)
        with state.changing(pod):
            pod.retry_ms = 0
