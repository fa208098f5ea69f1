"""Small stand-ins for the Spark operator with its drivers and for KubeRay with its autoscaler.

They imitate what Sluice sees of the real ones, and nothing else: which pods they make of an application that
is not suspended, with which labels and controllers, and when they make and delete more of them. No Spark or
Ray runs in those pods, which KWOK simulates. What the real ones measure (tasks in the backlog, idle
executors, resources that actors ask for) is one number here, `wants`, which the play sets.

Neither knows of Sluice. What they make waits behind gates, and what is taken back they simply miss.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Final

from sluice_local.demo import scenario
from sluice_local.demo.api import Api, ApiError, Object
from sluice_local.demo.scenario import ETL, LABEL, ML, Tenant

#: They ask rather than watch: it is simple, and as fast as a look needs to be.
_EVERY_S: Final = 0.3
#: Spark asks for one executor more, then for two, four and so on, as long as its backlog stands.
_SPARK_ROUND_S: Final = 1.0
_RAY_ROUND_S: Final = 1.2
_RAY_AT_ONCE: Final = 2

FINISHED: Final = ("Succeeded", "Failed")


class Operator(threading.Thread):
    """Makes the pods of one tenant's application be as they should, again and again."""

    tenant: Tenant

    def __init__(self, api: Api) -> None:
        super().__init__(name=f"operator of {self.tenant.application}", daemon=True)
        self._api = api
        self._ended = threading.Event()
        self._numbers = 0
        self._stepped_at = 0.0
        self.wants = 0
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            while not self._ended.wait(_EVERY_S):
                with contextlib.suppress(_ElsewhereError):
                    self._look()
        except Exception as error:
            self.error = error

    def end(self) -> None:
        self._ended.set()

    def _look(self) -> None:
        application = self._api.get(self.tenant.application_path)
        if application is None:
            return  # its pods go with it, by their owner references
        found = self._api.get(self.tenant.pods_path) or {}
        pods = [pod for pod in found.get("items", ()) if "deletionTimestamp" not in pod["metadata"]]
        if application["spec"].get("suspend"):
            self._remove(pods)
        else:
            self.reconcile(application, pods)

    def reconcile(self, application: Object, pods: list[Object]) -> None:
        raise NotImplementedError

    def _is_time(self, every_s: float) -> bool:
        now = time.monotonic()
        if now - self._stepped_at < every_s:
            return False
        self._stepped_at = now
        return True

    def _create(
        self, name: str, owner: Object, owner_is: tuple[str, str], labels: Mapping[str, str], spec: Object
    ) -> None:
        version, kind = owner_is
        metadata = owner["metadata"]
        reference = {"apiVersion": version, "kind": kind, "controller": True, "blockOwnerDeletion": True}
        self._call(
            "create",
            self.tenant.pods_path,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "labels": {LABEL: "true", **labels},
                    "ownerReferences": [{**reference, "name": metadata["name"], "uid": metadata["uid"]}],
                },
                "spec": spec,
            },
        )

    def _next(self) -> int:
        self._numbers += 1
        return self._numbers

    def _remove(self, pods: Iterable[Object]) -> None:
        for pod in pods:
            self._api.delete(f"{self.tenant.pods_path}/{pod['metadata']['name']}")

    def _call(self, verb: str, path: str, body: Object) -> None:
        """An owner that is gone meanwhile is nothing to complain of."""
        try:
            getattr(self._api, verb)(path, body)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                raise _ElsewhereError from error
            raise


class _ElsewhereError(Exception):
    """Something was deleted between two calls: the next look shows what there is."""


