"""What applications must hold at the least, and what is kept for pods that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice.events import PodSetFacts
from sluice.values import Resources

from sluice_scheduler.core.fairness.claims import Part, part
from sluice_scheduler.core.state.members import stuck_in
from sluice_scheduler.core.stored.accounts import Pod, Workload

if TYPE_CHECKING:
    from sluice_scheduler.core.state.application import Application
    from sluice_scheduler.core.state.state import State


def minimum_of(workload: Workload, pod_set: PodSetFacts) -> int:
    """How many pods of a pod set must hold together: its minimum, but no more than are still to run."""
    minimum = workload.minima.get(pod_set.name, min(pod_set.min_count, pod_set.count))
    return min(minimum, pod_set.count - reclaimable(workload, pod_set))


def missing_of(workload: Workload, pod_set: PodSetFacts, holding: int) -> int:
    """For how many pods that are not there something is reserved: the rest of the minimum, or the pods that
    failed and will be replaced."""
    kept = 0
    if pod_set.completions is not None or not succeeded_of(workload, pod_set):
        unfilled = pod_set.count - reclaimable(workload, pod_set) - holding
        kept = min(workload.kept.get(pod_set.name, 0), unfilled)
    granted = workload.granted.get(pod_set.name, 0)
    return max(min(minimum_of(workload, pod_set), granted) - holding, kept)


def fill_kept(state: State, workload: Workload, pod_set: str) -> None:
    """A pod takes the place of one that failed, if any has."""
    if left := workload.kept.get(pod_set, 0):
        workload.kept = {**workload.kept, pod_set: left - 1}
        state.workloads.put(workload)


def give_back(state: State, app: Application) -> None:
    """What is not reserved for an application any more, it gives back for good: others may hold it by the time that
    it asks for more again. From then on that is growth, and has its turn."""
    workload = app.workload
    if workload is None or not app.admitted:
        return
    granted, kept = dict(workload.granted), dict(workload.kept)
    for name in granted.keys() | kept.keys():
        book = app.books.get(name)  # none: the application has no such pods any more
        reserved = book.reserved if book is not None else 0
        there = len(book.holding) if book is not None else 0
        if name in granted:
            granted[name] = min(granted[name], there + stuck_in(state, app, name) + reserved)
        if name in kept:
            kept[name] = min(kept[name], reserved)
    if (granted, kept) != (workload.granted, workload.kept):
        workload.granted, workload.kept = granted, kept
        state.workloads.put(workload)


def is_within(pod: Pod, size: Resources) -> bool:
    return all(amount <= size.get(resource, 0) for resource, amount in pod.facts.requests.items())


def reclaimable(workload: Workload, pod_set: PodSetFacts) -> int:
    """How many of P pods that run at a time have succeeded and will not be replaced: P − min(P, C − n), where C must
    succeed and n have."""
    succeeded = succeeded_of(workload, pod_set)
    completions = pod_set.count if pod_set.completions is None else pod_set.completions
    return pod_set.count - max(0, min(pod_set.count, completions - succeeded))


def succeeded_of(workload: Workload, pod_set: PodSetFacts) -> int:
    """Its own count may be late, and ours begins with a ledger."""
    return max(pod_set.succeeded, workload.succeeded.get(pod_set.name, 0))


def parts_of(workload: Workload) -> tuple[Part, ...]:
    """What a workload's gang claim asks for."""
    return tuple(
        part(workload.cluster, minimum, pod_set.requests, pod_set.node_selector)
        for pod_set in workload.facts.pod_sets
        if (minimum := minimum_of(workload, pod_set))
    )
