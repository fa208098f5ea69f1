"""Fifty applications grow, shrink, fail and finish at random, while parts of the product are killed."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

import pytest
from audit import Audit
from cluster import Tenants, is_gated, node, observed, pod, pool, queue
from cluster_api import Object, eventually
from sluice_local import Stack
from test_jobs import ended, job

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

TENANTS = ("ant", "bee", "cat")
APPLICATIONS = 50
CAPACITY_MILLI = 12_000
VICTIMS = ("scheduler", "watcher", "actuator", "kafka", "redis")
DYNAMIC_WORKLOADS = "/apis/sluice.dev/v1alpha1/namespaces/{}/dynamicworkloads"


class Churn:
    """What tenants and their operators do. Whatever got no answer is tried again, as controllers do it."""

    def __init__(self, tenants: Tenants, seed: float) -> None:
        self._api = tenants.api
        self._tenants = tenants
        self._rng = random.Random(seed)
        self._drivers: list[tuple[str, str]] = []  # Spark: namespace and name
        self._executors = 0
        self._objects: list[tuple[str, str]] = []  # collection, name
        self.done: list[str] = []

    def create_one(self, number: int) -> None:
        namespace = self._rng.choice(TENANTS)
        make = self._rng.choice((self._job, self._queue_job, self._spark))
        make(namespace, f"a{number}")

    def disturb(self) -> None:
        """Somebody grows, shrinks, fails or goes."""
        self._rng.choice((self._grow_spark, self._shrink_spark, self._resize_job, self._fail_a_pod))()
        if self._rng.random() < 0.1 and self._objects:
            collection, name = self._objects.pop(self._rng.randrange(len(self._objects)))
            self._try(lambda: self._api.delete(f"{collection}/{name}?propagationPolicy=Background"), 404)
        if self._rng.random() < 0.1 and self._drivers:
            self._end_driver(self._drivers.pop(0))

    def end_all(self) -> None:
        while self._drivers:
            self._end_driver(self._drivers.pop())

    def unfinished(self) -> list[str]:
        """Jobs of either kind that have not ended: after a failure their controllers pause for a while."""
        return [
            f"{collection}/{name}"
            for collection, name in self._objects
            if (found := self._try(lambda c=collection, n=name: self._api.get(f"{c}/{n}"), 404)).ok
            and not ended(found.body)
            and found.body.get("status", {}).get("phase") not in ("Finished", "Failed")
        ]

    # ---- Jobs

    def _job(self, namespace: str, name: str) -> None:
        obj = job(
            name,
            parallelism=self._rng.randint(1, 5),
            completions=self._rng.choice((None, self._rng.randint(1, 8))),
            run_for=f"{self._rng.randint(0, 3)}s",
        )
        self._create(f"/apis/batch/v1/namespaces/{namespace}/jobs", obj)

    def _queue_job(self, namespace: str, name: str) -> None:
        template = pod("x", run_for=f"{self._rng.randint(0, 3)}s")
        metadata = {"annotations": template["metadata"]["annotations"]}
        spec = {
            "replicas": self._rng.randint(1, 4),
            "minAvailable": 1,
            "completions": self._rng.randint(1, 6),
            "backoffSeconds": 1,
            "template": {"metadata": metadata, "spec": template["spec"]},
        }
        self._create(
            f"/apis/sluice.dev/v1alpha1/namespaces/{namespace}/queuejobs",
            {
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "QueueJob",
                "metadata": {"name": name},
                "spec": spec,
            },
        )

    def _resize_job(self) -> None:
        jobs = [each for each in self._objects if each[0].endswith("/jobs")]
        if jobs:
            collection, name = self._rng.choice(jobs)
            patch = {"spec": {"parallelism": self._rng.randint(1, 5)}}
            self._try(lambda: self._api.merge(f"{collection}/{name}", patch), 404)

    # ---- Spark without an operator: a driver that is a pod, and what it asks for

    def _spark(self, namespace: str, name: str) -> None:
        labels = {"spark-role": "driver", "spark-app-selector": name}
        self._create_pod(namespace, pod(f"{name}-driver", labels=labels))
        self._drivers.append((namespace, name))

    def _grow_spark(self) -> None:
        if not self._drivers:
            return
        namespace, name = self._rng.choice(self._drivers)
        driver = self._api.get(f"/api/v1/namespaces/{namespace}/pods/{name}-driver").body
        if driver.get("status", {}).get("phase") != "Running":
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{name}-driver", "controller": True}
        owner["uid"] = driver["metadata"]["uid"]
        for _ in range(self._rng.randint(1, 4)):
            self._executors += 1
            labels = {"spark-role": "executor", "spark-app-selector": name}
            obj = pod(f"{name}-exec-{self._executors}", labels=labels, ownerReferences=[owner])
            self._create_pod(namespace, obj)

    def _shrink_spark(self) -> None:
        """Spark takes back gated executors and running ones alike."""
        executors = self._pods(lambda p: p["metadata"].get("labels", {}).get("spark-role") == "executor")
        for obj in self._rng.sample(executors, min(2, len(executors))):
            self._delete_pod(obj)

    def _end_driver(self, driver: tuple[str, str]) -> None:
        """It fails, and its pod stays for a while, as Spark leaves it; one that does not run is deleted."""
        namespace, name = driver
        path = f"/api/v1/namespaces/{namespace}/pods/{name}-driver"
        found = self._try(lambda: self._api.get(path), 404)
        if found.ok and found.body["status"].get("phase") != "Running":
            self._delete_pod(found.body)
            return
        self._try(lambda: self._api.merge(f"{path}/status", {"status": {"phase": "Failed"}}), 404)
        owned = [
            p
            for p in self._pods(lambda p: p["metadata"]["name"].startswith(f"{name}-exec-"))
            if not is_gated(p)
            for p in self._pods(lambda p: p["metadata"]["name"].startswith(f"{name}-exec-"))
            if not is_gated(p)
        ]
        for obj in owned:  # they end when they lose their driver
            self._delete_pod(obj)

    # ----

    def _fail_a_pod(self) -> None:
        running = self._pods(
            lambda p: (
                p["status"].get("phase") == "Running"
                and p["metadata"].get("labels", {}).get("spark-role") != "driver"
            )
        )
        if running:
            metadata = self._rng.choice(running)["metadata"]
            path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
            self._try(lambda: self._api.merge(path, {"status": {"phase": "Failed"}}), 404)

    def _pods(self, which: Callable[[Object], bool]) -> list[Object]:
        found: list[Object] = []
        for namespace in TENANTS:
            answer = self._try(lambda n=namespace: self._api.get(f"/api/v1/namespaces/{n}/pods"))
            found += [p for p in answer.body["items"] if which(p)]
        return found

    def _delete_pod(self, obj: Object) -> None:
        metadata = obj["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}?gracePeriodSeconds=0"
        self._try(lambda: self._api.delete(path), 404)

    def _create(self, collection: str, obj: Object) -> None:
        self._try(lambda: self._api.create(collection, obj), 409)
        self._objects.append((collection, obj["metadata"]["name"]))

    def _create_pod(self, namespace: str, obj: Object) -> None:
        self._try(lambda: self._tenants.submit(namespace, obj), 409)

    def _try(self, call: Callable[[], Any], *fine: int) -> Any:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                answer = call()
            except (OSError, HTTPException):
                answer = None
            if answer is not None and (answer.ok or answer.status in fine):
                return answer
            time.sleep(0.1)  # the pace of whoever tries again, not a wait for an event
        raise AssertionError(f"no success within a minute: {answer and answer.message}")


def test_fifty_applications_and_everything_that_can_happen_to_them(
    tenants: Tenants, running: Stack, audit: Audit, rng: random.Random
) -> None:
    tenants.provide(pool(), *(node(f"n{i}", cpu="4") for i in range(3)), *map(queue, TENANTS))
    tenants.settle(*TENANTS)
    churn = Churn(tenants, seed := rng.random())
    print(f"churn seed {seed}")
    trouble: list[BaseException] = []

    def live() -> None:
        try:
            for number in range(APPLICATIONS):
                churn.create_one(number)
                for _ in range(4):
                    churn.disturb()
            churn.end_all()
        except BaseException as error:
            trouble.append(error)

    with observed(running.endpoints, *TENANTS) as seen:
        life = threading.Thread(target=live)
        life.start()
        for victim in rng.sample(VICTIMS, len(VICTIMS)):
            opened = len(seen.opened)
            seen.wait_for(lambda s, o=opened: len(s.opened) > o + 5 or not life.is_alive(), seconds=120)
            running.kill(victim)
            running.start(victim)
        life.join()
        assert not trouble, trouble
        eventually(lambda: churn.unfinished() == [], seconds=240)
        seen.wait_for(lambda s: not s.held, seconds=60)
        assert seen.peak["cpu"] <= CAPACITY_MILLI
    nothing_left(lambda: audit.accounts(*TENANTS))
    nothing_left(audit.applications)
    for tenant in TENANTS:
        nothing_left(lambda t=tenant: tenants.queue_status(t).get("usage"))
        nothing_left(lambda t=tenant: [n for n, phase in tenants.phases(t).items() if phase == "gated"])
        shown = tenants.api.get(DYNAMIC_WORKLOADS.format(tenant)).body["items"]
        phases = {each["metadata"]["name"]: each["status"].get("phase") for each in shown}
        assert set(phases.values()) <= {"Finished", "Failed"}, phases


def nothing_left(find: Callable[[], Any]) -> None:
    """Wait until there is nothing of something; if there always is, say what."""
    try:
        eventually(lambda: not find(), seconds=60)
    except AssertionError:
        raise AssertionError(f"left in the end: {find()}") from None
