"""Training jobs on the whole product, under the training operator itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from applications import FIRST_SEEN_S, Applications, one_queue
from cluster import Tenants, is_gated, node, observed, pod, queue
from cluster_api import eventually, made
from operators.training_operator import training_job
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
OPERATORS = ("training-operator",)


@pytest.fixture
def cluster(tenants: Tenants) -> Iterator[Tenants]:
    with one_queue(tenants, "PyTorchJob", "TFJob") as cluster:
        yield cluster


def succeed(tenants: Tenants, job: str) -> None:
    """All that runs of a job is through."""
    for each in tenants.pods("a"):
        name = each["metadata"]["name"]
        if name.startswith(f"{job}-") and not is_gated(each):
            path = f"/api/v1/namespaces/a/pods/{name}/status"
            made(tenants.api.merge(path, {"status": {"phase": "Succeeded"}}))


def running_pods(tenants: Tenants, job: str) -> int:
    phases = tenants.phases("a")
    return sum(phase == "Running" for name, phase in phases.items() if name.startswith(f"{job}-"))


def states(apps: Applications, name: str) -> set[str]:
    """What its operator says of it."""
    conditions = apps.get(name).get("status", {}).get("conditions", ())
    return {each["type"] for each in conditions if each["status"] == "True"}


@pytest.mark.parametrize(("kind", "first"), [("PyTorchJob", "Master"), ("TFJob", "Chief")])
def test_a_job_starts_whole_when_another_gives_back(
    running: Stack, cluster: Tenants, kind: str, first: str
) -> None:
    cluster.provide(node("n", cpu="3"))
    apps = Applications(cluster, "a", kind)
    replicas: dict[str, Any] = {first: 1, "Worker": 2}
    whole = {first.lower(): (1, 1), "worker": (2, 2)}
    with observed(running.endpoints, "a") as observer:
        created = apps.create(training_job(kind, "one", **replicas))
        assert created["spec"]["runPolicy"]["suspend"]
        eventually(lambda: apps.granted("one") == whole, seconds=FIRST_SEEN_S)
        eventually(lambda: running_pods(cluster, "one") == 3, seconds=60)
        eventually(lambda: "Running" in states(apps, "one"), seconds=30)
        apps.create(training_job(kind, "two", **replicas))
        eventually(lambda: apps.phase("two") == "Pending", seconds=30)
        assert "waits for 3 cpu" in apps.status("two")["reason"]
        eventually(lambda: "Suspended" in states(apps, "two"), seconds=30)
        assert running_pods(cluster, "one") == len(cluster.pods("a")) == 3
        succeed(cluster, "one")
        eventually(lambda: "Succeeded" in states(apps, "one"), seconds=30)
        eventually(lambda: apps.phase("one") == "Finished", seconds=30)
        eventually(lambda: apps.granted("two") == whole, seconds=60)
        eventually(lambda: running_pods(cluster, "two") == 3, seconds=60)
        succeed(cluster, "two")
        eventually(lambda: apps.phase("two") == "Finished", seconds=60)
        eventually(lambda: cluster.queue_status("a").get("usage") == {}, seconds=30)
        assert observer.peak["cpu"] == 3000
        assert observer.born_open == set()


def test_an_elastic_job_starts_small_and_takes_more_as_there_is_room(
    running: Stack, cluster: Tenants
) -> None:
    cluster.provide(node("n", cpu="2"))
    apps = Applications(cluster, "a", "PyTorchJob")
    bounds = {"minReplicas": 1, "maxReplicas": 4}
    with observed(running.endpoints, "a") as observer:
        apps.create(training_job("PyTorchJob", "elastic", elastic=bounds, Worker=3))
        eventually(lambda: apps.granted("elastic") == {"worker": (2, 3)}, seconds=FIRST_SEEN_S)
        assert apps.phase("elastic") == "Growing"
        # It is told first before the operator has made them all.
        waits = "granted 2 of 3 worker; waits for"
        eventually(lambda: apps.condition("elastic", "Granted")["message"].startswith(waits), seconds=30)
        cluster.provide(node("more", cpu="2"))
        eventually(lambda: apps.granted("elastic") == {"worker": (3, 3)}, seconds=60)
        eventually(lambda: running_pods(cluster, "elastic") == 3, seconds=30)
        succeed(cluster, "elastic")
        eventually(lambda: apps.phase("elastic") == "Finished", seconds=60)
        assert observer.peak["cpu"] == 3000


def test_one_that_is_taken_back_is_suspended_whole_and_comes_again(running: Stack, cluster: Tenants) -> None:
    cluster.provide(node("n", cpu="3"), queue("b", guaranteed={"cpu": "2"}))
    cluster.settle("b")
    apps = Applications(cluster, "a", "PyTorchJob")
    whole = {"master": (1, 1), "worker": (2, 2)}
    with observed(running.endpoints, "a", "b") as observer:
        apps.create(training_job("PyTorchJob", "train", Master=1, Worker=2))
        eventually(lambda: running_pods(cluster, "train") == 3, seconds=FIRST_SEEN_S)
        made(cluster.submit("b", pod("guest", cpu="2")))
        eventually(lambda: cluster.phases("b")["guest"] == "Running", seconds=60)
        eventually(lambda: apps.phase("train") == "Pending", seconds=30)
        eventually(lambda: "Suspended" in states(apps, "train"), seconds=30)
        eventually(lambda: cluster.pods("a") == [], seconds=30)
        assert {each["name"]: each["reclaimed"] for each in apps.status("train")["podSets"]} == {
            "master": 1,
            "worker": 2,
        }
        cluster.delete("b", "guest")
        eventually(lambda: apps.granted("train") == whole, seconds=60)
        eventually(lambda: running_pods(cluster, "train") == 3, seconds=60)
        assert observer.peak["cpu"] == 3000
        assert observer.born_open == set()
