"""Applications that grow, shrink, fail and finish at random. SparkApplications and RayClusters run under simulated
operators.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPException
from typing import Any

from audit import Audit
from cluster import Tenants, is_gated, pod
from cluster_api import Answer, BusyError, Object, eventually
from operators import crds
from operators.ray_operator import RayOperator, cluster_spec, ray_cluster
from operators.simulated import Operator
from operators.spark_operator import SparkOperator, spark_application
from sluice_local import Endpoints, Stack
from test_jobs import ended, job

TENANTS = ("ant", "bee", "cat")
#: One comes each so many seconds.
COMES_EVERY_S = 3.6
#: Between two disturbances: life is no faster on a faster machine.
PACE_S = 0.25
DYNAMIC_WORKLOADS = "/apis/sluice.dev/v1alpha1/namespaces/{}/dynamicworkloads"


class Operators:
    """Those of one tenant's namespace."""

    def __init__(self, endpoints: Endpoints, namespace: str) -> None:
        self.spark = SparkOperator(endpoints, namespace)
        self.ray = RayOperator(endpoints, namespace)

    @property
    def all(self) -> tuple[Operator, ...]:
        return self.spark, self.ray


class Churn:
    """What tenants and their operators do. Whatever got no answer is tried again, as controllers do it."""

    def __init__(self, tenants: Tenants, operators: dict[str, Operators], rng: random.Random) -> None:
        self._api = tenants.api
        self._tenants = tenants
        self._operators = operators
        self._rng = rng
        self._clusters: list[tuple[Operator, str, str]] = []  # SparkApplications and RayClusters: kind, name
        self._ended: list[tuple[Operator, str, str]] = []  # but who was suspended just then begins anew
        self._drivers: list[tuple[str, str]] = []  # Spark: namespace and name
        self._executors = 0
        self._objects: list[tuple[str, str]] = []  # collection, name

    def live(self, lasts_s: float) -> None:
        """Applications come one by one, and meanwhile something happens to those that are there."""
        began = time.monotonic()
        for number in range(int(lasts_s / COMES_EVERY_S)):
            self._create_one(number)
            while time.monotonic() < began + (number + 1) * COMES_EVERY_S:
                self._disturb()
                time.sleep(PACE_S)
        while self._drivers:
            self._end_driver(self._drivers.pop())
        for cluster in (*self._clusters, *self._ended):
            self._delete(*self._path_of(cluster))

    def _create_one(self, number: int) -> None:
        namespace = self._rng.choice(TENANTS)
        kinds = (self._job, self._queue_job, self._spark, self._spark_application, self._ray_cluster)
        self._rng.choice(kinds)(namespace, f"a{number}")

    def _disturb(self) -> None:
        """Somebody grows, shrinks, fails or goes."""
        happenings = (
            self._grow_spark,
            self._shrink_spark,
            self._resize_job,
            self._resize_cluster,
            self._fail_a_pod,
        )
        self._rng.choice(happenings)()
        if self._rng.random() < 0.03 and self._objects:
            self._delete(*self._objects.pop(self._rng.randrange(len(self._objects))))
        if self._rng.random() < 0.03 and self._drivers:
            self._end_driver(self._drivers.pop(0))
        if self._rng.random() < 0.03 and self._clusters:
            self._end_cluster(self._clusters.pop(0))

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

    # ---- applications with an operator

    def _spark_application(self, namespace: str, name: str) -> None:
        least = self._rng.randint(1, 3)
        self._under(
            self._operators[namespace].spark, spark_application(name, minExecutors=least, maxExecutors=8)
        )

    def _ray_cluster(self, namespace: str, name: str) -> None:
        spec = cluster_spec(("small", 1, self._rng.randint(1, 3), 6), ("big", 0, 0, 4), scales=True)
        self._under(self._operators[namespace].ray, ray_cluster(name, spec))

    def _under(self, operator: Operator, obj: Object) -> None:
        kind, name = obj["kind"], obj["metadata"]["name"]
        self._try(lambda: self._api.create(operator.path(kind), obj), 409)
        self._clusters.append((operator, kind, name))

    def _resize_cluster(self) -> None:
        """Its driver wants more or fewer executors, or its autoscaler more of one group, fewer of another."""
        if not self._clusters:
            return
        operator, _, name = self._rng.choice(self._clusters)
        if isinstance(operator, SparkOperator):
            operator.want(name, self._rng.randint(1, 8))
        elif isinstance(operator, RayOperator):
            groups = {"small": self._rng.randint(1, 6), "big": self._rng.randint(0, 4)}
            self._try(partial(operator.scale, name, **groups))

    def _end_cluster(self, cluster: tuple[Operator, str, str]) -> None:
        """It is deleted; or, if it is a SparkApplication, its driver comes to its end before."""
        operator, _, name = cluster
        path = f"/api/v1/namespaces/{operator.namespace}/pods/{name}-driver"
        phase = self._rng.choice(("Succeeded", "Failed", "deleted"))
        if phase != "deleted" and _runs(self._try(lambda: self._api.get(path), 404)):
            self._try(lambda: self._api.merge(f"{path}/status", {"status": {"phase": phase}}), 404)
            self._ended.append(cluster)
        else:
            self._delete(*self._path_of(cluster))

    @staticmethod
    def _path_of(cluster: tuple[Operator, str, str]) -> tuple[str, str]:
        operator, kind, name = cluster
        return operator.path(kind), name

    # ---- Spark without an operator: a driver that is a pod, and what it asks for

    def _spark(self, namespace: str, name: str) -> None:
        labels = {"spark-role": "driver", "spark-app-selector": name}
        self._create_pod(namespace, pod(f"{name}-driver", labels=labels))
        self._drivers.append((namespace, name))

    def _grow_spark(self) -> None:
        if not self._drivers:
            return
        namespace, name = self._rng.choice(self._drivers)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}-driver"
        driver = self._try(lambda: self._api.get(path), 404)
        if not _runs(driver):
            return
        owner = {"apiVersion": "v1", "kind": "Pod", "name": f"{name}-driver", "controller": True}
        owner["uid"] = driver.body["metadata"]["uid"]
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
        if found.ok and not _runs(found):
            self._delete_pod(found.body)
            return
        self._try(lambda: self._api.merge(f"{path}/status", {"status": {"phase": "Failed"}}), 404)
        for obj in self._pods(lambda p: p["metadata"]["name"].startswith(f"{name}-exec-")):
            if not is_gated(obj):  # they end when they lose their driver
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

    def _delete(self, collection: str, name: str) -> None:
        self._try(lambda: self._api.delete(f"{collection}/{name}?propagationPolicy=Background"), 404)

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
        deadline, complaint = time.monotonic() + 60, ""
        while time.monotonic() < deadline:
            try:
                answer = call()
            except (OSError, HTTPException, BusyError) as error:
                complaint = repr(error)
            else:
                if not isinstance(answer, Answer) or answer.ok or answer.status in fine:
                    return answer
                complaint = answer.message
            time.sleep(0.1)  # the pace of whoever tries again, not a wait for an event
        raise AssertionError(f"no success within a minute: {complaint}")


