"""Who asks for how much, and when: three tenants whose pods differ in shape, on four simulated nodes.

`research` comes first and has the whole cluster; then `ads`, whose pods are large in memory, then `batch`.
From then on there is never room for all, and what finishes is given on by weight: research counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

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
CREATED_WITHIN_S: Final = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    name: str
    weight: int
    pods: int
    cpu_milli: int
    memory_gi: int
    comes_after_s: float

    @property
    def namespace(self) -> str:
        return f"demo-{self.name}"

    @property
    def requests(self) -> dict[str, int]:
        return {"cpu": self.cpu_milli, "memory": self.memory_gi * 2**30, "pods": 1}

    @property
    def dominant(self) -> str:
        """The resource that its pods take the largest part of."""
        return max(("cpu", "memory"), key=lambda resource: self.requests[resource] / CAPACITY[resource])

    @property
    def pods_path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


TENANTS: Final = (
    Tenant(name="research", weight=2, pods=100, cpu_milli=1000, memory_gi=2, comes_after_s=0),
    Tenant(name="ads", weight=1, pods=50, cpu_milli=500, memory_gi=4, comes_after_s=3),
    Tenant(name="batch", weight=1, pods=50, cpu_milli=1000, memory_gi=1, comes_after_s=6),
)
PODS: Final = sum(tenant.pods for tenant in TENANTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A pod that is created so long after the beginning."""

    after_s: float
    tenant: Tenant
    number: int

    @property
    def runs_for_s(self) -> int:
        """5 to 9 s: shares change pod by pod, not in waves."""
        return 5 + 3 * self.number % 5


def arrivals() -> list[Arrival]:
    """Each tenant's pods at even distances, from when it comes until all have been created."""
    return sorted(
        (
            Arrival(
                after_s=tenant.comes_after_s
                + number * (CREATED_WITHIN_S - tenant.comes_after_s) / tenant.pods,
                tenant=tenant,
                number=number,
            )
            for tenant in TENANTS
            for number in range(tenant.pods)
        ),
        key=lambda arrival: (arrival.after_s, arrival.tenant.name),
    )


# ---- objects


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
        "spec": {"nodeSelector": {LABEL: "true"}},
    }


def queue(tenant: Tenant) -> dict[str, Any]:
    """Nothing is taken back: nobody would create such a pod again, and all shall finish."""
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": tenant.name, "labels": {LABEL: "true"}},
        "spec": {
            "weight": tenant.weight,
            "namespaces": {"names": [tenant.namespace]},
            "reclaim": {"enabled": False},
        },
    }


def namespace(tenant: Tenant) -> dict[str, Any]:
    """Managed, and not bound: the Queue selects it, so Sluice binds it."""
    labels = {LABEL: "true", "sluice.dev/managed": "true"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": tenant.namespace, "labels": labels}}


def pod(arrival: Arrival) -> dict[str, Any]:
    """An ordinary pod: admission policies put it behind the gate, the annotation is for the simulation."""
    tenant = arrival.tenant
    requests = {"cpu": f"{tenant.cpu_milli}m", "memory": f"{tenant.memory_gi}Gi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{tenant.name}-{arrival.number:03}",
            "namespace": tenant.namespace,
            "labels": {LABEL: "true"},
            "annotations": {"sluice.dev/run-for": f"{arrival.runs_for_s}s"},
        },
        "spec": {
            "nodeSelector": {LABEL: "true"},  # other pools of the stack are not the demo's to fill
            "containers": [{"name": "work", "image": "work", "resources": {"requests": requests}}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
        },
    }
