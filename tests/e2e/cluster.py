"""What an end-to-end test does to a cluster, and what it sees of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPSConnection
from ssl import create_default_context
from typing import Any
from urllib.parse import urlencode, urlsplit

from cluster_api import Answer, Api, Object, eventually, made
from sluice.quantities import to_base_units
from sluice.vocabulary import API_VERSION, GATE, MANAGED_LABEL
from sluice_local import Endpoints

TERMINAL = ("Succeeded", "Failed")


def queue(name: str, **spec: Any) -> Object:
    spec.setdefault("namespaces", {"names": [name]})
    return {"apiVersion": API_VERSION, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def pool(name: str = "default", **node_selector: str) -> Object:
    spec = {"nodeSelector": node_selector} if node_selector else {}
    return {"apiVersion": API_VERSION, "kind": "ResourcePool", "metadata": {"name": name}, "spec": spec}


def node(
    name: str, *, cpu: str = "4", memory: str = "64Gi", labels: Mapping[str, str] | None = None
) -> Object:
    amounts = {"cpu": cpu, "memory": memory, "pods": "1000"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        },
        "status": {"allocatable": amounts, "capacity": amounts},
    }


def pod(name: str, *, cpu: str = "1", memory: str = "1Gi", run_for: str = "", **metadata: Any) -> Object:
    annotations = {"sluice.dev/run-for": run_for} if run_for else {}
    requests = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations, **metadata},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "none", "resources": {"requests": requests}}],
        },
    }


class Tenants:
    """Queues, each with a managed namespace of its name, over one pool of nodes."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.settled: list[str] = []

    def provide(self, *objects: Object) -> None:
        paths = {
            "Queue": "/apis/sluice.dev/v1alpha1/queues",
            "ResourcePool": "/apis/sluice.dev/v1alpha1/resourcepools",
            "Node": "/api/v1/nodes",
        }
        for obj in objects:
            made(self.api.create(paths[obj["kind"]], obj))

    def settle(self, *queues: str) -> None:
        """Managed namespaces named as their queues, bound by the actuator and ready for pods."""
        self.settled += queues
        for name in queues:
            labels = {MANAGED_LABEL: "true"}
            made(self.api.create("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}}))
        for name in queues:
            eventually(lambda name=name: self.binding(name) == name, seconds=60)
            eventually(
                lambda name=name: self.api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").ok
            )

    def binding(self, namespace: str) -> str:
        labels = self.api.get(f"/api/v1/namespaces/{namespace}").body["metadata"].get("labels", {})
        return str(labels.get("sluice.dev/queue", ""))

    def submit(self, namespace: str, obj: Object) -> Answer:
        return self.api.create(f"/api/v1/namespaces/{namespace}/pods", obj)

    def delete(self, namespace: str, name: str) -> Answer:
        return self.api.delete(f"/api/v1/namespaces/{namespace}/pods/{name}")

    def pods(self, namespace: str) -> list[Object]:
        return list(made(self.api.get(f"/api/v1/namespaces/{namespace}/pods"))["items"])

    def phases(self, namespace: str) -> dict[str, str]:
        """`gated`, or the phase, of each pod."""
        return {
            p["metadata"]["name"]: "gated" if is_gated(p) else p["status"]["phase"]
            for p in self.pods(namespace)
        }

    def queue_status(self, name: str) -> Object:
        return dict(made(self.api.get(f"/apis/sluice.dev/v1alpha1/queues/{name}")).get("status", {}))

    def described(self, namespace: str) -> str:
        """What goes on in a namespace, for whoever reads of a failed test: what has ended is only named."""
        path = f"/apis/sluice.dev/v1alpha1/namespaces/{namespace}/dynamicworkloads"
        lines = [f"{name}: {phase}" for name, phase in sorted(self.phases(namespace).items())]
        for each in self.api.get(path).body.get("items", ()):
            status = each.get("status", {})
            ended = status.get("phase") in ("Finished", "Failed")
            lines.append(json.dumps({each["metadata"]["name"]: "ended" if ended else [each["spec"], status]}))
        return "\n".join([*lines, json.dumps(self.queue_status(namespace))])


def is_gated(obj: Object) -> bool:
    return any(gate["name"] == GATE for gate in obj["spec"].get("schedulingGates", ()))


@dataclass
class Observer:
    """Sums, in the order of the server's own history, what open and unfinished pods hold.

    A watch delivers pods in order of resourceVersion, so the sums are exact at each point of that history,
    however late we read it.
    """

    endpoints: Endpoints
    namespaces: frozenset[str]
    held: dict[str, dict[str, int]] = field(default_factory=dict)
    opened: dict[str, int] = field(default_factory=dict)  # uid → how many times it was seen to open
    finished: set[str] = field(default_factory=set)
    born_open: set[str] = field(default_factory=set)  # names of pods that were created without the gate
    peak: dict[str, int] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def _on(self, kind: str, obj: Object) -> None:
        if obj["metadata"]["namespace"] not in self.namespaces:
            return
        uid = obj["metadata"]["uid"]
        ended = kind == "DELETED" or obj["status"].get("phase") in TERMINAL
        holds = not is_gated(obj) and not ended
        with self.changed:
            if kind == "ADDED" and not is_gated(obj):
                self.born_open.add(obj["metadata"]["name"])
            if holds and uid not in self.held:
                self.opened[uid] = self.opened.get(uid, 0) + 1
                self._count(uid, requests_of(obj))
            elif not holds and uid in self.held:
                self._count(uid, None)
            if ended:
                self.finished.add(uid)
            self.changed.notify_all()

    def _count(self, uid: str, requests: dict[str, int] | None) -> None:
        sign = 1 if requests is not None else -1
        for resource, amount in (requests or self.held.pop(uid)).items():
            self.total[resource] = self.total.get(resource, 0) + sign * amount
            self.peak[resource] = max(self.peak.get(resource, 0), self.total[resource])
        if requests is not None:
            self.held[uid] = requests

    def wait_for(self, condition: Any, *, seconds: float) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), timeout=seconds), (
                f"not reached in {seconds} s: {len(self.opened)} opened, {len(self.finished)} finished, "
                f"{len(self.held)} held"
            )

    def follow(self, stop: threading.Event) -> None:
        version = ""
        while not stop.is_set():
            try:
                version = version or self._list()
                for kind, obj in self._watch(version):
                    if kind == "ERROR":
                        version = ""
                        break
                    version = obj["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._on(kind, obj)
                    if stop.is_set():
                        return
            except (OSError, HTTPException):
                stop.wait(0.2)

    def _list(self) -> str:
        pods = made(Api(self.endpoints).get("/api/v1/pods"))
        for obj in pods["items"]:
            self._on("LISTED", obj)
        return str(pods["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> Iterator[tuple[str, Object]]:
        server = urlsplit(self.endpoints.api_server)
        assert server.hostname
        context = create_default_context(cafile=self.endpoints.ca_file)
        connection = HTTPSConnection(server.hostname, server.port, timeout=5, context=context)
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "4",
        }
        try:
            headers = {"Authorization": f"Bearer {self.endpoints.admin_token}"}
            connection.request("GET", f"/api/v1/pods?{urlencode(query)}", headers=headers)
            for line in connection.getresponse():
                event = json.loads(line)
                yield event["type"], event["object"]
        finally:
            connection.close()


def requests_of(obj: Object) -> dict[str, int]:
    """Of pods without init containers, as these tests make them."""
    sums: dict[str, int] = {}
    for container in obj["spec"]["containers"]:
        for resource, text in container["resources"]["requests"].items():
            sums[resource] = sums.get(resource, 0) + to_base_units(resource, text)
    return sums


@contextmanager
def observed(endpoints: Endpoints, *namespaces: str) -> Iterator[Observer]:
    observer, stop = Observer(endpoints, frozenset(namespaces)), threading.Event()
    thread = threading.Thread(target=observer.follow, args=(stop,), daemon=True)
    thread.start()
    try:
        yield observer
    finally:
        stop.set()
        thread.join(10)