class Spark(Operator):
    """The Spark operator, and the driver that it starts.

    It starts a driver for an application that is not suspended. The driver asks for executors, starting with
    the least and doubling what it adds, up to what it wants; one that was lost is replaced. When it wants
    fewer, it first deletes those that have not started. At its end it deletes the rest, and the operator says
    COMPLETED.
    """

    tenant = ETL

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.wants = scenario.SPARK_LEAST
        self._asked = scenario.SPARK_LEAST
        self._adds = 1

    def reconcile(self, application: Object, pods: list[Object]) -> None:
        if application.get("status", {}).get("applicationState", {}).get("state") == "COMPLETED":
            return
        drivers = [pod for pod in pods if pod["metadata"]["labels"].get("spark-role") == "driver"]
        executors = [pod for pod in alive(pods) if pod["metadata"]["labels"].get("spark-role") == "executor"]
        if not drivers:
            self._remove(executors)  # they go with their driver
            self._submit(application)
        elif drivers[0]["status"].get("phase") in FINISHED:
            self._remove(executors)
            state = {"applicationState": {"state": "COMPLETED"}}
            self._call("merge", f"{self.tenant.application_path}/status", {"status": state})
        elif drivers[0]["status"].get("phase") == "Running":
            self._allocate(drivers[0], executors)

    def exit(self) -> None:
        """The driver's program is through: its kubelet says so."""
        path = f"{self.tenant.pods_path}/{self.tenant.name}-driver/status"
        self._api.merge(path, {"status": {"phase": "Succeeded"}})

    def _submit(self, application: Object) -> None:
        owner_is = ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
        self._create(
            f"{ETL.name}-driver", application, owner_is, self._labels("driver"), self._spec("driver")
        )

    def _allocate(self, driver: Object, executors: list[Object]) -> None:
        if self.wants < self._asked:
            self._asked, self._adds = self.wants, 1
        elif self.wants > self._asked and self._is_time(_SPARK_ROUND_S):
            self._asked, self._adds = min(self.wants, self._asked + self._adds), 2 * self._adds
        self._remove(beyond(executors, self._asked))
        for _ in range(self._asked - len(executors)):
            number = str(self._next())
            labels = {**self._labels("executor"), "spark-exec-id": number}
            labels["spark-exec-resourceprofile-id"] = "0"
            self._create(f"{ETL.name}-exec-{number}", driver, ("v1", "Pod"), labels, self._spec("executor"))

    @staticmethod
    def _labels(role: str) -> dict[str, str]:
        return {
            "spark-role": role,
            "spark-app-selector": "spark-0123456789",
            "sparkoperator.k8s.io/app-name": ETL.name,
        }

    @staticmethod
    def _spec(role: str) -> dict[str, Any]:
        return scenario.pod_spec(f"spark-{role}", "1", "2Gi")


class Ray(Operator):
    """KubeRay, and the autoscaler in the head.

    The autoscaler writes into the cluster's spec how many replicas it wants, a few more at a time, or fewer
    at once. KubeRay makes a head, then as many workers as the spec says, and replaces those that are lost. Of
    too many it deletes those that have not started first, which the real autoscaler names one by one.
    """

    tenant = ML

    def __init__(self, api: Api) -> None:
        super().__init__(api)
        self.wants = scenario.RAY_LEAST

    def reconcile(self, application: Object, pods: list[Object]) -> None:
        there = alive(pods)
        heads = [pod for pod in there if pod["metadata"]["labels"].get("ray.io/node-type") == "head"]
        workers = [pod for pod in there if pod["metadata"]["labels"].get("ray.io/node-type") == "worker"]
        spec = application["spec"]
        group = spec["workerGroupSpecs"][0]
        if not heads:
            head = spec["headGroupSpec"]["template"]["spec"]
            sidecar = {"name": "autoscaler", "image": "simulated", **spec["autoscalerOptions"]}
            self._make("head", application, {**head, "containers": [*head["containers"], sidecar]})
        elif heads[0]["status"].get("phase") == "Running":
            self._scale(group["replicas"])
        self._remove(beyond(workers, group["replicas"]))
        for _ in range(group["replicas"] - len(workers)):
            self._make("worker", application, group["template"]["spec"], number=f"-{self._next()}")

    def _scale(self, replicas: int) -> None:
        if self.wants == replicas or not self._is_time(_RAY_ROUND_S):
            return
        value = min(self.wants, replicas + _RAY_AT_ONCE)
        change = {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": value}
        self._call("change", self.tenant.application_path, change)

    def _make(self, role: str, cluster: Object, spec: Object, number: str = "") -> None:
        group = scenario.RAY_GROUP if role == "worker" else "headgroup"
        labels = {"ray.io/node-type": role, "ray.io/group": group, "ray.io/cluster": ML.name}
        self._create(f"{ML.name}-{role}{number}", cluster, ("ray.io/v1", "RayCluster"), labels, spec)


def alive(pods: Iterable[Object]) -> list[Object]:
    return [pod for pod in pods if pod["status"].get("phase") not in FINISHED]


def beyond(pods: Iterable[Object], wanted: int) -> list[Object]:
    """Who is too many: first those that still wait, then those that came last. They go in this order, or what
    the running ones give back would be given to those that are about to go.
    """
    running_first = sorted(pods, key=lambda pod: (pod["status"].get("phase") != "Running", _number(pod)))
    return running_first[wanted:][::-1]


def _number(pod: Object) -> int:
    return int(pod["metadata"]["name"].rpartition("-")[2])
