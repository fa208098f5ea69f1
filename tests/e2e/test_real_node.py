"""Pods that Sluice admits really run, where there can be a real node; simulated ones go on beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import real_node
from cluster import TERMINAL, Tenants, is_gated, node, observed, pod, pool, queue
from cluster_api import eventually, made
from operators import spark
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

RAY_HEAD = """
set -e
ray start --head --num-cpus=1 --memory=500000000 --object-store-memory=100000000
python -c '
import ray
ray.init(address="auto")
square = ray.remote(lambda number: number * number)
print(sum(ray.get([square.remote(number) for number in range(10)])))
'
wget -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success
"""


@pytest.fixture
def with_real_node(machine: None, running: Stack, tenants: Tenants) -> Iterator[None]:
    running.image("python")
    running.node_up()
    yield
    running.node_down()


@pytest.mark.usefixtures("with_real_node")
def test_a_pod_waits_behind_the_gate_and_then_really_runs(running: Stack, tenants: Tenants) -> None:
    tenants.provide(pool("simulated", kind="simulated"), node("n", labels={"kind": "simulated"}), queue("a"))
    tenants.settle("a")
    simulated = pod("simulated", run_for="1s")
    simulated["spec"]["nodeSelector"] = {"kind": "simulated"}
    with observed(running.endpoints, "a") as observer:
        created = made(tenants.submit("a", real_node.python_pod("really", "print(6 * 7)")))
        made(tenants.submit("a", simulated))
        assert is_gated(created)
        eventually(lambda: set(tenants.phases("a").values()) == {"Succeeded"}, seconds=60)
        assert observer.born_open == set()
    nodes = {each["metadata"]["name"]: each["spec"]["nodeName"] for each in tenants.pods("a")}
    assert nodes == {"really": "real", "simulated": "n"}
    assert tenants.api.get("/api/v1/namespaces/a/pods/really/log").message == "42\n"
    eventually(lambda: not tenants.queue_status("a").get("usage"), seconds=30)


@pytest.mark.usefixtures("with_real_node")
def test_a_spark_application_really_computes(running: Stack, tenants: Tenants, tmp_path: Path) -> None:
    """Its driver and its executor are admitted as one, find each other and the API server, and count."""
    image = running.image("spark")
    tenants.provide(queue("a"))
    tenants.settle("a")
    spark.identity(tenants.api, "a")
    log = spark.submit(
        running.endpoints,
        tmp_path,
        "local:///opt/spark/examples/src/main/python/pi.py",
        **{
            "spark.kubernetes.namespace": "a",
            "spark.kubernetes.container.image": image,
            "spark.kubernetes.node.selector.sluice.dev/node": "real",
            "spark.kubernetes.authenticate.driver.serviceAccountName": "spark",
            "spark.executor.instances": "1",
        },
    )
    (driver,) = [pod for pod in tenants.pods("a") if pod["metadata"]["labels"]["spark-role"] == "driver"]
    said = tenants.api.get(f"/api/v1/namespaces/a/pods/{driver['metadata']['name']}/log").message
    assert "Pi is roughly 3.1" in said, f"{said}\n{log}"


@pytest.mark.usefixtures("with_real_node")
def test_ray_really_computes(running: Stack, tenants: Tenants) -> None:
    """A head, started and probed as KubeRay does it, and workers of its own."""
    image = running.image("ray")
    tenants.provide(queue("a"))
    tenants.settle("a")
    head = real_node.python_pod("head", "")
    (container,) = head["spec"]["containers"]
    container |= {"image": image, "command": ["/bin/bash", "-lc", "--"], "args": [RAY_HEAD]}

    made(tenants.submit("a", head))

    eventually(lambda: tenants.phases("a")["head"] in TERMINAL, seconds=120)
    said = tenants.api.get("/api/v1/namespaces/a/pods/head/log").message
    assert tenants.phases("a")["head"] == "Succeeded", said
    assert {"285", "success"} <= set(said.splitlines()), said
