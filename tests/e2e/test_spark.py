"""Spark without an operator on the whole product.

In client mode the driver is a real one: it runs here, beside the cluster, and knows nothing of Sluice. Its
executors are simulated by KWOK, so they run but never register, and nothing of them fails by itself. In
cluster mode the pods are made by the test, as spark-submit and a driver in a pod would make them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from applications import Applications
from cluster import TERMINAL, Tenants, is_gated, node, observed, pod, pool, queue
from cluster_api import Object, eventually, made
from operators import spark
from sluice.applications import WITHOUT_OPERATOR
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

SELECTOR = "spark-app-selector"
ROLE = "spark-role"


@pytest.fixture(scope="session")
def distribution() -> None:
    """Spark itself, built once into the user's cache."""
    spark.provide(print)


def executors(tenants: Tenants, namespace: str) -> list[Object]:
    return [
        each for each in tenants.pods(namespace) if each["metadata"].get("labels", {}).get(ROLE) == "executor"
    ]


def waiting(tenants: Tenants, namespace: str) -> list[Object]:
    return [each for each in executors(tenants, namespace) if is_gated(each)]


def up(tenants: Tenants, namespace: str) -> list[Object]:
    return [each for each in executors(tenants, namespace) if each["status"]["phase"] == "Running"]


def application(tenants: Tenants, namespace: str) -> str:
    """The one application that all executors are of."""
    names = {each["metadata"]["labels"][SELECTOR] for each in executors(tenants, namespace)}
    assert len(names) == 1
    return str(names.pop())


