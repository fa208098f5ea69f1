"""Reports as the `status` of Sluice's own objects, amounts and times written as Kubernetes writes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sluice.crds import Condition as ShownCondition
from sluice.crds import (
    DynamicWorkloadStatus,
    PodSet,
    PodSetCount,
    PodSetStatus,
    QueueJobStatus,
    QueueStatus,
    ResourcePoolStatus,
)
from sluice.decisions import Condition, Report, ReportJob, ReportQueue, ReportWorkload, ShownPodSet
from sluice.quantities import format_amount
from sluice.values import DecisionId, Resources, split_kind


def status_of(decision: Report, identity: DecisionId) -> dict[str, Any]:
    """The whole status that a report states."""
    conditions = [_condition(condition, decision.generation) for condition in decision.conditions]
    status: QueueStatus | ResourcePoolStatus | DynamicWorkloadStatus | QueueJobStatus
    if isinstance(decision, ReportQueue):
        status = QueueStatus(
            conditions=conditions,
            observed_generation=decision.generation,
            decision=str(identity),
            usage=_by_pool(decision.usage),
            demand=_by_supply(decision.demand),
            fair_share=_by_supply(decision.fair_share),
            dominant_share=decision.dominant_share,
            dominant_resource=decision.dominant_resource,
            pending=decision.pending,
            running=decision.running,
            pending_workloads=decision.pending_workloads,
            admitted_workloads=decision.admitted_workloads,
            lost_work_seconds=decision.lost_work_ms // 1000,
            lost_work_last_hour_seconds=decision.lost_work_hour_ms // 1000,
        )
    elif isinstance(decision, ReportWorkload):
        status = DynamicWorkloadStatus(
            conditions=conditions,
            observed_generation=decision.generation,
            decision=str(identity),
            phase=decision.phase,
            pod_sets=[
                PodSetStatus(
                    name=each.name,
                    desired=each.desired,
                    admitted=each.admitted,
                    running=each.running,
                    reclaimed=each.taken,
                )
                for each in decision.pod_sets
            ],
            reclaimed_pod_set_pods=[
                PodSetCount(name=name, count=count) for name, count in decision.reclaimed.items()
            ],
            queue_position=decision.position,
            eta=None if decision.eta_ms is None else rfc3339(decision.eta_ms),
            reason=decision.why or None,
        )
    elif isinstance(decision, ReportJob):
        status = QueueJobStatus(
            conditions=conditions,
            observed_generation=decision.generation,
            decision=str(identity),
            phase=decision.phase,
            active=decision.active,
            running=decision.running,
            succeeded=decision.succeeded,
            failed=decision.failed,
            start_time=rfc3339(decision.start_ms) if decision.start_ms else None,
            completion_time=rfc3339(decision.end_ms) if decision.end_ms else None,
        )
    else:
        status = ResourcePoolStatus(
            conditions=conditions,
            observed_generation=decision.generation,
            decision=str(identity),
            nodes=decision.nodes,
            capacity=_amounts(decision.capacity),
            reserved=_amounts(decision.reserved),
            unmanaged=_amounts(decision.unmanaged),
        )
    return status.model_dump(by_alias=True, exclude_none=True)


def shown_pod_set(pod_set: ShownPodSet) -> dict[str, Any]:
    """A pod set as a DynamicWorkload's spec has it. Whether it may be so, the API server says."""
    requests = {name: amount for name, amount in pod_set.requests.items() if name != "pods"}
    shown = PodSet.model_construct(
        name=pod_set.name,
        count=pod_set.count,
        min_count=pod_set.min_count,
        max_count=pod_set.max_count,
        requests=_amounts(requests),
    )
    return shown.model_dump(by_alias=True, exclude_none=True)


def rfc3339(time_ms: int) -> str:
    """Kubernetes' times have whole seconds."""
    return datetime.fromtimestamp(time_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _amounts(amounts: Resources) -> dict[str, str]:
    return {resource: format_amount(resource, amount) for resource, amount in amounts.items()}


def _by_pool(amounts: Resources) -> dict[str, str]:
    """Keys are `pool/resource`; resources may have slashes."""
    return {key: format_amount(key.partition("/")[2] or key, amount) for key, amount in amounts.items()}


def _by_supply(amounts: Resources) -> dict[str, str]:
    return {key: format_amount(split_kind(key)[1], amount) for key, amount in amounts.items()}


def _condition(condition: Condition, generation: int) -> ShownCondition:
    return ShownCondition(
        type=condition.type,
        status=condition.status,
        reason=condition.reason,
        message=condition.message,
        last_transition_time=rfc3339(condition.since_ms),
        observed_generation=generation,
    )
