"""Jobs on the whole product: suspended when they are made, admitted as a whole, growing, giving back."""

from __future__ import annotations

from typing import Any

import pytest
from applications import Applications
from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import Object, eventually, made
from sluice.events import PriorityClassEvent
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


def job(name: str, *, parallelism: int, completions: int | None, run_for: str, **annotations: str) -> Object:
    template = pod("x", run_for=run_for)
    metadata = {"annotations": template["metadata"]["annotations"]}
    spec: dict[str, Any] = {
        "parallelism": parallelism,
        "template": {"metadata": metadata, "spec": template["spec"]},
    }
    if completions is not None:
        spec["completions"] = completions
    named = {f"sluice.dev/{key.replace('_', '-')}": text for key, text in annotations.items()}
    return {"metadata": {"name": name, "annotations": named}, "spec": spec}


def jobs_of(tenants: Tenants, namespace: str) -> Applications:
    return Applications(tenants, namespace, "Job")


def ended(obj: Object) -> bool:
    return any(
        each["type"] in ("Complete", "Failed") and each["status"] == "True"
        for each in obj.get("status", {}).get("conditions", [])
    )


def test_a_job_is_suspended_admitted_and_shown(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    created = jobs.create(job("j", parallelism=3, completions=3, run_for="2s"))
    assert created["spec"]["suspend"]
    eventually(lambda: jobs.phase("j") == "Running", seconds=30)
    shown = jobs.shown("j")
    assert shown["metadata"]["ownerReferences"][0]["uid"] == created["metadata"]["uid"]
    assert shown["spec"]["podSets"][0]["requests"] == {"cpu": "1", "memory": "1Gi"}
    eventually(lambda: ended(jobs.get("j")), seconds=60)
    eventually(lambda: jobs.phase("j") == "Finished", seconds=30)
    eventually(lambda: tenants.queue_status("a").get("usage") == {}, seconds=30)


def test_one_that_names_no_priority_class_has_that_of_the_clusters_default(
    tenants: Tenants, audit: Audit
) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    made(jobs.api.create(path, {"metadata": {"name": "usual"}, "value": 700, "globalDefault": True}))
    try:
        eventually(
            lambda: any(isinstance(e, PriorityClassEvent) and e.name == "usual" for e in audit.events())
        )
        jobs.create(job("j", parallelism=1, completions=1, run_for=""))
        shown = eventually(lambda: jobs.shown("j"), seconds=30)
        assert shown["spec"]["priority"] == 700
        assert shown["spec"]["applicationSpec"]["parallelism"] == 1
        eventually(lambda: len(tenants.pods("a")) == 1, seconds=30)
        assert tenants.pods("a")[0]["spec"]["priority"] == 700
    finally:
        jobs.api.delete(f"{path}/usual")


def test_what_somebody_else_releases_is_set_back(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    jobs.create(job("big", parallelism=8, completions=8, run_for="2s", min_count="8"))
    answer = made(jobs.api.merge(f"{jobs.path}/big", {"spec": {"suspend": False}}))
    assert answer["spec"]["suspend"]
    eventually(lambda: jobs.phase("big") == "Pending", seconds=30)
    assert "asks for 8 cpu" in jobs.status("big")["reason"]
    assert tenants.pods("a") == []


def test_a_job_grows_and_gives_back_and_a_waiting_one_starts_by_that(
    running: Stack, tenants: Tenants
) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = jobs_of(tenants, "a")
    with observed(running.endpoints, "a") as observer:
        jobs.create(job("wide", parallelism=6, completions=6, run_for="6s"))
        eventually(lambda: jobs.granted("wide") == {"main": (4, 6)}, seconds=30)
        assert jobs.phase("wide") == "Growing"
        granted = jobs.condition("wide", "Granted")
        assert granted["status"] == "False"
        assert granted["message"].startswith("granted 4 of 6 main; waits for 1 cpu")
        jobs.create(job("next", parallelism=1, completions=1, run_for="1s"))
        eventually(lambda: ended(jobs.get("wide")) and ended(jobs.get("next")), seconds=90)
        assert observer.peak["cpu"] <= 4000
    eventually(lambda: tenants.queue_status("a").get("usage") == {}, seconds=30)


def test_a_queue_job_gets_its_pods_from_sluice(running: Stack, tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    jobs = Applications(tenants, "a", "QueueJob")
    template = pod("x", run_for="1s")
    metadata = {"annotations": template["metadata"]["annotations"], "labels": {"app": "batch"}}
    with observed(running.endpoints, "a") as observer:
        jobs.create(
            {
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "QueueJob",
                "metadata": {"name": "batch"},
                "spec": {
                    "replicas": 6,
                    "minAvailable": 2,
                    "completions": 9,
                    "template": {"metadata": metadata, "spec": template["spec"]},
                },
            }
        )
        eventually(lambda: jobs.get("batch").get("status", {}).get("phase") == "Finished", seconds=90)
        assert observer.peak["cpu"] <= 4000
    status = jobs.get("batch")["status"]
    assert (status["succeeded"], status["failed"], status["active"]) == (9, 0, 0)
    assert status["completionTime"] >= status["startTime"]
    names = {p["metadata"]["name"] for p in tenants.pods("a")}
    assert names == {f"batch-{index}-0" for index in range(9)}
    assert all(p["metadata"]["labels"]["app"] == "batch" for p in tenants.pods("a"))
    eventually(lambda: jobs.phase("batch") == "Finished", seconds=30)
    made(jobs.api.delete(f"{jobs.path}/batch"))
    eventually(lambda: tenants.pods("a") == [] and jobs.shown("batch") == {}, seconds=60)
    eventually(lambda: tenants.queue_status("a").get("usage") == {}, seconds=30)


def test_a_workload_written_by_hand_is_admitted_and_its_pods_name_it(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    workloads = Applications(tenants, "a", "Custom", stored_as="DynamicWorkload")
    for name, phase in (("one", "Running"), ("two", "Pending")):
        workloads.create(
            {
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "DynamicWorkload",
                "metadata": {"name": name},
                "spec": {
                    "application": {"apiVersion": "example.com/v1", "kind": "Custom", "name": name},
                    "podSets": [{"name": "main", "count": 3, "requests": {"cpu": "1", "memory": "1Gi"}}],
                },
            }
        )
        eventually(lambda name=name, phase=phase: workloads.phase(name) == phase, seconds=30)
    labels = {"sluice.dev/workload": "one", "sluice.dev/pod-set": "main"}
    for number in range(3):
        made(tenants.submit("a", pod(f"p{number}", labels=labels)))
    eventually(lambda: workloads.status("one")["podSets"][0]["admitted"] == 3, seconds=30)
    made(workloads.api.delete(f"{workloads.path}/one"))
    for number in range(3):
        tenants.delete("a", f"p{number}")
    eventually(lambda: workloads.phase("two") == "Running", seconds=30)


def test_a_pod_group_opens_together(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"))
    tenants.settle("a")
    group = {
        "labels": {"sluice.dev/pod-group": "four"},
        "annotations": {"sluice.dev/pod-group-size": "4"},
    }
    for number in range(3):
        obj = pod(f"g{number}")
        obj["metadata"].update(group)
        made(tenants.submit("a", obj))
    alone = pod("alone")
    made(tenants.submit("a", alone))
    eventually(lambda: tenants.phases("a").get("alone") == "Running", seconds=30)
    assert {p for p, phase in tenants.phases("a").items() if phase == "gated"} == {"g0", "g1", "g2"}
    tenants.delete("a", "alone")
    obj = pod("g3")
    obj["metadata"].update(group)
    made(tenants.submit("a", obj))
    eventually(lambda: set(tenants.phases("a").values()) == {"Running"}, seconds=30)


def test_one_that_ignores_disruptions_outlives_that_pods_of_it_are_taken_back(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n", cpu="4"), queue("a"), queue("b"))
    tenants.settle("a", "b")
    mine, theirs = jobs_of(tenants, "a"), jobs_of(tenants, "b")
    patient = job("patient", parallelism=4, completions=4, run_for="10m")
    ignored = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    patient["spec"] |= {"backoffLimit": 0, "podFailurePolicy": {"rules": [ignored]}}
    mine.create(patient)
    eventually(lambda: mine.phase("patient") == "Running", seconds=30)
    theirs.create(job("other", parallelism=2, completions=2, run_for="2s"))
    eventually(lambda: ended(theirs.get("other")), seconds=60)
    eventually(lambda: mine.get("patient")["status"].get("terminating") == 0, seconds=30)
    assert not ended(mine.get("patient"))
    assert mine.shown("patient")["status"]["podSets"][0]["reclaimed"] == 2
