"""The demo's stand-ins for Spark's operator and KubeRay, on a cluster of dictionaries."""

from __future__ import annotations

from typing import Any

import pytest
from sluice_local.demo import operators, scenario
from sluice_local.demo.operators import Operator, Ray, Spark
from sluice_local.demo.scenario import ETL, ML, Tenant

Object = dict[str, Any]


class Cluster:
    """As much of `Api` as operators use; gates are off, and pods run at once unless told."""

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.application = scenario.application(tenant) | {"status": {}}
        self.application["metadata"]["uid"] = "a"
        self.application["spec"]["suspend"] = True
        self.pods: dict[str, Object] = {}
        self.phase = "Running"

    def get(self, path: str) -> Object | None:
        return self.application if path == self.tenant.application_path else {"items": [*self.pods.values()]}

    def create(self, path: str, pod: Object) -> None:
        assert path == self.tenant.pods_path
        pod["metadata"]["uid"] = pod["metadata"]["name"]
        self.pods.setdefault(pod["metadata"]["name"], pod | {"status": {"phase": self.phase}})

    def delete(self, path: str) -> None:
        self.pods.pop(path.rpartition("/")[2], None)

    def merge(self, path: str, part: Object) -> None:
        if path == f"{self.tenant.application_path}/status":
            self.application["status"] = part["status"]
        else:
            self.pods[path.split("/")[-2]]["status"] = part["status"]

    def change(self, path: str, operation: Object) -> None:
        assert (path, operation["op"]) == (self.tenant.application_path, "replace")
        self.application["spec"]["workerGroupSpecs"][0]["replicas"] = operation["value"]

    def labelled(self, **labels: str) -> list[str]:
        wanted = {key.replace("__", "/").replace("_", "-"): text for key, text in labels.items()}
        return [
            name
            for name, pod in self.pods.items()
            if all(pod["metadata"]["labels"].get(key) == text for key, text in wanted.items())
        ]


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators, "_SPARK_ROUND_S", 0.0)
    monkeypatch.setattr(operators, "_RAY_ROUND_S", 0.0)


def look(operator: Operator, times: int = 1) -> None:
    for _ in range(times):
        operator._look()


def spark() -> tuple[Cluster, Spark]:
    cluster = Cluster(ETL)
    return cluster, Spark(cluster)  # type: ignore[arg-type]


def ray() -> tuple[Cluster, Ray]:
    cluster = Cluster(ML)
    return cluster, Ray(cluster)  # type: ignore[arg-type]


def executors(cluster: Cluster) -> list[str]:
    return cluster.labelled(spark_role="executor")


def workers(cluster: Cluster) -> list[str]:
    return [name for name, pod in cluster.pods.items() if "worker" in name and pod]


def test_nothing_is_made_of_what_is_suspended_and_what_there_is_goes() -> None:
    for cluster, operator in (spark(), ray()):
        look(operator, 3)
        assert not cluster.pods
        cluster.application["spec"]["suspend"] = False
        look(operator, 3)
        assert cluster.pods
        cluster.application["spec"]["suspend"] = True
        look(operator)
        assert not cluster.pods


def test_a_driver_first_and_then_its_executors() -> None:
    cluster, operator = spark()
    cluster.application["spec"]["suspend"] = False
    cluster.phase = "Pending"
    look(operator, 2)
    assert list(cluster.pods) == ["etl-driver"]
    owner = cluster.pods["etl-driver"]["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("SparkApplication", "a", True)
    cluster.pods["etl-driver"]["status"]["phase"] = "Running"
    look(operator)
    assert len(executors(cluster)) == scenario.SPARK_LEAST
    of = cluster.pods[executors(cluster)[0]]["metadata"]["ownerReferences"][0]
    assert (of["kind"], of["uid"]) == ("Pod", "etl-driver")


def test_executors_come_in_a_ramp_and_lost_ones_are_replaced() -> None:
    cluster, operator = spark()
    cluster.application["spec"]["suspend"] = False
    look(operator, 2)
    operator.wants = 12
    counts = []
    for _ in range(5):
        look(operator)
        counts.append(len(executors(cluster)))
    assert counts == [3, 5, 9, 12, 12]
    lost = executors(cluster)[0]
    del cluster.pods[lost]
    look(operator)
    assert len(executors(cluster)) == 12
    assert lost not in cluster.pods, "the replacement has a number of its own"


def test_executors_that_have_not_started_go_first() -> None:
    cluster, operator = spark()
    cluster.application["spec"]["suspend"] = False
    look(operator, 2)
    cluster.phase = "Pending"
    operator.wants = 9
    look(operator, 5)
    running = [name for name in executors(cluster) if cluster.pods[name]["status"]["phase"] == "Running"]
    operator.wants = len(running)
    look(operator)
    assert executors(cluster) == running


def test_the_end_of_the_driver_ends_the_application() -> None:
    cluster, operator = spark()
    cluster.application["spec"]["suspend"] = False
    look(operator, 3)
    operator.exit()
    look(operator)
    assert cluster.application["status"] == {"applicationState": {"state": "COMPLETED"}}
    assert executors(cluster) == []
    look(operator, 3)
    assert list(cluster.pods) == ["etl-driver"]


def test_the_autoscaler_writes_what_it_wants_and_kuberay_makes_it_so() -> None:
    cluster, operator = ray()
    cluster.application["spec"]["suspend"] = False
    look(operator)
    head = cluster.pods["ml-head"]
    assert [each["name"] for each in head["spec"]["containers"]] == ["ray-head", "autoscaler"]
    assert head["metadata"]["labels"]["ray.io/cluster"] == "ml"
    assert len(workers(cluster)) == scenario.RAY_LEAST
    operator.wants = 5
    look(operator, 4)
    assert cluster.application["spec"]["workerGroupSpecs"][0]["replicas"] == 5
    assert len(workers(cluster)) == 5
    operator.wants = 2
    look(operator, 2)
    assert len(workers(cluster)) == 2