def fail(tenants: Tenants, obj: Object) -> None:
    """What a kubelet would report of an executor that has lost its driver."""
    metadata = obj["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
    made(tenants.api.merge(path, {"status": {"phase": "Failed", "reason": "Error"}}))


def nothing_is_held(tenants: Tenants, *queues: str) -> bool:
    return all(
        not tenants.queue_status(name).get("usage") and not tenants.queue_status(name).get("pending")
        for name in queues
    )


@pytest.mark.usefixtures("distribution")
class TestARealDriver:
    def test_its_executors_wait_as_one_application_and_are_granted_in_part(
        self, running: Stack, tenants: Tenants, tmp_path: Path
    ) -> None:
        tenants.provide(pool(), node("n", cpu="3"), queue("a"))
        tenants.settle("a")
        apps = Applications(tenants, "a", WITHOUT_OPERATOR)
        token = spark.identity(tenants.api, "a")
        with (
            observed(running.endpoints, "a") as observer,
            spark.driver(
                running.endpoints, "a", tmp_path, token=token, spark_dynamicAllocation_maxExecutors="8"
            ) as driver,
        ):
            driver.ask_for(8)
            eventually(lambda: len(executors(tenants, "a")) == 8, seconds=90)
            name = application(tenants, "a")
            eventually(lambda: apps.granted(name) == {"executor": (3, 8)}, seconds=30)
            assert apps.phase(name) == "Growing"
            granted = apps.condition(name, "Granted")
            assert granted["status"] == "False"
            assert granted["message"].startswith("granted 3 of 8 executor; waits for 1 cpu")
            assert "waits for 1 cpu" in apps.status(name)["reason"]
            assert apps.condition(name, "Admitted")["status"] == "True"
            assert [each["spec"]["application"]["name"] for each in apps.all_shown()] == [name]

            driver.ask_for_nothing()
            eventually(lambda: waiting(tenants, "a") == [], seconds=90)
            eventually(lambda: apps.phase(name) == "Running", seconds=30)
            assert apps.granted(name) == {"executor": (3, 3)}

            assert driver.end() == 0
            eventually(lambda: executors(tenants, "a") == [], seconds=60)
            eventually(lambda: apps.all_shown() == [], seconds=30)
            eventually(lambda: nothing_is_held(tenants, "a"), seconds=30)
            assert observer.peak["cpu"] == 3000
            assert observer.born_open == set()
            assert "Failure executing" not in driver.log.read_text(), "a creation was rejected"

    def test_a_claim_of_another_queue_takes_growth_back_and_replacements_wait(
        self, running: Stack, tenants: Tenants, tmp_path: Path
    ) -> None:
        tenants.provide(pool(), node("n", cpu="4"), queue("a"), queue("b"))
        tenants.settle("a", "b")
        apps = Applications(tenants, "a", WITHOUT_OPERATOR)
        token = spark.identity(tenants.api, "a")
        with (
            observed(running.endpoints, "a", "b") as observer,
            spark.driver(
                running.endpoints, "a", tmp_path, token=token, spark_dynamicAllocation_maxExecutors="6"
            ) as driver,
        ):
            driver.ask_for(6)
            eventually(lambda: len(executors(tenants, "a")) == 6, seconds=90)
            eventually(lambda: len(up(tenants, "a")) == 4, seconds=30)
            name = application(tenants, "a")
            before = {each["metadata"]["uid"] for each in executors(tenants, "a")}
            for number in range(3):
                made(tenants.submit("b", pod(f"b-{number}", cpu="1")))
            eventually(lambda: list(tenants.phases("b").values()).count("Running") == 2, seconds=60)
            eventually(lambda: len(up(tenants, "a")) == 2, seconds=30)
            # Spark asks for others in their place, and these come gated.
            eventually(lambda: len(executors(tenants, "a")) == 6, seconds=60)
            replacements = [e for e in executors(tenants, "a") if e["metadata"]["uid"] not in before]
            assert len(replacements) == 2
            assert all(is_gated(each) for each in replacements)
            eventually(lambda: apps.granted(name) == {"executor": (2, 6)}, seconds=30)
            assert apps.phase(name) == "Growing"
            assert apps.status(name)["podSets"][0]["reclaimed"] == 2
            assert driver.runs()
            assert driver.end() == 0
            for each in tenants.pods("b"):
                tenants.delete("b", each["metadata"]["name"])
            eventually(lambda: nothing_is_held(tenants, "a", "b"), seconds=60)
            assert observer.peak["cpu"] == 4000
            assert observer.born_open == set()

    def test_executors_of_a_driver_that_was_killed_are_cleaned_up(
        self, running: Stack, tenants: Tenants, tmp_path: Path
    ) -> None:
        tenants.provide(pool(), node("n", cpu="2"), queue("a"))
        tenants.settle("a")
        apps = Applications(tenants, "a", WITHOUT_OPERATOR)
        token = spark.identity(tenants.api, "a")
        with spark.driver(
            running.endpoints, "a", tmp_path, token=token, spark_dynamicAllocation_maxExecutors="5"
        ) as driver:
            driver.ask_for(5)
            eventually(lambda: len(up(tenants, "a")) == 2, seconds=90)
            eventually(lambda: len(waiting(tenants, "a")) == 3, seconds=60)
            name = application(tenants, "a")
            driver.kill()
        # Real executors end within 11 s of their driver; gated ones would wait for ever.
        victims = up(tenants, "a")
        assert len(victims) == 2
        for each in victims:
            fail(tenants, each)
        eventually(
            lambda: apps.status(name).get("reason", "").startswith("an executor has failed"), seconds=30
        )
        eventually(lambda: waiting(tenants, "a") == [], seconds=120)
        assert {each["metadata"]["uid"] for each in executors(tenants, "a")} == {
            each["metadata"]["uid"] for each in victims
        }, "none was let in after the driver was gone"
        eventually(lambda: nothing_is_held(tenants, "a"), seconds=30)
        eventually(lambda: apps.phase(name) == "Finished", seconds=30)

    def test_one_that_was_killed_before_any_executor_ran_is_found_out_by_the_first(
        self, running: Stack, tenants: Tenants, tmp_path: Path
    ) -> None:
        tenants.provide(pool(), node("n", cpu="1"), queue("a"))
        tenants.settle("a")
        made(tenants.submit("a", pod("other", cpu="1")))
        eventually(lambda: tenants.phases("a")["other"] == "Running", seconds=30)
        token = spark.identity(tenants.api, "a")
        with spark.driver(
            running.endpoints, "a", tmp_path, token=token, spark_dynamicAllocation_maxExecutors="3"
        ) as driver:
            driver.ask_for(3)
            eventually(lambda: len(waiting(tenants, "a")) == 3, seconds=90)
            driver.kill()
        tenants.delete("a", "other")
        eventually(lambda: len(up(tenants, "a")) == 1, seconds=60)
        for each in up(tenants, "a"):
            fail(tenants, each)
        eventually(lambda: waiting(tenants, "a") == [], seconds=120)
        assert len(executors(tenants, "a")) == 1
        eventually(lambda: nothing_is_held(tenants, "a"), seconds=30)


# ---- cluster mode: a driver in a pod


def driver_pod(app: str, **spec: Any) -> Object:
    """As spark-submit creates it."""
    return pod(f"{app}-driver", labels={SELECTOR: app, ROLE: "driver"}, **spec)


def executor_pod(app: str, number: int, driver: Object) -> Object:
    """As the driver creates it."""
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": driver["metadata"]["name"],
        "uid": driver["metadata"]["uid"],
        "controller": True,
    }
    labels = {
        SELECTOR: app,
        ROLE: "executor",
        "spark-exec-id": str(number),
        "spark-exec-resourceprofile-id": "0",
    }
    return pod(f"{app}-exec-{number}", labels=labels, ownerReferences=[owner])


