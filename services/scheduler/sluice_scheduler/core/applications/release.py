"""Releasing applications and holding them back: what was decided, and what they show of it.

An application shows the last decision that the actuator wrote on it. Until that is ours, it shows the past.
Only then does it count if it runs unadmitted (the policies were not there when it was made, or were got
round) or is held back although it was admitted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from operator import attrgetter
from typing import TypedDict

from sluice.applications import BY_HAND
from sluice.decisions import EvictWorkload

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Dim, cost_of
from sluice_scheduler.core.state.kinship import controlled
from sluice_scheduler.core.state.members import holding_of
from sluice_scheduler.core.state.minima import minimum_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload


class Release(TypedDict):
    """What a decision to release or suspend an application says of how that is done."""

    queue: str
    application: str
    suspendable: bool


def release_of(workload: Workload) -> Release:
    return {
        "queue": workload.queue,
        "application": workload.facts.kind,
        "suspendable": workload.facts.suspendable,
    }


def admit_workload(state: State, workload: Workload, pools: dict[str, str], granted: dict[str, int]) -> None:
    """Count an application as admitted; what it was granted is held in these pools, and no more is reserved
    whatever it says of itself later: that would be growth, and has its turn like any other."""
    workload.admitted, workload.admitted_ms, workload.judged = True, state.cell.time_ms, False
    workload.pools, workload.granted = pools, granted
    workload.sizes = {each.name: each.requests for each in workload.facts.pod_sets}
    _turned(state, workload)


def put_back(state: State, workload: Workload) -> None:
    """Count it as waiting again, in its old place."""
    workload.admitted, workload.pools, workload.granted, workload.sizes = False, {}, {}, {}
    workload.kept, workload.reclaimed, workload.minima = {}, {}, {}
    _turned(state, workload)


def _turned(state: State, workload: Workload) -> None:
    """An application was admitted, or put back. One that was written by hand has nothing to release or to hold back,
    so its status alone says which, and says it with this pass."""
    if workload.facts.kind == BY_HAND:
        state.status_at_once[workload.key] = None
    state.workload_changed(workload)


def suspend(state: State, workload: Workload, *, deadline_ms: int, reason: str, sentence: str) -> int:
    """Decide that an application be held back; the decision's seq."""
    decision = state.decide(
        EvictWorkload(
            **state.about(workload),
            **release_of(workload),
            deadline_ms=deadline_ms,
            reason=reason,
            sentence=sentence,
        )
    )
    workload.seq, workload.deadline_ms = decision.seq, deadline_ms
    state.releasing[decision.seq] = workload.key
    state.suspending[workload.key] = None
    put_back(state, workload)
    return decision.seq


def compare_with_objects(state: State) -> None:
    """Bring the accounts of applications in step with what their objects show."""
    uncompared, state.uncompared = state.uncompared, {}
    for key in sorted(uncompared):
        workload = state.workloads.get(key)
        if state.is_aside(key):
            continue
        if workload is None or workload.facts.finished or controlled(state, workload):
            continue
        if not state.is_live(workload.cluster) or workload.retry_ms:
            state.uncompared[key] = None
        elif shows_the_present(workload):
            _compare(state, workload)
    state.settle_applications()


def shows_the_present(workload: Workload) -> bool:
    """Whether what an application shows of itself is no older than the last decision about it. One that was written by
    hand shows the statuses that we tell, each some time later: once we have decided about it, that is nothing new."""
    if workload.facts.kind == BY_HAND:
        return not workload.seq
    carried = workload.facts.decision.rpartition(".")[2]
    return (int(carried) if carried.isdecimal() else 0) >= workload.seq


def _compare(state: State, workload: Workload) -> None:
    facts = workload.facts
    if not workload.admitted and (facts.released or _may_run(workload)):
        holding, pools = holding_of(state, workload), _pools_found(state, workload)
        minima = {each.name: minimum_of(workload, each) for each in facts.pod_sets}
        there = Counter(pod.pod_set for pod in holding)
        was_released = facts.released and workload.found and bool(facts.decision)
        if was_released and _fits_still(state, workload, pools, missing=Counter(minima) - there):
            admit_workload(state, workload, pools, minima)
        elif holding:
            admit_workload(state, workload, pools, there)
        elif facts.released:
            suspend(
                state,
                workload,
                deadline_ms=state.cell.time_ms,
                reason="Unsuspended",
                sentence=f"{workload.title} was released by somebody else: it waits for its turn",
            )
    elif workload.admitted and not facts.released and (workload.seq or _has_stopped(state, workload)):
        put_back(state, workload)


def _fits_still(
    state: State, workload: Workload, pools: dict[str, str], *, missing: Mapping[str, int]
) -> bool:
    """Whether what is missing of minima fits beside what others hold, as it did when an earlier ledger granted it. If
    not, it was asked for since then, and has no turn by this."""
    state.settle_applications()  # who was found before it has its share
    cost: dict[Dim, int] = {}
    for each in workload.facts.pod_sets:
        asked = tuple(each.requests.items())
        add(cost, cost_of(workload.cluster, pools[each.name], asked, missing.get(each.name, 0)))
    leaf = state.forest.leaves.get(workload.queue)
    return leaf is not None and state.forest.has_room(leaf, tuple(cost.items()), attrgetter("left"))


def _may_run(workload: Workload) -> bool:
    """Whether it may be found running though it does not say so: its gates alone hold it back, and nobody
    here has decided about it yet."""
    return not workload.facts.suspendable and not workload.seq


def _has_stopped(state: State, workload: Workload) -> bool:
    """Whether one that was found running is held back since: by hand, or by what an owner before us decided."""
    return workload.facts.suspendable and not holding_of(state, workload)


def _pools_found(state: State, workload: Workload) -> dict[str, str]:
    """An application was found running: its minima are held where its pods are, or else where they may go."""
    pools = {}
    holding = holding_of(state, workload)
    for pod_set in workload.facts.pod_sets:
        here = [pod.pool for pod in holding if pod.pod_set == pod_set.name and pod.pool]
        allowed = state.places.pools_for(workload.cluster, pod_set.node_selector)
        pools[pod_set.name] = next(iter([*here, *allowed]), "")
    return pools
