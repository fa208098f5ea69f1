"""One decision of each type about one object, and that object as it is before the decision is carried out."""

from __future__ import annotations

from typing import Any

from fakes.actuated_cluster import FakeCluster
from sluice.decisions import (
    Admit,
    Condition,
    Evict,
    LabelNamespace,
    Notice,
    ObjectDecision,
    ReportPool,
    ReportQueue,
)
from sluice.values import DecisionId, Epoch
from sluice.vocabulary import DECISION_ANNOTATION, GATE
from sluice_actuator.kube import namespace_path, pod_path, sluice_path

EPOCH = Epoch(1, 50)
POD = pod_path("team", "pod")
NAMESPACE = namespace_path("team")
QUEUE = sluice_path("queues", "team-a")
POOL = sluice_path("resourcepools", "main")
EVENT = "/api/v1/namespaces/team/events/sluice-default-7"


def identity(seq: int = 7, epoch: Epoch = EPOCH) -> DecisionId:
    return DecisionId(epoch, seq)


def common(seq: int, **changes: Any) -> dict[str, Any]:
    return {
        "seq": seq,
        "cell": "default",
        "cluster": "local",
        "time_ms": 900_000,
        "reason": "Because",
        "sentence": "because it is so",
        "uid": "uid-1",
        **changes,
    }


def admit(seq: int = 7, **changes: Any) -> Admit:
    fields = common(seq, **{"name": "pod", "namespace": "team", **changes})
    return Admit(**{"queue": "team-a", "pool": "main", "node_selector": {"pool": "main"}, **fields})


def evict(seq: int = 7, *, deadline_ms: int = 1_030_000, **changes: Any) -> Evict:
    fields = common(seq, **{"name": "pod", "namespace": "team", **changes})
    return Evict(queue="team-a", deadline_ms=deadline_ms, **fields)


def label(seq: int = 7, *, queue: str = "team-a", **changes: Any) -> LabelNamespace:
    return LabelNamespace(queue=queue, **common(seq, **{"name": "team", **changes}))


def report_queue(seq: int = 7, *, usage: dict[str, int] | None = None, **changes: Any) -> ReportQueue:
    return ReportQueue(
        generation=3,
        usage={"main/cpu": 1500, "main/memory": 2**30} if usage is None else usage,
        demand={"cpu": 2000},
        fair_share={"cpu": 4000, "a100/nvidia.com/gpu": 2},
        dominant_share="0.2500",
        dominant_resource="cpu",
        pending=2,
        running=1,
        pending_workloads=36,
        admitted_workloads=3,
        lost_work_ms=90_500,
        lost_work_hour_ms=60_000,
        conditions=(Condition(type="Ready", status="True", reason="Fine", message="", since_ms=61_999),),
        **common(seq, **{"name": "team-a", **changes}),
    )


def report_pool(seq: int = 7, **changes: Any) -> ReportPool:
    return ReportPool(
        generation=2,
        nodes=4,
        capacity={"cpu": 64_000, "example.com/gpu": 8},
        reserved={},
        unmanaged={"memory": 2**20},
        conditions=(),
        **common(seq, **{"name": "main", **changes}),
    )


def notice(seq: int = 7, **changes: Any) -> Notice:
    return Notice(about="pod", **common(seq, **{"name": "pod", "namespace": "team", **changes}))


def a_cluster() -> FakeCluster:
    """All objects that the decisions are about, none of them carried out."""
    cluster = FakeCluster()
    cluster.put(POD, {"metadata": {"uid": "uid-1"}, "spec": {"schedulingGates": [{"name": GATE}]}})
    cluster.put(NAMESPACE, {"metadata": {"uid": "uid-1", "labels": {"team": "a"}}})
    for path in (QUEUE, POOL):
        cluster.put(path, {"metadata": {"uid": "uid-1"}, "spec": {}})
    return cluster


#: decision → the path of its object, and how it shows there that it was carried out.
PATHS = {
    Admit: POD,
    Evict: POD,
    LabelNamespace: NAMESPACE,
    ReportQueue: QUEUE,
    ReportPool: POOL,
    Notice: EVENT,
}


def carried_by(cluster: FakeCluster, decision: ObjectDecision) -> str:
    """The decision that the object says it has seen last; an evicted pod says it by its absence."""
    found = cluster.objects.get(PATHS[type(decision)])
    if isinstance(decision, Evict):
        return "" if found else str(identity(decision.seq))
    if found is None:
        return ""
    if isinstance(decision, ReportQueue | ReportPool):
        return str(found.get("status", {}).get("decision", ""))
    return str(found["metadata"].get("annotations", {}).get(DECISION_ANNOTATION, ""))
