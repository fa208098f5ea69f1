"""Who asks for what: the tenants of `make demo`, with programs that run, in a queue that has little for all of them.

Requests are small, for the node may have two cores only, and what is limited is the queue above the three.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from sluice_local.demo import scenario
from sluice_local.demo.scenario import BATCH, ETL, LABEL, Cast, Tenant
from sluice_local.kubernetes import NODE_NAME
from sluice_local.node.kubelet import LABEL as NODE_LABEL

ABOVE: Final = "demo"
#: A driver and four of the six executors that Spark wants: what anybody else gets is taken from those.
LIMIT: Final = {"cpu": "1400m", "memory": "8Gi"}
SPARK_WANTS: Final = 6
SPARK_GETS: Final = 4
#: More than there is room for beside the head, even if Spark is through by then.
RAY_WANTS: Final = 7
JOB_PODS: Final = 6
JOB_STARTS_WITH: Final = 2

#: Of machines, memory is never what these pods take the largest part of.
ML: Final = replace(scenario.ML, dominant="cpu")
CAST: Final = Cast(
    tenants=(ETL, ML, BATCH),
    capacity={"cpu": 1400, "memory": 8 * 2**30, "pods": scenario.NODE_PODS},
    job_pods=JOB_PODS,
)

_NODE: Final = {NODE_LABEL: NODE_NAME}
_PROGRAMS: Final = "/opt/demo"
IMAGES: Final = {ETL.name: "spark", ML.name: "ray", BATCH.name: "python"}
#: What a line begins with that tells what was found.
RESULT: Final = "result:"

# ---- what they compute. Each part takes a while, however fast the machine is, so that there is something to see.

#: The area under a curve, in slices. There are so many that Ray and the Job come and go meanwhile.
_PI: Final = """
import time
from operator import add
from pyspark.sql import SparkSession

SLICES, STEPS = 180, 10_000
WIDTH = 1 / (SLICES * STEPS)

def area(part):
    time.sleep(1.5)
    return sum(4 / (1 + ((step + 0.5) * WIDTH) ** 2) for step in range(part * STEPS, (part + 1) * STEPS)) * WIDTH

session = SparkSession.builder.getOrCreate()
print("result:", session.sparkContext.parallelize(range(SLICES), SLICES).map(area).reduce(add))
session.stop()
"""

#: Tasks of one CPU each, which Ray counts for itself: a worker has one at a time.
SQUARES: Final = """
import ray, time
ray.init(address="auto", log_to_driver=False)
@ray.remote(num_cpus=1)
def squares(part):
    time.sleep(2)
    return sum(number * number for number in range(part * 100_000, (part + 1) * 100_000))
print("result:", sum(ray.get([squares.remote(part) for part in range(10)])))
"""

#: One pod's part of all numbers; the sum of all parts is taken by who reads them.
_PRIMES: Final = """
import os, time
part = int(os.environ["JOB_COMPLETION_INDEX"])
numbers = range(part * 20_000, (part + 1) * 20_000)
is_prime = lambda n: n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))
print("result:", sum(filter(is_prime, numbers)))
time.sleep(4)
"""


@dataclass(frozen=True, slots=True)
class Task:
    """What a tenant's programs find out, each of them a part."""

    what: str
    parts: int
    is_right: Callable[[float], bool]


TASKS: Final = {
    ETL.name: Task(
        "Pi, as an area in 180 slices", 1, lambda found: math.isclose(found, math.pi, rel_tol=1e-10)
    ),
    ML.name: Task("sum of the squares below 1,000,000", 1, lambda found: found == 333_332_833_333_500_000),
    BATCH.name: Task("sum of the primes below 120,000", JOB_PODS, lambda found: found == 642_361_192),
}


# ---- the cluster


def objects() -> dict[str, dict[str, Any]]:
    """Manifests by path, and the queue above before those below it."""
    sluice = "/apis/sluice.dev/v1alpha1"
    above = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": ABOVE},
        "spec": {"limit": LIMIT},
    }
    found = {f"{sluice}/queues/{ABOVE}": above}
    for tenant in CAST.tenants:
        queue = scenario.queue(tenant)
        found[f"{sluice}/queues/{tenant.name}"] = {**queue, "spec": {**queue["spec"], "parent": ABOVE}}
        found[f"/api/v1/namespaces/{tenant.namespace}"] = scenario.namespace(tenant)
    return found | _of_spark(f"namespaces/{ETL.namespace}")


