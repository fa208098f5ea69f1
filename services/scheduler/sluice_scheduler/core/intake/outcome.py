"""What became of decisions. The first outcome of each counts; later ones find nothing left to do."""

from __future__ import annotations

from typing import Final

from sluice.decisions import (
    Admit,
    AdmitWorkload,
    CreatePod,
    Delete,
    Evict,
    EvictWorkload,
    Fence,
    LabelNamespace,
    ReportJob,
    ReportPool,
    ReportQueue,
    ReportWorkload,
)
from sluice.events import OutcomeEvent

from sluice_scheduler.core.applications.queuejobs import on_create_pod
from sluice_scheduler.core.applications.release import put_back
from sluice_scheduler.core.intake.recovery import on_fence_outcome
from sluice_scheduler.core.state.offers import pause
from sluice_scheduler.core.state.repeated import repeat_status
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import JOB_REPORT, Cluster, Pool, Queue, Report

#: After a write that failed, a pod is neither offered for admission nor chosen as a victim for so long.
PAUSE_MS: Final = {"Conflict": 1_000, "Superseded": 1_000, "Failed": 5_000, "Rejected": 30_000}

_REPORTS: Final = (ReportQueue.type, ReportPool.type, ReportWorkload.type, ReportJob.type)
#: A status that was superseded needs no other: a later one was told already.
_UNWRITTEN: Final = ("Conflict", "Failed", "Rejected", "Gone")


def on_outcome(state: State, event: OutcomeEvent) -> None:
    if event.decision == Fence.type:
        cluster = state.clusters.get(f"{Cluster.kind}/{event.cluster}")
        if cluster is not None:
            on_fence_outcome(state, cluster, event)
    elif event.decision == Admit.type:
        _on_admit(state, event)
    elif event.decision in (Evict.type, Delete.type) and event.result in PAUSE_MS:
        _on_evict(state, event)
    elif event.decision in (AdmitWorkload.type, EvictWorkload.type):
        _on_release(state, event)
    elif event.decision == CreatePod.type:
        on_create_pod(state, event)
    elif event.decision == LabelNamespace.type:
        _on_label(state, event)
    elif event.decision in _REPORTS and event.result in _UNWRITTEN:
        _on_status(state, event)


def _on_admit(state: State, event: OutcomeEvent) -> None:
    pod = state.pods.get(state.assumed.get(event.seq, ""))
    if pod is None:
        return  # confirmed or gone meanwhile, or answered before
    if event.result in ("Applied", "AlreadyApplied"):
        return  # the pod's own event confirms it
    with state.changing(pod):
        if event.result == "Gone":
            pod.phase = "Withdrawn"  # its deletion is on its way
        else:
            pod.phase, pod.pool, pod.seq = "Waiting", "", 0
            pod.retry_ms = state.cell.time_ms + PAUSE_MS[event.result]


def _on_evict(state: State, event: OutcomeEvent) -> None:
    """Pods that could not be evicted go on holding, and are no victims for a while; who waited for them is in
    line again."""
    for key in sorted(state.evicting.get(event.seq, ())):
        pod = state.pod(key)
        with state.changing(pod):
            pod.evicting = 0
            pod.retry_ms = state.cell.time_ms + PAUSE_MS[event.result]


def _on_release(state: State, event: OutcomeEvent) -> None:
    """An application that could not be released waits in its old place; one that could not be suspended goes
    on. Neither is tried again at once."""
    workload = state.workloads.get(state.releasing.pop(event.seq, ""))
    if event.result not in PAUSE_MS:
        return
    _on_evict(state, event)
    if workload is not None and workload.seq == event.seq and not state.is_stuck(workload.key):
        workload.seq = 0
        put_back(state, workload)
        pause(state, workload, max(workload.retry_ms, state.cell.time_ms + PAUSE_MS[event.result]))


def _on_label(state: State, event: OutcomeEvent) -> None:
    """One that was written shows with the namespace's next change. One that could not be is wanted again then, or
    when a queue next changes."""
    for namespace in [n for n in state.namespaces if n.labelling_seq == event.seq]:
        namespace.labelling_seq = 0
        if event.result in PAUSE_MS:
            namespace.labelling = ""
        state.namespaces.put(namespace)


def _on_status(state: State, event: OutcomeEvent) -> None:
    """A status that could not be written is told again. If somebody has deleted the DynamicWorkload, it is made
    anew, as long as there is its application."""
    about = f"{event.cluster}/{event.uid}"
    workload = state.workloads.get(f"{Workload.kind}/{about}")
    shown = state.queues.get(f"{Queue.kind}/{about}") or state.pools.get(f"{Pool.kind}/{about}")
    if workload is not None:
        key = workload.key + JOB_REPORT * (event.decision == ReportJob.type)
        if event.decision == ReportWorkload.type and event.result == "Gone":
            workload.shown = ""
            state.workloads.put(workload)
    elif shown is not None:
        key = f"{shown.kind}/{shown.name}"
    else:
        return
    report = state.reports.get(f"{Report.kind}/{key}")
    if report is not None:
        repeat_status(state, report)
