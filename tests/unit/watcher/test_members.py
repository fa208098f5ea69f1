"""As what a pod belongs to an application, and whose it says it is."""

from __future__ import annotations

from typing import Any

import pytest
from samples_of_objects import pod
from sluice_watcher.applications.kinds import leads_to, member_of
from sluice_watcher.applications.owners import Member, Owner, controller


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

#: pod → as what it belongs to which application by its labels, and whether its controller may lead there.
CASES: dict[str, tuple[dict[str, Any], tuple[str, str] | None, bool]] = {
    "nobody's": (made_by(None), None, False),
    "a Deployment's": (made_by(owner("ReplicaSet")), None, False),
    "a Job's": (made_by(owner("Job")), ("main", ""), True),
    "a label alone makes no Job's pod": (made_by(None, job_name="nightly"), None, False),
    "a SparkApplication's driver": (
        made_by(owner("SparkApplication"), **(SPARK | {"spark_role": "driver"}), **OPERATOR),
        ("driver", "SparkApplication/nightly"),
        True,
    ),
    "its executor": (made_by(DRIVER, **SPARK, **OPERATOR), ("executor", "SparkApplication/nightly"), True),
    "an executor of a driver without operator": (
        made_by(DRIVER, **SPARK),
        ("executor", "SparkDriver/spark-7"),
        True,
    ),
    "in client mode": (made_by(None, **SPARK), ("executor", "SparkDriver/spark-7"), False),
    "of the first resource profile": (
        made_by(None, **SPARK, spark_exec_resourceprofile_id="0"),
        ("executor", "SparkDriver/spark-7"),
        False,
    ),
    "of another resource profile": (
        made_by(None, **SPARK, spark_exec_resourceprofile_id="2"),
        ("executor-2", "SparkDriver/spark-7"),
        False,
    ),
    "a Ray head": (
        made_by(owner("RayCluster"), ray_io__cluster="nightly", **{"ray.io__node_type": "head"}),
        ("head", ""),
        True,
    ),
    "a Ray worker": (made_by(owner("RayCluster"), **RAY_WORKER), ("small", ""), True),
    "a RayJob's submitter, or a cluster's cleaner": (made_by(SUBMITTER), ("main", ""), True),
    "a PyTorchJob's master": (
        made_by(owner("PyTorchJob"), **{"training.kubeflow.org__replica_type": "Master"}),
        ("master", ""),
        True,
    ),
    "a Dask worker": (made_by(owner("ReplicaSet"), **DASK), ("worker", "DaskCluster/nightly"), False),
    "a DaskJob's runner": (
        made_by(owner("DaskJob"), **(DASK | {"dask.org__component": "job-runner"})),
        ("runner", "DaskJob/nightly"),
        True,
    ),
    "of a workload written by hand": (
        made_by(None, **{"sluice.dev__workload": "mine", "sluice.dev__pod_set": "crew"}),
        ("crew", "mine"),
        False,
    ),
    "of a group": (made_by(None, **{"sluice.dev__pod_group": "four"}), ("", "PodGroup/four"), False),
}


@pytest.mark.parametrize("case", CASES)
def test_whose_a_pod_is(case: str) -> None:
    body, expected, leads = CASES[case]
    found = member_of(body, controller(body))
    assert found == (Member(pod_set=expected[0], named=expected[1]) if expected else None)
    assert bool(leads_to(controller(body))) == leads