class TestADriverInAPod:
    def test_two_drivers_do_not_lock_each_other_out(self, running: Stack, tenants: Tenants) -> None:
        """Room for three pods: with both drivers in, there would be room for one executor of two."""
        tenants.provide(pool(), node("n", cpu="3"), queue("a"))
        tenants.settle("a")
        apps = Applications(tenants, "a", WITHOUT_OPERATOR)
        with observed(running.endpoints, "a") as observer:
            drivers = {app: made(tenants.submit("a", driver_pod(app))) for app in ("one", "two")}
            eventually(lambda: apps.phase("one") == "Running" and apps.phase("two") == "Pending", seconds=30)
            eventually(lambda: tenants.phases("a")["one-driver"] == "Running", seconds=30)
            assert tenants.phases("a")["two-driver"] == "gated"
            assert tenants.queue_status("a")["usage"]["default/cpu"] == "2", "its executor is reserved"
            assert "waits for" in apps.status("two")["reason"]

            for number in (1, 2, 3):
                made(tenants.submit("a", executor_pod("one", number, drivers["one"])))
            eventually(lambda: apps.granted("one") == {"driver": (1, 1), "executor": (2, 3)}, seconds=30)
            assert apps.phase("one") == "Growing"
            assert tenants.phases("a")["two-driver"] == "gated"

            # The driver ends in order: it takes its executors along, and its pod is kept.
            for number in (1, 2, 3):
                tenants.delete("a", f"one-exec-{number}")
            path = "/api/v1/namespaces/a/pods/one-driver/status"
            made(tenants.api.merge(path, {"status": {"phase": "Succeeded"}}))
            eventually(lambda: tenants.phases("a").get("two-driver") == "Running", seconds=30)
            eventually(lambda: apps.phase("one") == "Finished", seconds=30)
            assert observer.peak["cpu"] <= 3000
            assert observer.born_open == set()
        tenants.delete("a", "two-driver")
        eventually(lambda: apps.shown("two") == {}, seconds=30)
        eventually(lambda: nothing_is_held(tenants, "a"), seconds=30)

    def test_gated_executors_of_a_driver_that_failed_are_deleted(
        self, running: Stack, tenants: Tenants
    ) -> None:
        """The garbage collector takes them only when the driver's pod goes, and that one is kept."""
        tenants.provide(pool(), node("n", cpu="3"), queue("a"))
        tenants.settle("a")
        apps = Applications(tenants, "a", WITHOUT_OPERATOR)
        driver = made(tenants.submit("a", driver_pod("app")))
        for number in range(1, 7):
            made(tenants.submit("a", executor_pod("app", number, driver)))
        eventually(lambda: apps.granted("app") == {"driver": (1, 1), "executor": (2, 6)}, seconds=30)
        eventually(lambda: len(up(tenants, "a")) == 2, seconds=30)
        open_ones = up(tenants, "a")
        made(
            tenants.api.merge("/api/v1/namespaces/a/pods/app-driver/status", {"status": {"phase": "Failed"}})
        )
        eventually(lambda: waiting(tenants, "a") == [], seconds=30)
        assert {each["metadata"]["uid"] for each in executors(tenants, "a")} == {
            each["metadata"]["uid"] for each in open_ones
        }, "none was let in after the driver had ended"
        for each in open_ones:
            fail(tenants, each)
        eventually(lambda: nothing_is_held(tenants, "a"), seconds=30)
        eventually(lambda: apps.phase("app") in ("Finished", "Failed"), seconds=30)
        assert {each["status"]["phase"] for each in tenants.pods("a")} <= set(TERMINAL)
