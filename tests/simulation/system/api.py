"""One API server for everybody: what the actuator writes is what the watcher sees.

Its rules for writes and its watches are those of the two fakes that pass the contract suites. What comes on top:
uids, times and generations, graceful deletion, and that gates are put on by policy.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, Final

import orjson
from fakes.actuated_cluster import _ANSWERS, _APPLIED, FakeCluster, Fault, _Refused, _status
from fakes.cluster import FakeCluster as WatchedCluster
from simulation.system.loop import VirtualLoop
from simulation.system.network import LostError, Network
from sluice.kube import Answer, KubeClient, Unreachable
from sluice.vocabulary import GATE, MANAGED_LABEL, NAME_LABEL, QUEUE_LABEL
from sluice_watcher.kube import KubeCluster, Page, Refused

Json = dict[str, Any]
SERVER: Final = "api"
#: Who looks for himself is told no sooner than this, and mostly no later.
LAG_S: Final = (0.001, 0.01)
#: Told of each change: the object's path, what it was before and what it is now.
Heard = Callable[[str, Json | None, Json | None], None]


class ApiServer(FakeCluster):
    def __init__(self, loop: VirtualLoop, *collections: str) -> None:
        super().__init__()
        self.watched = WatchedCluster(*collections)
        self.heard: list[Heard] = []
        #: The server's clock is that of nobody else.
        self.begins_ms = 1_790_000_000_000
        self._loop = loop
        self._made = 0
        self.collections = collections

    # ---- objects

    def now(self) -> str:
        at = datetime.fromtimestamp(self.begins_ms // 1000 + int(self._loop.time()), UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")

    def make(self, path: str, body: Json) -> Json:
        """Create an object, as somebody else does."""
        return self.put(path, self._complete(path, body))

    def change(self, path: str, edit: Callable[[Json], object]) -> bool:
        """Change an object, if it is there."""
        if path not in self.objects:
            return False
        after = copy.deepcopy(self.objects[path])
        edit(after)
        if after != self.objects[path]:
            self.put(path, after)
        return True

    def put(self, path: str, found: Json) -> Json:
        before = self.objects.get(path)
        body = copy.deepcopy(found)
        metadata = body["metadata"]
        if before is not None and before.get("spec") != body.get("spec"):
            metadata["generation"] = metadata.get("generation", 0) + 1
        collection, place = self._place(path)
        if collection in self.collections:
            self.watched.collection(collection)[place] = body
            self.watched._happened(collection, "MODIFIED" if before else "ADDED", body)
        else:
            self.watched._version += 1
            metadata["resourceVersion"] = str(self.watched._version)
        self.objects[path] = body
        self._tell(path, before, body)
        return body

    def remove(self, path: str) -> Json | None:
        """It is gone, at once."""
        before = self.objects.pop(path, None)
        if before is None:
            return None
        collection, place = self._place(path)
        if collection in self.collections:
            gone = self.watched.collection(collection).pop(place)
            self.watched._happened(collection, "DELETED", copy.deepcopy(gone))
        self._tell(path, before, None)
        for other in [p for p, each in self.objects.items() if _is_owned_by(each, before)]:
            self.delete_gracefully(other)
        return before

    def delete_gracefully(self, path: str) -> None:
        """A pod that is on a node is deleted by its kubelet; anything else at once."""
        found = self.objects[path]
        if "/pods/" in path and found["spec"].get("nodeName") and not _is_finished(found):
            self.change(path, lambda pod: pod["metadata"].setdefault("deletionTimestamp", self.now()))
        else:
            self.remove(path)

    def of(self, collection: str) -> list[Json]:
        return [self.objects[path] for path in self.objects if self._place(path)[0] == collection]

    def _tell(self, path: str, before: Json | None, after: Json | None) -> None:
        for hear in self.heard:
            hear(path, before, after)

    def _complete(self, path: str, body: Json) -> Json:
        self._made += 1
        body = copy.deepcopy(body)
        parts = path.split("/")
        metadata = body.setdefault("metadata", {})
        metadata |= {
            "name": parts[-1],
            "uid": f"{parts[-2]}-{self._made}",
            "creationTimestamp": self.now(),
            "generation": 1,
        }
        if "namespaces" in parts[:-2]:
            metadata["namespace"] = parts[parts.index("namespaces") + 1]
        if parts[-2] == "pods":
            self._admit_by_policy(body)
        if parts[-2] == "namespaces":
            metadata.setdefault("labels", {})[NAME_LABEL] = parts[-1]
        return body

    def _admit_by_policy(self, pod: Json) -> None:
        """The gate is put on by a policy, in namespaces that are managed and bound."""
        namespace = self.objects.get(f"/api/v1/namespaces/{pod['metadata']['namespace']}")
        labels = namespace["metadata"].get("labels", {}) if namespace else {}
        pod.setdefault("status", {}).setdefault("phase", "Pending")
        if labels.get(MANAGED_LABEL) != "true":
            return
        if not labels.get(QUEUE_LABEL):
            raise _Refused(403, "this namespace is bound to no queue yet")
        pod["spec"]["schedulingGates"] = [{"name": GATE}]

    @staticmethod
    def _place(path: str) -> tuple[str, tuple[str, str]]:
        """The collection in which an object is watched, and where in it."""
        head, _, name = path.rpartition("/")
        prefix, _, inside = head.partition("/namespaces/")
        if not inside or "/" not in inside:
            return head, ("", name)
        namespace, _, plural = inside.partition("/")
        return f"{prefix}/{plural}", (namespace, name)

    # ---- the rules of the fake, where objects are more than it knows of

    def _created(self, path: str, body: Any) -> Json:
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            raise _Refused(409, "already exists")
        return self.put(path, self._complete(path, body))

    def _deleted(self, path: str, uid: str, grace_s: int | None, *, evicted: bool) -> Json:
        """However long it has to end, kubelets here end it when they come to it."""
        found = self._existing(path)
        self._check(found, uid, found["metadata"]["resourceVersion"])
        if evicted and path in self.budgeted and found["spec"].get("nodeName"):
            raise _Refused(429, "Cannot evict pod as it would violate the pod's disruption budget.", 10)
        self.delete_gracefully(path)
        return found

    # ---- what it answers

    def serve(self, method: str, path: str, query: Mapping[str, str], body: Any, form: str) -> Answer:
        try:
            if method == "GET":
                return Answer(200, orjson.dumps(self._existing(path)))
            if method == "PATCH":
                done = self._patched(path, body, form)
            elif method == "DELETE":
                done = self._deleted(path, body["preconditions"]["uid"], None, evicted=False)
            elif path.endswith("/eviction"):
                uid = body["deleteOptions"]["preconditions"]["uid"]
                done = self._deleted(path.removesuffix("/eviction"), uid, None, evicted=True)
            else:
                done = self._created(path, body)
        except _Refused as refused:
            return refused.answer
        return Answer(200, orjson.dumps({"metadata": done["metadata"]}))


class SimulatedClient(KubeClient):
    """Raw calls to the simulated API server: lost, refused for now, or timed out though carried out."""

    def __init__(self, server: ApiServer, network: Network, faults: Faults) -> None:
        self.server = server
        self.network = network
        self.faults = faults

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "",
        timeout_s: float = 30,
    ) -> Answer:
        content = orjson.loads(body) if body else None
        serve = partial(self.server.serve, method, path, query or {}, content, content_type)
        try:
            return await self.network.ask(
                SERVER, partial(self.faults.befall, method, serve), patience_s=timeout_s
            )
        except LostError as error:
            raise Unreachable(f"{method} {path}: {error}") from error

    async def close(self) -> None:
        """Nothing to close."""


class Faults:
    """Answers that calls meet instead of what they asked for, until some time."""

    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        self._loop = loop
        self._rng = rng
        self._until_s = 0.0
        self._rate = 0.0
        self._kinds: tuple[Fault, ...] = ()
        #: Watches say nothing before that time.
        self.stale_until_s = 0.0

    def begin(self, kinds: tuple[Fault, ...], *, rate: float, until_s: float) -> None:
        self._kinds, self._rate, self._until_s = kinds, rate, until_s

    def calm(self) -> None:
        self._until_s = self.stale_until_s = 0.0

    def draw(self) -> Fault | None:
        if self._loop.time() < self._until_s and self._rng.random() < self._rate:
            return self._rng.choice(self._kinds)
        return None

    def befall(self, method: str, serve: Callable[[], Answer]) -> Answer:
        fault = self.draw()
        if fault is None:
            return serve()
        if method == "GET":
            fault = Fault.INTERNAL_ERROR
        if fault in _APPLIED:
            serve()
        return _status(*_ANSWERS[fault], 1.0 if fault is Fault.TOO_MANY_REQUESTS else None)

    def watch_lag_s(self) -> float:
        return max(self._rng.uniform(*LAG_S), self.stale_until_s - self._loop.time())


class SimulatedCluster(KubeCluster):
    """The cluster as the watcher sees it: some time later than it was."""

    def __init__(self, client: SimulatedClient) -> None:
        super().__init__(client)
        self._server = client.server
        self._network = client.network
        self._faults = client.faults

    async def page(self, path: str, *, limit: int, token: str) -> Page:
        await self._reach(path)
        return await self._server.watched.page(path, limit=limit, token=token)

    async def watch(
        self, path: str, *, version: str, timeout_s: int, silence_s: float
    ) -> AsyncGenerator[list[bytes], None]:
        await self._reach(path)
        stream = self._server.watched.watch(path, version=version, timeout_s=timeout_s, silence_s=silence_s)
        async with aclosing(stream):
            async for lines in stream:
                await asyncio.sleep(self._faults.watch_lag_s())
                yield lines

    async def _reach(self, path: str) -> None:
        try:
            fault = await self._network.ask(SERVER, self._faults.draw)
        except LostError as error:
            raise Unreachable(f"{path}: {error}") from error
        if fault is Fault.TOO_MANY_REQUESTS:
            raise Refused(429, "too many requests", 1.0)
        if fault is not None:
            raise Refused(500, "etcdserver: request timed out")


def _is_owned_by(owned: Json, owner: Json) -> bool:
    owners = owned["metadata"].get("ownerReferences", ())
    return any(each["uid"] == owner["metadata"]["uid"] for each in owners)


def _is_finished(pod: Json) -> bool:
    return pod["status"].get("phase") in ("Succeeded", "Failed")