def _runs(pod_found: Answer) -> bool:
    return pod_found.ok and pod_found.body["status"].get("phase") == "Running"


class Life(threading.Thread):
    """Goes on beside what a test does, and says what went wrong with it."""

    def __init__(self, churn: Churn, lasts_s: float) -> None:
        super().__init__(daemon=True)
        self._churn = churn
        self._lasts_s = lasts_s
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._churn.live(self._lasts_s)
        except BaseException as error:
            self._error = error

    def goes_on(self) -> None:
        """Or what went wrong."""
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Wait until all that it began has ended."""
        self.join()
        self.goes_on()
        eventually(lambda: self._churn.unfinished() == [], seconds=240)


@contextmanager
def life(running: Stack, tenants: Tenants, seed: float, lasts_s: float) -> Iterator[Life]:
    """It is under way while this is entered; its operators act until the end of that."""
    crds.install(running.endpoints)
    operators = {tenant: Operators(running.endpoints, tenant) for tenant in TENANTS}
    with ExitStack() as stack:
        for operator in (each for tenant in operators.values() for each in tenant.all):
            operator.look_every_s = 1  # there are six of them
            stack.enter_context(operator)
        lived = Life(Churn(tenants, operators, random.Random(seed)), lasts_s)
        lived.start()
        yield lived


def nothing_is_left(tenants: Tenants, audit: Audit) -> None:
    """Whatever came has ended, and holds nothing any more."""
    _nothing(lambda: audit.accounts(*TENANTS))
    _nothing(audit.applications)
    for tenant in TENANTS:
        _nothing(lambda t=tenant: tenants.queue_status(t).get("usage"))
        _nothing(lambda t=tenant: [n for n, phase in tenants.phases(t).items() if phase == "gated"])
        _nothing(lambda t=tenant: _unended(tenants, t))


def _unended(tenants: Tenants, tenant: str) -> dict[str, str | None]:
    """Applications that their DynamicWorkloads don't call ended, which follow by a tick."""
    shown = tenants.api.get(DYNAMIC_WORKLOADS.format(tenant)).body["items"]
    phases = {each["metadata"]["name"]: each["status"].get("phase") for each in shown}
    return {name: phase for name, phase in phases.items() if phase not in ("Finished", "Failed")}


def _nothing(find: Callable[[], Any]) -> None:
    """Wait until there is nothing of something; if there always is, say what."""
    try:
        eventually(lambda: not find(), seconds=60)
    except AssertionError:
        raise AssertionError(f"left in the end: {find()}") from None
