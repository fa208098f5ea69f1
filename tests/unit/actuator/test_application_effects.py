"""What is done to applications and for them, against faults and decisions that are read twice."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from decisions_made import common, identity
from fakes.actuated_cluster import FakeCluster, Fault
from fakes.clock import FakeClock
from sluice.applications import APPLICATION_KINDS
from sluice.decisions import (
    AdmitWorkload,
    CreatePod,
    CreateWorkload,
    Delete,
    EvictWorkload,
    GrantedPods,
    ObjectDecision,
    ReportJob,
    ReportWorkload,
    ShownPodSet,
)
from sluice.vocabulary import DECISION_ANNOTATION, GATE, INDEX_LABEL, RELEASED_ANNOTATION
from sluice_actuator.effects import Effects, Outcome
from sluice_actuator.kube import pod_path
from sluice_actuator.settle import settle

JOB = APPLICATION_KINDS["Job"].path("team", "nightly")
TRAINING = APPLICATION_KINDS["PyTorchJob"].path("team", "nightly")
DASK = APPLICATION_KINDS["DaskCluster"].path("team", "nightly")
SHOWN = APPLICATION_KINDS["DynamicWorkload"].path("team", "job-nightly-12345")
QUEUE_JOB = APPLICATION_KINDS["QueueJob"].path("team", "batch")
MADE = pod_path("team", "batch-2-0")


def of_nightly(seq: int, **changes: Any) -> dict[str, Any]:
    return common(seq, **{"name": "nightly", "namespace": "team", **changes})


def release(seq: int = 7, kind: str = "Job", *, suspendable: bool = True) -> AdmitWorkload:
    return AdmitWorkload(
        queue="team", pools={}, reserved={}, application=kind, suspendable=suspendable, **of_nightly(seq)
    )


def suspend(seq: int = 8, kind: str = "Job", *, suspendable: bool = True) -> EvictWorkload:
    return EvictWorkload(
        queue="team", deadline_ms=0, application=kind, suspendable=suspendable, **of_nightly(seq)
    )


def create(seq: int = 9) -> CreateWorkload:
    return CreateWorkload(
        application="Job",
        application_name="nightly",
        queue="team",
        priority=100,
        priority_class="",
        pod_sets=(
            ShownPodSet(name="main", count=3, min_count=1, max_count=3, requests={"cpu": 1500, "pods": 1}),
        ),
        application_spec={"parallelism": 3},
        **of_nightly(seq, name="job-nightly-12345"),
    )


def report(seq: int = 10, phase: Any = "Growing", version: int = 0) -> ReportWorkload:
    return ReportWorkload(
        generation=1,
        resource_version=version,
        phase=phase,
        pod_sets=(GrantedPods(name="main", desired=3, admitted=2, running=1, taken=0),),
        reclaimed={"main": 1},
        why="waits for 1 cpu",
        conditions=(),
        position=4,
        eta_ms=90_000,
        **of_nightly(seq, name="job-nightly-12345"),
    )


def make_pod(seq: int = 11) -> CreatePod:
    return CreatePod(job="batch", queue="team", index=2, **of_nightly(seq, name="batch-2-0", uid="uid-qj"))


def clean_up(seq: int = 12, about: Any = "pod", **changes: Any) -> Delete:
    return Delete(about=about, **of_nightly(seq, **changes))


@pytest.fixture
def cluster() -> FakeCluster:
    cluster = FakeCluster()
    cluster.put(JOB, {"metadata": {"uid": "uid-1"}, "spec": {"suspend": True, "parallelism": 3}})
    cluster.put(TRAINING, {"metadata": {"uid": "uid-1"}, "spec": {"runPolicy": {"suspend": True}}})
    cluster.put(DASK, {"metadata": {"uid": "uid-1"}, "spec": {}})
    template = {"metadata": {"labels": {"app": "b"}}, "spec": {"containers": [{"name": "main"}]}}
    cluster.put(QUEUE_JOB, {"metadata": {"uid": "uid-qj"}, "spec": {"template": template}})
    return cluster


async def carry_out(cluster: FakeCluster, *decisions: ObjectDecision) -> list[Outcome]:
    clock = FakeClock()
    effects = Effects(cluster, termination_s=600)
    return [
        await settle(
            effects.of(each, identity(each.seq)),
            now_ms=clock.now_ms,
            pause=clock.sleep,
            barred=lambda: False,
            random=Random(1),
        )
        for each in decisions
    ]


async def test_a_release_is_one_write_and_says_who_decided_it(cluster: FakeCluster) -> None:
    assert [o.result for o in await carry_out(cluster, release())] == ["Applied"]
    assert len(cluster.calls) == 1
    job = cluster.objects[JOB]
    assert job["spec"] == {"suspend": False, "parallelism": 3}
    assert job["metadata"]["annotations"] == {DECISION_ANNOTATION: str(identity(7))}


async def test_each_kind_has_its_field_or_none(cluster: FakeCluster) -> None:
    await carry_out(cluster, release(kind="PyTorchJob"))
    assert cluster.objects[TRAINING]["spec"] == {"runPolicy": {"suspend": False}}
    dask = release(kind="DaskCluster", suspendable=False)
    await carry_out(cluster, dask)
    assert cluster.objects[DASK]["metadata"]["annotations"][RELEASED_ANNOTATION] == "true"
    await carry_out(cluster, suspend(kind="DaskCluster", suspendable=False))
    assert cluster.objects[DASK]["metadata"]["annotations"][RELEASED_ANNOTATION] == "false"


@pytest.mark.parametrize("kind", ["SparkDriver", "DynamicWorkload"])
async def test_where_there_is_nothing_to_release_nothing_is_written(cluster: FakeCluster, kind: str) -> None:
    [outcome] = await carry_out(cluster, release(kind=kind, suspendable=False))
    assert outcome.result == "AlreadyApplied"
    assert cluster.calls == []


async def test_a_suspension_that_is_read_again_does_not_undo_a_later_release(cluster: FakeCluster) -> None:
    await carry_out(cluster, release(7), suspend(8), release(9))
    [outcome] = await carry_out(cluster, suspend(8))
    assert outcome.result == "Superseded"
    assert cluster.objects[JOB]["spec"]["suspend"] is False


async def test_another_object_of_the_name_is_left_alone(cluster: FakeCluster) -> None:
    cluster.put(JOB, {"metadata": {"uid": "another"}, "spec": {"suspend": True}})
    results = [o.result for o in await carry_out(cluster, release(), suspend())]
    assert results == ["Gone", "Gone"]
    assert cluster.objects[JOB]["spec"]["suspend"] is True


@pytest.mark.parametrize("decision", [release(), suspend(), create(), make_pod()], ids=lambda d: d.type)
@pytest.mark.parametrize("fault", list(Fault), ids=str)
async def test_whatever_the_server_answers_it_is_carried_out_once(
    cluster: FakeCluster, decision: ObjectDecision, fault: Fault
) -> None:
    cluster.faults.append(fault)
    [outcome] = await carry_out(cluster, decision)
    if fault is Fault.REJECTED:
        assert outcome.result == "Rejected"
        return
    assert outcome.result in ("Applied", "AlreadyApplied")
    [again] = await carry_out(cluster, decision)
    assert again.result in ("Applied", "AlreadyApplied")


async def test_the_workload_that_shows_an_application_is_controlled_by_it(cluster: FakeCluster) -> None:
    await carry_out(cluster, create())
    shown = cluster.objects[SHOWN]
    [owner] = shown["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "nightly",
        "uid": "uid-1",
        "controller": True,
    }
    assert shown["spec"]["podSets"] == [
        {"name": "main", "count": 3, "minCount": 1, "maxCount": 3, "requests": {"cpu": "1.5"}}
    ]
    assert shown["spec"]["applicationSpec"] == {"parallelism": 3}


async def test_whether_a_workload_may_be_as_it_was_decided_the_api_server_says(cluster: FakeCluster) -> None:
    """Who judges it here would end the actuator, each time it is begun anew."""
    odd = ShownPodSet(name="a b", count=2**40, min_count=2**41, max_count=1, requests={"cpu": -1})
    [outcome] = await carry_out(cluster, replace(create(), pod_sets=(odd,)))
    assert outcome.result == "Applied"


async def test_a_workload_of_something_else_by_that_name_is_a_conflict(cluster: FakeCluster) -> None:
    cluster.put(SHOWN, {"metadata": {"uid": "x"}, "spec": {"application": {"uid": "another"}}})
    [outcome] = await carry_out(cluster, create())
    assert outcome.result == "Conflict"


async def test_its_status_takes_one_write_and_goes_on_from_its_creation(cluster: FakeCluster) -> None:
    results = [o.result for o in await carry_out(cluster, create(), report())]
    assert results == ["Applied", "Applied"]
    assert len(cluster.calls) == 2
    status = cluster.objects[SHOWN]["status"]
    assert (status["phase"], status["reason"]) == ("Growing", "waits for 1 cpu")
    assert (status["queuePosition"], status["eta"]) == (4, "1970-01-01T00:01:30Z")
    assert status["podSets"][0] == {
        "name": "main",
        "desired": 3,
        "admitted": 2,
        "running": 1,
        "reclaimed": 0,
    }
    assert status["reclaimedPodSetPods"] == [{"name": "main", "count": 1}]


async def test_the_status_of_a_workload_that_somebody_deleted_is_gone(cluster: FakeCluster) -> None:
    [outcome] = await carry_out(cluster, report())
    assert outcome.result == "Gone"


@pytest.mark.parametrize(("age", "calls"), [(0, 1), (1, 3)])
async def test_the_version_at_which_a_workload_was_seen_saves_reading_it_if_it_still_stands(
    cluster: FakeCluster, age: int, calls: int
) -> None:
    shown = cluster.put(SHOWN, {"metadata": {"uid": "uid-dw"}, "spec": {"application": {"uid": "uid-1"}}})
    seen = int(shown["metadata"]["resourceVersion"]) - age
    [outcome] = await carry_out(cluster, report(version=seen))
    assert outcome.result == "Applied"
    assert len(cluster.calls) == calls  # a write that fails, a look, and a write
    assert cluster.objects[SHOWN]["status"]["phase"] == "Growing"


async def test_a_pod_of_a_queue_job_is_made_from_its_template(cluster: FakeCluster) -> None:
    await carry_out(cluster, make_pod())
    made = cluster.objects[MADE]
    assert made["metadata"]["labels"] == {"app": "b", "sluice.dev/job": "batch", INDEX_LABEL: "2"}
    assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-qj"
    assert made["spec"] == {"restartPolicy": "Never", "containers": [{"name": "main"}]}


@pytest.mark.parametrize("metadata", [None, {}, {"labels": None, "annotations": None}])
async def test_a_template_may_leave_its_metadata_out(cluster: FakeCluster, metadata: object) -> None:
    template = {"metadata": metadata, "spec": {"containers": []}}
    cluster.put(QUEUE_JOB, {"metadata": {"uid": "uid-qj"}, "spec": {"template": template}})
    await carry_out(cluster, make_pod())
    assert cluster.objects[MADE]["metadata"]["labels"] == {"sluice.dev/job": "batch", INDEX_LABEL: "2"}


@pytest.mark.parametrize("template", [None, [], {}, {"spec": "main"}, {"metadata": 1, "spec": {}}])
async def test_a_template_that_makes_no_sense_is_rejected(cluster: FakeCluster, template: object) -> None:
    cluster.put(QUEUE_JOB, {"metadata": {"uid": "uid-qj"}, "spec": {"template": template}})
    [outcome] = await carry_out(cluster, make_pod())
    assert outcome.result == "Rejected"
    assert outcome.message.startswith("it can't be written: ")
    cluster.put(MADE, {"metadata": {"ownerReferences": [{"uid": "uid-qj"}]}})
    [outcome] = await carry_out(cluster, make_pod())
    assert outcome.result == "AlreadyApplied", "nothing is called rejected before somebody has looked"


async def test_no_pod_is_made_of_a_job_that_is_gone_or_another(cluster: FakeCluster) -> None:
    cluster.put(QUEUE_JOB, {"metadata": {"uid": "another"}, "spec": {"template": {"spec": {}}}})
    [outcome] = await carry_out(cluster, make_pod())
    assert outcome.result == "Gone"
    del cluster.objects[QUEUE_JOB]
    [outcome] = await carry_out(cluster, make_pod())
    assert outcome.result == "Gone"
    assert MADE not in cluster.objects


async def test_only_a_pod_behind_its_gate_is_cleaned_up(cluster: FakeCluster) -> None:
    path = pod_path("team", "exec-1")
    gated = {"metadata": {"uid": "uid-1"}, "spec": {"schedulingGates": [{"name": GATE}]}}
    cluster.put(path, {"metadata": {"uid": "uid-1"}, "spec": {}})
    [outcome] = await carry_out(cluster, clean_up(name="exec-1"))
    assert outcome.result == "Conflict"
    cluster.put(path, gated)
    [outcome] = await carry_out(cluster, clean_up(name="exec-1"))
    assert outcome.result == "Applied"
    assert path not in cluster.objects


async def test_a_shown_workload_is_deleted_by_the_name_of_what_it_showed(cluster: FakeCluster) -> None:
    cluster.put(SHOWN, {"metadata": {"uid": "x"}, "spec": {"application": {"uid": "SparkDriver-team-1"}}})
    other = clean_up(about="dynamicworkload", name="job-nightly-12345", uid="another")
    mine = clean_up(about="dynamicworkload", name="job-nightly-12345", uid="SparkDriver-team-1")
    assert [o.result for o in await carry_out(cluster, other, mine)] == ["Gone", "Applied"]


async def test_a_job_says_how_far_it_is(cluster: FakeCluster) -> None:
    decision = ReportJob(
        generation=1,
        phase="Running",
        active=2,
        running=1,
        succeeded=3,
        failed=0,
        start_ms=900_000,
        end_ms=0,
        conditions=(),
        **of_nightly(13, name="batch", uid="uid-qj"),
    )
    [outcome] = await carry_out(cluster, decision)
    assert outcome.result == "Applied"
    status = cluster.objects[QUEUE_JOB]["status"]
    assert (status["phase"], status["active"], status["succeeded"]) == ("Running", 2, 3)
    assert status["startTime"] == "1970-01-01T00:15:00Z"
    assert "completionTime" not in status
