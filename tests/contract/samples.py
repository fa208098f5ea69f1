"""One record of every type with every field filled. `python tests/contract/samples.py` keeps what is new.

A golden file that was part of a release is never written again: what was once in a log must be read for ever.
"""

import json
import sys
from pathlib import Path
from typing import Any

from sluice.codec import DECISIONS, EVENTS, RECORD_VERSION, Message
from sluice.decisions import (
    Admit,
    AdmitWorkload,
    Condition,
    CreatePod,
    CreateWorkload,
    Decision,
    Delete,
    Evict,
    EvictWorkload,
    Fence,
    GrantedPods,
    LabelNamespace,
    Notice,
    ReportJob,
    ReportPool,
    ReportQueue,
    ReportWorkload,
    Resync,
    ShownPodSet,
)
from sluice.events import (
    CellConfig,
    ConfigEvent,
    Event,
    Gang,
    JobFacts,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    OutcomeEvent,
    PodEvent,
    PodFacts,
    PodSetFacts,
    PoolEvent,
    PoolFacts,
    PriorityClassEvent,
    QueueEvent,
    QueueFacts,
    RebuildEvent,
    SetAsideEvent,
    SyncEvent,
    TickEvent,
    UnmanagedEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.values import Epoch, LabelRequirement, NamespaceSelector

GOLDEN = Path(__file__).parent / "golden"
EPOCH = Epoch(1, 4711)
_NOW_MS = 1_767_225_600_123
_CLUSTER = "earth"
_UID = "0b1e2d3c-4f5a-6789-abcd-ef0123456789"
_CONFIG = CellConfig(
    cell="default",
    clusters=("earth", "mars"),
    kinds=("pod", "queue"),
    policy="usage-drf",
    core_version=1,
    half_life_ms=600_000,
    tenure_ms=1_800_000,
    patience_ms=120_000,
    reclaim_after_ms=2_000,
    start_deadline_ms=900_000,
    cells=("default", "research"),
)


def _object(name: str, *, namespace: str = "", change: str = "MODIFIED") -> dict[str, Any]:
    return {
        "time_ms": _NOW_MS,
        "cluster": _CLUSTER,
        "more": True,
        "change": change,
        "uid": _UID,
        "name": name,
        "namespace": namespace,
        "resource_version": 123456,
    }


def _decision(seq: int, reason: str, sentence: str) -> dict[str, Any]:
    return {
        "seq": seq,
        "cell": "default",
        "cluster": _CLUSTER,
        "time_ms": _NOW_MS,
        "reason": reason,
        "sentence": sentence,
    }


_ABOUT_POD: dict[str, Any] = {"name": "spark-1-exec-7", "uid": _UID, "namespace": "team-a"}
_CONDITION = Condition(
    type="Ready", status="False", reason="ParentMissing", message="Create Queue “root”.", since_ms=_NOW_MS
)

EVENT_SAMPLES: tuple[Event, ...] = (
    PodEvent(
        **_object("spark-1-exec-7", namespace="team-a"),
        pod=PodFacts(
            requests={"cpu": 1500, "memory": 939524096, "nvidia.com/gpu": 1},
            created_ms=_NOW_MS - 1000,
            queue="team-a-batch",
            priority=1000,
            gated=True,
            decision="1-4711.42",
            node="node-1",
            node_selector={"pool": "gpu"},
            phase="Running",
            deleting=True,
            owner="77777777-4f5a-6789-abcd-ef0123456789",
            workload="SparkDriver/spark-1",
            pod_set="executor",
            group_size=3,
            gang=Gang(deadline_ms=60_000, hard=False),
            saved_ms=_NOW_MS - 500,
            ends_in_ms=7_200_000,
            claims_devices=True,
        ),
    ),
    WorkloadEvent(
        **_object("spark-1", namespace="team-a"),
        workload=WorkloadFacts(
            pod_sets=(
                PodSetFacts(
                    name="executor",
                    count=10,
                    min_count=2,
                    max_count=20,
                    completions=10,
                    succeeded=4,
                    requests={"cpu": 1500},
                    node_selector={"pool": "gpu"},
                    replica_size=2,
                ),
            ),
            created_ms=_NOW_MS - 2000,
            queue="team-a-batch",
            priority=1000,
            finished=True,
            failed=True,
            generation=3,
            problem="spec.podSets: minCount must not exceed count",
            kind="RayCluster",
            priority_class="nightly",
            released=True,
            suspendable=True,
            decision="1-4711.40",
            controller="77777777-4f5a-6789-abcd-ef0123456789",
            as_pod_set="submitter",
            gang=Gang(deadline_ms=60_000, hard=False),
            replaces_failed=True,
            job=JobFacts(restart_limit=2, backoff_limit=6, backoff_ms=10_000),
            application_spec={"workerGroupSpecs": [{"groupName": "executor", "replicas": 10}]},
        ),
    ),
    NodeEvent(
        **_object("node-1", change="ADDED"),
        node=NodeFacts(
            allocatable={"cpu": 8000, "memory": 2**35, "pods": 110}, labels={"pool": "gpu"}, schedulable=False
        ),
    ),
    NamespaceEvent(
        **_object("team-a"), managed=True, queue="team-a", labels={"sluice.dev/managed": "true", "team": "a"}
    ),
    PriorityClassEvent(**_object("high", change="DELETED"), value=-5, global_default=True),
    QueueEvent(
        **_object("team-a"),
        queue=QueueFacts(
            cell="default",
            parent="root",
            weight=3,
            guaranteed={"cpu": "25%"},
            limit={"memory": "64Gi"},
            guaranteed_by_pool={"gpu": {"nvidia.com/gpu": "2"}},
            limit_by_pool={"gpu": {"nvidia.com/gpu": "50%"}},
            namespaces=NamespaceSelector(
                names=("team-a",),
                requirements=(LabelRequirement(key="team", operator="In", values=("a", "b")),),
            ),
            ordering="strictFifo",
            preemption="lowerPriority",
            reclaim=False,
            grace_ms=30_000,
            minimum_run_ms=60_000,
            lost_work_per_hour_ms=3_600_000,
            tenure_ms=1_200_000,
            patience_ms=90_000,
            reserves=False,
            start_deadline_ms=300_000,
            oversubscription="never",
            policy="fifo",
            created_ms=_NOW_MS - 3000,
            generation=7,
            problem="spec.weight: must be 1 or more",
        ),
    ),
    PoolEvent(
        **_object("gpu"),
        pool=PoolFacts(
            cell="default",
            node_selector={"pool": "gpu"},
            supply="a100",
            generation=2,
            problem="overlaps",
        ),
    ),
    UnmanagedEvent(
        time_ms=_NOW_MS,
        cluster=_CLUSTER,
        more=True,
        pool="gpu",
        pods=12,
        requests={"cpu": 2400, "memory": 2**31},
    ),
    SyncEvent(
        time_ms=_NOW_MS,
        cluster=_CLUSTER,
        more=True,
        phase="END",
        kind="pod",
        sync="pod-9",
        request=41,
        resource_version=123456,
    ),
    TickEvent(time_ms=_NOW_MS, cluster=_CLUSTER, more=True),
    OutcomeEvent(
        time_ms=_NOW_MS,
        cluster=_CLUSTER,
        more=True,
        seq=42,
        epoch="1-4711",
        decision="admit",
        result="Conflict",
        message="the pod is another one now",
        uid=_UID,
    ),
    ConfigEvent(time_ms=_NOW_MS, cluster=_CLUSTER, more=True, config=_CONFIG),
    SetAsideEvent(
        time_ms=_NOW_MS,
        cluster=_CLUSTER,
        more=True,
        offset=4711,
        what="pod/home/0b5c6d7e",
        reason="ZeroDivisionError: division by zero",
    ),
    RebuildEvent(
        time_ms=_NOW_MS,
        cluster=_CLUSTER,
        more=True,
        config=_CONFIG,
        next_seq=43,
        reason="Redis lost its data",
        previous="0a1b2c3d" * 8,
    ),
)

DECISION_SAMPLES: tuple[Decision, ...] = (
    Admit(
        **_decision(42, "WithinShare", "Pod team-a/spark-1-exec-7 fits: team-a has 3 of its 8 cores."),
        **_ABOUT_POD,
        queue="team-a",
        pool="gpu",
        node_selector={"pool": "gpu"},
    ),
    Evict(
        **_decision(43, "Reclaimed", "Pod team-a/spark-1-exec-7 is taken back for team-b."),
        **_ABOUT_POD,
        queue="team-a",
        deadline_ms=_NOW_MS + 30_000,
    ),
    AdmitWorkload(
        **_decision(50, "GangFits", "fits into pool gpu; team-a came first, holding nothing yet"),
        name="spark-1",
        uid=_UID,
        namespace="team-a",
        queue="team-a",
        pools={"executor": "gpu"},
        reserved={"executor": 2},
        application="RayCluster",
        suspendable=True,
    ),
    EvictWorkload(
        **_decision(51, "Reclaimed", "Workload team-a/spark-1 is taken back for team-b."),
        name="spark-1",
        uid=_UID,
        namespace="team-a",
        queue="team-a",
        deadline_ms=_NOW_MS + 30_000,
        application="RayCluster",
        suspendable=True,
    ),
    CreateWorkload(
        **_decision(0, "Found", "RayCluster/ray is admitted as a whole: this shows how far it is"),
        name="raycluster-ray-0a1b2",
        uid=_UID,
        namespace="team-a",
        application="RayCluster",
        application_name="ray",
        queue="team-a",
        priority=100,
        priority_class="nightly",
        pod_sets=(
            ShownPodSet(
                name="small", count=3, min_count=1, max_count=10, requests={"cpu": 1500, "memory": 2**30}
            ),
        ),
        application_spec={"workerGroupSpecs": [{"groupName": "small", "replicas": 3}]},
    ),
    ReportWorkload(
        **_decision(0, "Growing", "RayCluster/ray: growing, granted 3 of 10 small"),
        name="raycluster-ray-0a1b2",
        uid=_UID,
        namespace="team-a",
        generation=3,
        resource_version=4711,
        phase="Growing",
        pod_sets=(GrantedPods(name="small", desired=10, admitted=3, running=2, taken=1),),
        reclaimed={"small": 1},
        why="waits for 1500m cpu under pool gpu's cpu",
        conditions=(
            Condition(
                type="Granted",
                status="False",
                reason="Problem",
                message="granted 3 of 10 small; waits for 1500m cpu under pool gpu's cpu",
                since_ms=_NOW_MS,
            ),
        ),
        position=4,
        eta_ms=_NOW_MS + 90_000,
    ),
    CreatePod(
        **_decision(55, "Wanted", "Pod 2 of job nightly, attempt 1"),
        name="nightly-2-1",
        uid=_UID,
        namespace="team-a",
        job="nightly",
        queue="team-a",
        index=2,
    ),
    ReportJob(
        **_decision(0, "Running", "QueueJob nightly: 2 of 3 pods succeeded"),
        name="nightly",
        uid=_UID,
        namespace="team-a",
        generation=1,
        phase="Running",
        active=1,
        running=1,
        succeeded=2,
        failed=1,
        start_ms=_NOW_MS - 60_000,
        end_ms=_NOW_MS,
        conditions=(
            Condition(type="Complete", status="False", reason="AsExpected", message="", since_ms=_NOW_MS),
        ),
    ),
    Delete(
        **_decision(54, "DriverEnded", "its driver has ended, and nobody is left to use it"),
        name="spark-1-exec-4",
        uid=_UID,
        namespace="team-a",
        about="pod",
    ),
    LabelNamespace(
        **_decision(44, "Selected", "Queue team-a selects namespace team-a."),
        name="team-a",
        uid=_UID,
        namespace="",
        queue="team-a",
    ),
    ReportQueue(
        **_decision(0, "Tick", "Status of queue team-a."),
        name="team-a",
        uid=_UID,
        namespace="",
        generation=7,
        usage={"gpu/cpu": 3000},
        demand={"a100/cpu": 5000},
        fair_share={"a100/cpu": 4000},
        dominant_share="0.3750",
        dominant_resource="a100/cpu",
        pending=2,
        running=3,
        conditions=(_CONDITION,),
        pending_workloads=4,
        admitted_workloads=5,
        lost_work_ms=7_200_000,
        lost_work_hour_ms=600_000,
    ),
    ReportPool(
        **_decision(0, "Tick", "Status of pool gpu."),
        name="gpu",
        uid=_UID,
        namespace="",
        generation=2,
        nodes=1,
        capacity={"cpu": 5600},
        reserved={"cpu": 3000},
        unmanaged={"cpu": 2400},
        conditions=(_CONDITION,),
    ),
    Notice(
        **_decision(47, "NoSuchQueue", "Queue team-z does not exist: choose another label."),
        **_ABOUT_POD,
        about="pod",
    ),
    Fence(**_decision(48, "Rebuild", "Answer when nothing older is in flight.")),
    Resync(**_decision(49, "Rebuild", "List every kind again.")),
)


def encoded() -> dict[str, Message]:
    """The samples as messages, by their record's type with family: `event.pod`."""
    events = {f"event.{e.type}": EVENTS.encode(e, source="sluice/watcher/earth") for e in EVENT_SAMPLES}
    decisions = {
        f"decision.{d.type}": DECISIONS.encode(d, source="sluice/scheduler/default", epoch=EPOCH)
        for d in DECISION_SAMPLES
    }
    return events | decisions


def main() -> int:
    for name, message in encoded().items():
        golden = {
            "key": message.key.decode(),
            "headers": {header: value.decode() for header, value in message.headers},
            "body": json.loads(message.value),
        }
        kept = sorted((GOLDEN / name).glob(f"v{RECORD_VERSION}*.json"), key=lambda path: path.stem)
        if kept and json.loads(kept[-1].read_text()) == golden:
            continue
        path = GOLDEN / name / f"v{RECORD_VERSION}{f'.{len(kept)}' if kept else ''}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(golden, indent=2, ensure_ascii=False) + "\n")
        print(f"written: {path.relative_to(GOLDEN.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
