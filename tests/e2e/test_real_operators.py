"""Spark and Ray really compute under their own operators, on a real node, in a queue that is too small for them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pytest
from applications import Applications
from cluster import TERMINAL, Tenants, observed, queue
from cluster_api import Object, eventually
from operators import spark
from sluice_local import Stack
from sluice_local.kubectl import KUBECTL

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
OPERATORS = ("kuberay", "spark-operator")

#: Eight tasks of 1 CPU each, which Ray counts for itself: a worker has one at a time.
_SQUARES: Final = """
import ray, time
ray.init(address="auto", log_to_driver=False)
@ray.remote(num_cpus=1)
def square(number):
    time.sleep(2)
    return number * number
print(sum(ray.get([square.remote(number) for number in range(8)])))
"""
_REAL: Final = {"sluice.dev/node": "real"}
#: Objects in the memory of so few tasks take little.
_SMALL: Final = {"object-store-memory": "100000000"}


@pytest.fixture
def with_real_node(machine: None, running: Stack, tenants: Tenants) -> Iterator[None]:
    running.node_up()
    yield
    running.node_down()


def ray_spec(image: str, *, replicas: int, workers_at_most: int, **more: Any) -> Object:
    return {
        "rayVersion": "2.60.0",
        "headGroupSpec": {
            "rayStartParams": {"num-cpus": "0", **_SMALL},
            "template": ray_pod(image, cpu="200m", memory="1Gi"),
        },
        "workerGroupSpecs": [
            {
                "groupName": "workers",
                "replicas": replicas,
                "minReplicas": replicas,
                "maxReplicas": workers_at_most,
                "rayStartParams": {"num-cpus": "1", **_SMALL},
                "template": ray_pod(image, cpu="400m", memory="512Mi"),
            }
        ],
        **more,
    }


def ray_pod(image: str, *, cpu: str, memory: str, **spec: Any) -> Object:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    container = {"name": "ray", "image": image, "resources": resources}
    return {"spec": {"nodeSelector": _REAL, "containers": [container], **spec}}


@pytest.mark.usefixtures("with_real_node")
def test_a_ray_cluster_grows_in_part_computes_and_shrinks(running: Stack, tenants: Tenants) -> None:
    """Its autoscaler wants four workers for eight tasks, and there is room for two beside the head."""
    image = running.image("ray")
    tenants.provide(queue("a", limit={"cpu": "1.1"}))
    tenants.settle("a")
    clusters = Applications(tenants, "a", "RayCluster")
    scales = {
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {
            "idleTimeoutSeconds": 2,
            # Otherwise workers that wait at their gates stay when nobody wants them any more.
            "env": [{"name": "RAY_AUTOSCALER_PENDING_NODE_IDLE_TIMEOUT_S", "value": "2"}],
            "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}},
        },
    }
    spec = ray_spec(image, replicas=0, workers_at_most=4, **scales)
    with observed(running.endpoints, "a") as observer:
        clusters.create(
            {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "squares"}, "spec": spec}
        )
        eventually(lambda: clusters.get("squares").get("status", {}).get("state") == "ready", seconds=180)
        assert clusters.granted("squares") == {"head": (1, 1), "workers": (0, 0)}
        with computing(running, head(tenants), _SQUARES) as program:
            eventually(lambda: clusters.granted("squares")["workers"] == (2, 4), seconds=60)
            assert clusters.phase("squares") == "Growing"
            said, complaint = program.communicate(timeout=300)
        assert said.endswith("140\n"), said + complaint
        eventually(lambda: clusters.granted("squares") == {"head": (1, 1), "workers": (0, 0)}, seconds=180)
        assert clusters.phase("squares") == "Running"
        assert observer.peak["cpu"] == 1100
        assert observer.born_open == set()
    clusters.delete("squares")
    eventually(lambda: not tenants.pods("a"), seconds=60)
    eventually(lambda: not tenants.queue_status("a").get("usage"), seconds=30)


def head(tenants: Tenants) -> str:
    pods = {
        pod["metadata"]["labels"]["ray.io/node-type"]: pod["metadata"]["name"] for pod in tenants.pods("a")
    }
    return pods["head"]


def computing(running: Stack, pod: str, program: str) -> subprocess.Popen[str]:
    """A program beside what runs in a pod."""
    there = (f"--kubeconfig={running.endpoints.kubeconfig}", "--namespace=a", "exec", pod, "--container=ray")
    return subprocess.Popen(
        [KUBECTL.path, *there, "--", "python", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.usefixtures("with_real_node")
def test_a_ray_job_is_submitted_and_gives_all_back(running: Stack, tenants: Tenants) -> None:
    image = running.image("ray")
    tenants.provide(queue("a"))
    tenants.settle("a")
    jobs = Applications(tenants, "a", "RayJob")
    spec = {
        "entrypoint": "python -c 'import ray; ray.init(); print(ray.get(ray.remote(lambda: 6 * 7).remote()))'",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": ray_spec(image, replicas=1, workers_at_most=1),
        "submitterPodTemplate": ray_pod(image, cpu="100m", memory="200Mi", restartPolicy="Never"),
    }
    with observed(running.endpoints, "a") as observer:
        jobs.create(
            {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "answer"}, "spec": spec}
        )
        eventually(lambda: jobs.get("answer").get("status", {}).get("jobStatus") == "SUCCEEDED", seconds=300)
        (submitter,) = [
            p["metadata"]["name"] for p in tenants.pods("a") if "job-name" in p["metadata"]["labels"]
        ]
        log = f"/api/v1/namespaces/a/pods/{submitter}/log"
        eventually(lambda: "\n42\n" in tenants.api.get(log).message, seconds=60)
        eventually(lambda: jobs.phase("answer") == "Finished", seconds=60)
        eventually(lambda: not tenants.queue_status("a").get("usage"), seconds=60)
        assert observer.peak["cpu"] == 700
        assert observer.born_open == set()


@pytest.mark.usefixtures("with_real_node")
def test_a_spark_application_computes_with_half_of_the_executors_that_it_asks_for(
    running: Stack, tenants: Tenants
) -> None:
    """Its driver asks for four, as long as tasks wait, and there is room for two."""
    image = running.image("spark")
    tenants.provide(queue("a", limit={"cpu": "1"}))
    tenants.settle("a")
    spark.identity(tenants.api, "a")
    apps = Applications(tenants, "a", "SparkApplication")
    size = {"cores": 1, "memory": "512m"}
    spec = {
        "type": "Python",
        "mode": "cluster",
        "sparkVersion": "4.3.0",
        "image": image,
        "mainApplicationFile": "local:///opt/spark/examples/src/main/python/pi.py",
        "arguments": ["60"],
        "sparkConf": {"spark.pyspark.python": "python"},
        "dynamicAllocation": {
            "enabled": True,
            "minExecutors": 1,
            "maxExecutors": 4,
            "shuffleTrackingEnabled": True,
        },
        "nodeSelector": _REAL,
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        # Only the operator's webhook puts volumes like this one into pods.
        "driver": {
            **size,
            "coreRequest": "200m",
            "serviceAccount": "spark",
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        },
        "executor": {**size, "coreRequest": "400m"},
    }
    with observed(running.endpoints, "a") as observer:
        apps.create(
            {
                "apiVersion": "sparkoperator.k8s.io/v1beta2",
                "kind": "SparkApplication",
                "metadata": {"name": "pi"},
                "spec": spec,
            }
        )
        eventually(lambda: apps.granted("pi").get("executor") == (2, 4), seconds=240)
        driver = tenants.api.get("/api/v1/namespaces/a/pods/pi-driver").body
        assert "scratch" in [each["name"] for each in driver["spec"]["volumes"]]
        eventually(lambda: tenants.phases("a")["pi-driver"] in TERMINAL, seconds=240)
        said = tenants.api.get("/api/v1/namespaces/a/pods/pi-driver/log").message
        assert "Pi is roughly 3.1" in said
        eventually(lambda: apps.phase("pi") == "Finished", seconds=60)
        eventually(lambda: not tenants.queue_status("a").get("usage"), seconds=60)
        assert observer.peak["cpu"] == 1000
        assert observer.born_open == set()