def _of_spark(where: str) -> dict[str, dict[str, Any]]:
    """Its driver makes its executors, so it needs an account; and its program is on no image."""
    name = ETL.name
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": ETL.namespace}],
    }
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
    program = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"pi.py": _PI}}
    return {
        f"/api/v1/{where}/serviceaccounts/{name}": account,
        f"/apis/rbac.authorization.k8s.io/v1/{where}/rolebindings/{name}": binding,
        f"/api/v1/{where}/configmaps/{name}": program,
    }


# ---- the applications


def application(tenant: Tenant, image: str) -> dict[str, Any]:
    """As its user writes it."""
    specs = {ETL.name: _spark, ML.name: _ray, BATCH.name: _job}
    return {**scenario.head(tenant, JOB_STARTS_WITH), "spec": specs[tenant.name](image)}


def _spark(image: str) -> dict[str, Any]:
    size = {"cores": 1, "memory": "512m", "labels": {LABEL: "true"}}
    return {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": "4.3.0",
        "image": image,
        "mainApplicationFile": f"local://{_PROGRAMS}/pi.py",
        "sparkConf": {"spark.pyspark.python": "python"},
        "dynamicAllocation": {
            "enabled": True,
            "minExecutors": 1,
            "maxExecutors": SPARK_WANTS,
            "shuffleTrackingEnabled": True,
        },
        "nodeSelector": _NODE,
        "volumes": [{"name": "programs", "configMap": {"name": ETL.name}}],
        "driver": {
            **size,
            "coreRequest": "200m",
            "serviceAccount": ETL.name,
            "volumeMounts": [{"name": "programs", "mountPath": _PROGRAMS}],
        },
        "executor": {**size, "coreRequest": "300m"},
    }


def _ray(image: str) -> dict[str, Any]:
    # Objects in the memory of so few tasks take little. And a node that takes half a minute to start, as on busy cores
    # it does, gives itself up: so agents are told their ports, and nobody reads other nodes' logs.
    small = {
        "object-store-memory": "100000000",
        "runtime-env-agent-port": "6390",
        "dashboard-agent-grpc-port": "6391",
        "include-log-monitor": "false",
    }
    return {
        "rayVersion": "2.60.0",
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "idleTimeoutSeconds": 2,
            # Otherwise workers that wait at their gates stay when nobody wants them any more.
            "env": [{"name": "RAY_AUTOSCALER_PENDING_NODE_IDLE_TIMEOUT_S", "value": "2"}],
            "resources": _requests("50m", "256Mi"),
        },
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", **small},
            "template": _template("ray", image, "150m", "1Gi"),
        },
        "workerGroupSpecs": [
            {
                "groupName": scenario.RAY_GROUP,
                "replicas": 0,
                "minReplicas": 0,
                "maxReplicas": RAY_WANTS,
                "rayStartParams": {"num-cpus": "1", **small},
                "template": _template("ray", image, "200m", "512Mi"),
            }
        ],
    }


def _job(image: str) -> dict[str, Any]:
    """Each of its pods has one part. One that is taken back counts as failed, so it may fail often."""
    command = ["python", "-c", _PRIMES]
    template = _template("work", image, "100m", "64Mi", command=command)
    template["spec"] |= {"restartPolicy": "Never", "securityContext": {"runAsUser": 1000}}
    return {
        "completionMode": "Indexed",
        "parallelism": JOB_PODS,
        "completions": JOB_PODS,
        "backoffLimit": 100,
        "template": template,
    }


def _template(container: str, image: str, cpu: str, memory: str, **more: Any) -> dict[str, Any]:
    containers = [{"name": container, "image": image, "resources": _requests(cpu, memory), **more}]
    return {
        "metadata": {"labels": {LABEL: "true"}},
        # Nothing here has anything to save when it is told to end.
        "spec": {"nodeSelector": _NODE, "containers": containers, "terminationGracePeriodSeconds": 2},
    }


def _requests(cpu: str, memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}}
