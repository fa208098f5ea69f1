"""Who asks for how much: three tenants with one application each, on four simulated nodes.

`etl` comes first, with a Spark application that takes the whole cluster and would take more. Then comes `ml`
with a RayCluster, whose workers are large in memory, and last `batch` with a parallel Job. Each gets its
share by weight, and etl's counts twice; what the first one has too much of is taken back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice_local.stand_ins import stand_in

LABEL: Final = "sluice.dev/demo"
POOL: Final = "default"
NODES: Final = 4
NODE_CPU: Final = 8
NODE_GI: Final = 32
NODE_PODS: Final = 110
CAPACITY: Final = {
    "cpu": NODES * NODE_CPU * 1000,
    "memory": NODES * NODE_GI * 2**30,
    "pods": NODES * NODE_PODS,
}

#: More than the cluster has, so that it is granted in part.
SPARK_WANTS: Final = 40
SPARK_LEAST: Final = 2
RAY_WANTS: Final = 8
RAY_LEAST: Final = 2
RAY_GROUP: Final = "workers"
JOB_PODS: Final = 12
JOB_STARTS_WITH: Final = 4
JOB_POD_RUNS_FOR: Final = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    name: str
    weight: int
    kind: str  # of its application, which bears the tenant's name
    collection: str  # of applications of that kind: group, version, plural
    dominant: str  # the resource that its pods take the largest part of

    @property
    def namespace(self) -> str:
        return f"demo-{self.name}"

    @property
    def application(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def applications_path(self) -> str:
        version, _, plural = self.collection.rpartition("/")
        return f"/apis/{version}/namespaces/{self.namespace}/{plural}"

    @property
    def application_path(self) -> str:
        return f"{self.applications_path}/{self.name}"


ETL: Final = Tenant(
    name="etl",
    weight=2,
    kind="SparkApplication",
    collection="sparkoperator.k8s.io/v1beta2/sparkapplications",
    dominant="cpu",
)
ML: Final = Tenant(
    name="ml", weight=1, kind="RayCluster", collection="ray.io/v1/rayclusters", dominant="memory"
)
BATCH: Final = Tenant(name="batch", weight=1, kind="Job", collection="batch/v1/jobs", dominant="cpu")
TENANTS: Final = (ETL, ML, BATCH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """Who takes part, and how much there is for all of them."""

    tenants: tuple[Tenant, ...]
    capacity: Mapping[str, int]
    job_pods: int

    def tenant_in(self, namespace: str) -> Tenant | None:
        return next((tenant for tenant in self.tenants if tenant.namespace == namespace), None)


CAST: Final = Cast(tenants=TENANTS, capacity=CAPACITY, job_pods=JOB_PODS)


# ---- the cluster


def node(number: int) -> dict[str, Any]:
    amounts = {"cpu": str(NODE_CPU), "memory": f"{NODE_GI}Gi", "pods": str(NODE_PODS)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"demo-{number}",
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {LABEL: "true", "kubernetes.io/hostname": f"demo-{number}"},
        },
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pool() -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "ResourcePool",
        "metadata": {"name": POOL, "labels": {LABEL: "true"}},
        # Nobody of the demo can go to other pools of the stack, so shares are parts of this one alone.
        "spec": {"nodeSelector": {LABEL: "true"}, "supply": "demo"},
    }


def queue(tenant: Tenant) -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": tenant.name, "labels": {LABEL: "true"}},
        "spec": {"weight": tenant.weight, "namespaces": {"names": [tenant.namespace]}},
    }


def namespace(tenant: Tenant) -> dict[str, Any]:
    """Managed, and not bound: the Queue selects it, so Sluice binds it."""
    labels = {LABEL: "true", "sluice.dev/managed": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant.namespace, "labels": labels}}


# ---- the applications: ordinary ones, as their users write them


def application(tenant: Tenant) -> dict[str, Any]:
    specs = {ETL: _spark, ML: _ray, BATCH: _job}
    return {**head(tenant, JOB_STARTS_WITH), "spec": specs[tenant]()}


def head(tenant: Tenant, job_starts_with: int) -> dict[str, Any]:
    """All of its application but the spec."""
    version, _, _ = tenant.collection.rpartition("/")
    annotations = {"sluice.dev/min-count": str(job_starts_with)} if tenant is BATCH else {}
    return {
        "apiVersion": version,
        "kind": tenant.kind,
        "metadata": {
            "name": tenant.name,
            "namespace": tenant.namespace,
            "labels": {LABEL: "true"},
            "annotations": annotations,
        },
    }


def _spark() -> dict[str, Any]:
    """2Gi a pod: what Spark adds to the heap is written down, so that all can be told from here."""
    size = {"cores": 1, "memory": "1536m", "memoryOverhead": "512m", "nodeSelector": {LABEL: "true"}}
    return {
        "type": "Scala",
        "mode": "cluster",
        "sparkVersion": "4.0.0",
        "image": "spark",
        "mainClass": "org.example.Etl",
        "mainApplicationFile": "local:///opt/etl.jar",
        "driver": dict(size),
        "executor": dict(size),
        "dynamicAllocation": {
            "enabled": True,
            "initialExecutors": SPARK_LEAST,
            "minExecutors": SPARK_LEAST,
            "maxExecutors": 100,
        },
    }


def _ray() -> dict[str, Any]:
    return {
        "rayVersion": "2.48.0",
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {"resources": _requests("500m", "512Mi")},
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": pod_spec("ray-head", "500m", "3584Mi")}},
        "workerGroupSpecs": [
            {
                "groupName": RAY_GROUP,
                "replicas": RAY_LEAST,
                "minReplicas": RAY_LEAST,
                "maxReplicas": 20,
                "rayStartParams": {},
                "template": {"spec": pod_spec("ray-worker", "1", "8Gi")},
            }
        ],
    }


def _job() -> dict[str, Any]:
    """Each of its pods has one task. One that is taken back counts as failed, so it may fail often."""
    return {
        "parallelism": JOB_PODS,
        "completions": JOB_PODS,
        "backoffLimit": 100,
        "template": {
            "metadata": {"labels": {LABEL: "true"}, "annotations": {"sluice.dev/run-for": JOB_POD_RUNS_FOR}},
            "spec": pod_spec("work", "1", "1Gi"),
        },
    }


def pod_spec(container: str, cpu: str, memory: str) -> dict[str, Any]:
    return {
        "nodeSelector": {LABEL: "true"},  # other pools of the stack are not the demo's to fill
        "containers": [{"name": container, "image": "simulated", "resources": _requests(cpu, memory)}],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }


def _requests(cpu: str, memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}}


# ---- the kinds, where the projects' own CRDs are not installed


def crd(tenant: Tenant) -> dict[str, Any]:
    suspend = {"suspend": {"type": "boolean"}}
    return stand_in(tenant.kind, tenant.collection, labels={LABEL: "true"}, spec_properties=suspend)
