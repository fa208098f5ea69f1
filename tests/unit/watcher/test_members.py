"""Which application a pod belongs to."""

from __future__ import annotations

from typing import Any

import pytest
from samples_of_objects import pod
from sluice_watcher.applications.kinds import member_of
from sluice_watcher.applications.owners import CHAIN_MAX, Member, Owner, chain_of


def owner(kind: str, name: str = "nightly") -> Owner:
    return Owner(kind, name, f"uid-of-{kind}-{name}")


def made_by(controller: Owner | None, **labels: str) -> dict[str, Any]:
    named = {name.replace("__", "/").replace("_", "-"): text for name, text in labels.items()}
    references = []
    if controller:
        reference = {"kind": controller.kind, "name": controller.name, "uid": controller.uid}
        references = [{"kind": "Owner", "name": "other", "uid": "o"}, {**reference, "controller": True}]
    return pod(metadata={"labels": named, "ownerReferences": references})


SPARK = {"spark_app_selector": "spark-7", "spark_role": "executor"}
OPERATOR = {"sparkoperator.k8s.io__app_name": "nightly"}
DRIVER = owner("Pod", "nightly-driver")
SUBMITTER = owner("Job", "nightly-x")
DASK = {"dask.org__cluster_name": "nightly", "dask.org__component": "worker"}
RAY_WORKER = {"ray.io__node_type": "worker", "ray.io__group": "small"}

#: pod, and what controls what → which application, verified or not, and as what.
CASES: dict[str, tuple[dict[str, Any], dict[Owner, Owner], tuple[str, str, bool, str] | None]] = {
    "nobody's": (made_by(None), {}, None),
    "a Deployment's": (made_by(owner("ReplicaSet")), {owner("ReplicaSet"): owner("Deployment")}, None),
    "a Job's": (made_by(owner("Job")), {}, ("Job", "nightly", True, "main")),
    "a label alone makes no Job's pod": (made_by(None, job_name="nightly"), {}, None),
    "a CronJob's Job stands for itself": (
        made_by(owner("Job")),
        {owner("Job"): owner("CronJob")},
        ("Job", "nightly", True, "main"),
    ),
    "a SparkApplication's driver": (
        made_by(owner("SparkApplication"), **(SPARK | {"spark_role": "driver"}), **OPERATOR),
        {},
        ("SparkApplication", "nightly", True, "driver"),
    ),
    "its executor": (
        made_by(DRIVER, **SPARK, **OPERATOR),
        {DRIVER: owner("SparkApplication")},
        ("SparkApplication", "nightly", True, "executor"),
    ),
    "its executor, whose driver has gone": (
        made_by(DRIVER, **SPARK, **OPERATOR),
        {},
        ("SparkApplication", "nightly", False, "executor"),
    ),
    "an executor of a driver without operator": (
        made_by(DRIVER, **SPARK),
        {},
        ("SparkDriver", "spark-7", False, "executor"),
    ),
    "in client mode": (made_by(None, **SPARK), {}, ("SparkDriver", "spark-7", False, "executor")),
    "of the first resource profile": (
        made_by(None, **SPARK, spark_exec_resourceprofile_id="0"),
        {},
        ("SparkDriver", "spark-7", False, "executor"),
    ),
    "of another resource profile": (
        made_by(None, **SPARK, spark_exec_resourceprofile_id="2"),
        {},
        ("SparkDriver", "spark-7", False, "executor-2"),
    ),
    "a Ray head": (
        made_by(owner("RayCluster"), ray_io__cluster="nightly", **{"ray.io__node_type": "head"}),
        {},
        ("RayCluster", "nightly", True, "head"),
    ),
    "a Ray worker": (
        made_by(owner("RayCluster"), **RAY_WORKER),
        {},
        ("RayCluster", "nightly", True, "small"),
    ),
    "a RayJob's worker": (
        made_by(owner("RayCluster", "nightly-c"), **RAY_WORKER),
        {owner("RayCluster", "nightly-c"): owner("RayJob")},
        ("RayJob", "nightly", True, "small"),
    ),
    "a RayJob's submitter": (
        made_by(SUBMITTER),
        {SUBMITTER: owner("RayJob")},
        ("RayJob", "nightly", True, "submitter"),
    ),
    "a RayCluster's cleaner": (
        made_by(SUBMITTER, **{"ray.io__node_type": "redis-cleanup"}),
        {SUBMITTER: owner("RayCluster")},
        ("RayCluster", "nightly", True, ""),
    ),
    "a PyTorchJob's master": (
        made_by(owner("PyTorchJob"), **{"training.kubeflow.org__replica_type": "Master"}),
        {},
        ("PyTorchJob", "nightly", True, "master"),
    ),
    "a Dask worker": (made_by(owner("ReplicaSet"), **DASK), {}, ("DaskCluster", "nightly", False, "worker")),
    "a DaskJob's runner": (
        made_by(owner("DaskJob"), **(DASK | {"dask.org__component": "job-runner"})),
        {},
        ("DaskJob", "nightly", True, "runner"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_a_pod_is(case: str) -> None:
    body, above, expected = CASES[case]
    found = member_of(body, {each.uid: controller for each, controller in above.items()})
    if expected is None:
        assert found is None
        return
    kind, name, verified, pod_set = expected
    uid = owner(kind, name).uid if verified else ""
    assert found == Member(kind=kind, name=name, uid=uid, pod_set=pod_set)


def test_a_circle_of_controllers_ends() -> None:
    circle = owner("Pod", "a")
    assert len(chain_of(made_by(circle), {circle.uid: circle})) == CHAIN_MAX
