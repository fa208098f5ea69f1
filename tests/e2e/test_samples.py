"""What other projects publish as samples, applied as it is under their own operators: what Sluice reserves for each
is what its pods ask for.

Nodes are simulated. So no Spark driver runs, and nothing but a driver is compared of Spark.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from cluster import Tenants, node, pool, queue
from cluster_api import Object, eventually, made
from sluice.applications import APPLICATION_KINDS, BY_HAND
from sluice.quantities import to_base_units
from sluice.values import Resources
from sluice_local import Stack
from sluice_local.kubectl import kubectl
from sluice_local.operators.kuberay import KubeRay
from sluice_local.operators.spark import SparkController
from sluice_watcher.applications.ray import HEAD, SUBMITTER
from sluice_watcher.applications.spark import EXECUTOR
from sluice_watcher.requests import effective_requests

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
OPERATORS = ("kuberay", "spark-operator")

#: Where Spark's samples are, and those of Ray go there too.
_NAMESPACE: Final = "default"
_RAY: Final = (
    "ray-cluster.auth",
    "ray-cluster.autoscaler",
    "ray-cluster.autoscaler-v2",
    "ray-cluster.complete",
    "ray-cluster.fluentbit",
    "ray-cluster.head-command",
    "ray-cluster.sample",
    "ray-cluster.tls",
    "ray-job.deletion-rules",
    "ray-job.interactive-mode",
    "ray-job.light-weight-submitter",
    "ray-job.resources",
    "ray-job.sample",
    "ray-job.shutdown",
    "ray-job.sidecar-mode",
)
_SPARK: Final = (
    "spark-pi",
    "spark-pi-configmap",
    "spark-pi-custom-resource",
    "spark-pi-dynamic-allocation",
    "spark-pi-pod-template",
    "spark-pi-python",
)


@pytest.fixture
def cluster(running: Stack, tenants: Tenants) -> Iterator[Tenants]:
    tenants.provide(
        pool(),
        node("n", cpu="1000", memory="8000Gi", labels={"kubernetes.io/os": "linux"}),
        queue(_NAMESPACE),
    )
    path = f"/api/v1/namespaces/{_NAMESPACE}"
    made(tenants.api.merge(path, {"metadata": {"labels": {"sluice.dev/managed": "true"}}}))
    eventually(lambda: tenants.binding(_NAMESPACE) == _NAMESPACE, seconds=60)
    yield tenants
    made(tenants.api.merge(path, {"metadata": {"labels": {"sluice.dev/managed": None}}}))


@pytest.mark.parametrize("sample", _RAY)
def test_what_is_reserved_for_a_sample_of_kuberay(running: Stack, cluster: Tenants, sample: str) -> None:
    _compare(running, cluster, KubeRay.manifests.source() / "config" / "samples" / f"{sample}.yaml")


@pytest.mark.parametrize("sample", _SPARK)
def test_what_is_reserved_for_a_sample_of_the_spark_operator(
    running: Stack, cluster: Tenants, sample: str
) -> None:
    module = SparkController.manifests.source()
    _kubectl(running, "apply", f"--filename={module / 'config/rbac/spark-application-rbac.yaml'}")
    _compare(running, cluster, module / "examples" / f"{sample}.yaml")


def _compare(running: Stack, cluster: Tenants, sample: Path) -> None:
    _kubectl(running, "apply", "--server-side", f"--filename={sample}")
    try:
        with suppress(AssertionError):
            eventually(lambda: not _differences(cluster), seconds=40)
        assert _differences(cluster) == []
    finally:
        _kubectl(running, "delete", "--ignore-not-found", f"--filename={sample}")
        eventually(lambda: not cluster.pods(_NAMESPACE) and not _shown(cluster), seconds=90)


def _differences(cluster: Tenants) -> list[str]:
    """Between what is reserved for its pod sets and what its pods ask for, each by name."""
    found = [] if _shown(cluster) else ["nothing is reserved"]
    asked: dict[str, list[Resources]] = defaultdict(list)
    for pod in cluster.pods(_NAMESPACE):
        if name := _pod_set(pod["metadata"]["labels"]):
            asked[name].append(effective_requests(pod))
    for workload in _shown(cluster):
        for each in workload["spec"]["podSets"]:
            name, pods = each["name"], asked.pop(each["name"], [])
            reserved = {"pods": 1} | {r: to_base_units(r, text) for r, text in each["requests"].items()}
            found += [f"{name}: {reserved} are reserved, {pod} asked for" for pod in pods if pod != reserved]
            if len(pods) != each["count"] and name != EXECUTOR:
                found.append(f"{name}: {each['count']} are reserved, {len(pods)} asked for")
    return found + [f"nothing is reserved for {name}" for name in asked]


def _pod_set(labels: Mapping[str, str]) -> str:
    """Empty of what a sample brings along beside its application, such as a Redis."""
    if "ray.io/node-type" in labels:
        return HEAD if labels["ray.io/node-type"] == "head" else labels["ray.io/group"]
    return labels.get("spark-role") or (SUBMITTER if "job-name" in labels else "")


def _shown(cluster: Tenants) -> list[Object]:
    path = APPLICATION_KINDS[BY_HAND].path(_NAMESPACE, "").rstrip("/")
    return list(made(cluster.api.get(path))["items"])


def _kubectl(running: Stack, *arguments: str) -> None:
    kubectl(f"--kubeconfig={running.endpoints.kubeconfig}", f"--namespace={_NAMESPACE}", *arguments)
