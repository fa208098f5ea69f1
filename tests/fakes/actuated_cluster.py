"""A cluster for the actuator to act on: objects by path, patched by the API server's rules, and faults.

It passes tests/contract/test_actuated_cluster_port.py, as the real adapter does. A fault is what the next
write meets; reads meet only `unreadable`.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson
from sluice_actuator.kube import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, Answer, Json, Unreachable


class Fault(Enum):
    TOO_MANY_REQUESTS = "429"
    INTERNAL_ERROR = "500"
    TIMED_OUT_BUT_APPLIED = "504, applied"
    TIMED_OUT = "504, not applied"
    LOST_BUT_APPLIED = "no answer, applied"
    LOST = "no answer, not applied"
    CONFLICT = "409"
    REJECTED = "403"


_APPLIED = {Fault.TIMED_OUT_BUT_APPLIED, Fault.LOST_BUT_APPLIED}
_ANSWERS = {
    Fault.TOO_MANY_REQUESTS: (429, "too many requests"),
    Fault.INTERNAL_ERROR: (500, "etcdserver: request timed out"),
    Fault.TIMED_OUT_BUT_APPLIED: (504, "timed out"),
    Fault.TIMED_OUT: (504, "timed out"),
    Fault.CONFLICT: (409, "the object has been modified"),
    Fault.REJECTED: (403, "the policy says no"),
}


#: Longer than any pod takes to end.
MAX_S = 1 << 62


@dataclass(frozen=True)
class Call:
    verb: str
    path: str
    body: Any = None


class _Refused(Exception):  # noqa: N818 - says what it is
    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.answer = _status(status, message, retry_after_s)


class FakeCluster:
    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.calls: list[Call] = []
        self.faults: deque[Fault] = deque()
        self.rejects_everything = False
        #: This many reads get no answer.
        self.unreadable = 0
        #: Pods whose disruption budget allows no eviction.
        self.budgeted: set[str] = set()
        #: The path of each object, as often as a call changed it.
        self.changes: list[str] = []
        #: Runs before each call, so that calls end in another order than they began.
        self.delay: Callable[[], Awaitable[object]] = lambda: asyncio.sleep(0)
        self._version = 100

    # ---- what tests say and see

    def put(self, path: str, found: dict[str, Any]) -> dict[str, Any]:
        """Create or change an object as somebody else would."""
        self._version += 1
        found = copy.deepcopy(found)
        found["metadata"]["resourceVersion"] = str(self._version)
        self.objects[path] = found
        return found

    @property
    def writes(self) -> list[Call]:
        return [call for call in self.calls if call.verb != "get"]

    # ---- the port

    async def get(self, path: str) -> Answer:
        await self.delay()
        self.calls.append(Call("get", path))
        if self.unreadable:
            self.unreadable -= 1
            raise Unreachable(f"GET {path}: connection lost")
        if path not in self.objects:
            return _status(404, "not found")
        return Answer(200, orjson.dumps(self.objects[path]))

    async def patch(self, path: str, patch: Json, *, form: str) -> Answer:
        return await self._write(Call("patch", path, patch), lambda: self._patched(path, patch, form))

    async def create(self, path: str, body: Json) -> Answer:
        return await self._write(Call("create", path, body), lambda: self._created(path, body))

    async def evict(self, namespace: str, name: str, *, uid: str, grace_s: int | None = None) -> Answer:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        return await self._write(
            Call("evict", path, uid), lambda: self._deleted(path, uid, grace_s, evicted=True)
        )

    async def delete(self, path: str, *, uid: str, grace_s: int | None = None) -> Answer:
        return await self._write(
            Call("delete", path, uid), lambda: self._deleted(path, uid, grace_s, evicted=False)
        )

    # ---- the API server's rules

    async def _write(self, call: Call, carry_out: Callable[[], dict[str, Any]]) -> Answer:
        await self.delay()
        self.calls.append(call)
        fault = self.faults.popleft() if self.faults else None
        if self.rejects_everything:
            fault = Fault.REJECTED
        answer: Answer | None = None
        if fault is None or fault in _APPLIED:
            try:
                answer = Answer(200, orjson.dumps({"metadata": carry_out()["metadata"]}))
            except _Refused as refused:
                answer = refused.answer
        if fault in (Fault.LOST, Fault.LOST_BUT_APPLIED):
            raise Unreachable(f"{call.verb} {call.path}: connection lost")
        if fault is not None:
            return _status(*_ANSWERS[fault], 1.0 if fault is Fault.TOO_MANY_REQUESTS else None)
        assert answer is not None
        return answer

    def _patched(self, path: str, patch: Json, form: str) -> dict[str, Any]:
        path, _, subresource = path.partition("/status")
        before = self._existing(path)
        after = copy.deepcopy(before)
        if form == JSON_PATCH:
            assert isinstance(patch, list)
            for operation in patch:
                _operate(after, operation)
        else:
            assert isinstance(patch, dict)
            assert form in (MERGE_PATCH, STRATEGIC_MERGE_PATCH)
            _merge(after, patch, strategic=form == STRATEGIC_MERGE_PATCH)
        self._check(before, after["metadata"]["uid"], after["metadata"]["resourceVersion"])
        if subresource:
            after = {**before, "status": after["status"]}
        else:
            _check_pod(before, after)
        if after == before:
            return before
        self.changes.append(path)
        return self.put(path, after)

    def _created(self, path: str, body: Json) -> dict[str, Any]:
        assert isinstance(body, dict)
        path = f"{path}/{body['metadata']['name']}"
        if path in self.objects:
            raise _Refused(409, "already exists")
        return self.put(path, {**body, "metadata": {**body["metadata"], "uid": path}})

    def _deleted(self, path: str, uid: str, grace_s: int | None, *, evicted: bool) -> dict[str, Any]:
        """A pod on a node has time to end: what it was given, or what it says; later calls only make it shorter."""
        found = self._existing(path)
        self._check(found, uid, found["metadata"]["resourceVersion"])
        if evicted and path in self.budgeted:
            raise _Refused(429, "Cannot evict pod as it would violate the pod's disruption budget.", 10)
        if "nodeName" not in found.get("spec", {}):
            return self.objects.pop(path)
        metadata, own_s = found["metadata"], found["spec"].get("terminationGracePeriodSeconds", 30)
        given_s = min(
            metadata.get("deletionGracePeriodSeconds", MAX_S), own_s if grace_s is None else grace_s
        )
        leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": given_s}
        return self.put(path, {**found, "metadata": {**metadata, **leaving}})

    def _existing(self, path: str) -> dict[str, Any]:
        if path not in self.objects:
            raise _Refused(404, "not found")
        return self.objects[path]

    def _check(self, found: dict[str, Any], uid: str, version: str) -> None:
        if found["metadata"]["uid"] != uid:
            raise _Refused(409, f"Precondition failed: UID in precondition: {uid}")
        if found["metadata"]["resourceVersion"] != version:
            raise _Refused(409, "the object has been modified")


def _status(status: int, message: str, retry_after_s: float | None = None) -> Answer:
    return Answer(status, orjson.dumps({"kind": "Status", "message": message}), retry_after_s)


def _operate(document: dict[str, Any], operation: Any) -> None:
    *parents, last = operation["path"].strip("/").split("/")
    place = document
    for parent in parents:
        place = place[parent]
    assert operation["op"] in ("add", "replace")
    place[last] = operation["value"]


def _merge(document: dict[str, Any], patch: Any, *, strategic: bool) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
        elif isinstance(value, dict):
            _merge(document.setdefault(key, {}), value, strategic=strategic)
        elif strategic and isinstance(value, list):
            deleted = {entry["name"] for entry in value if entry["$patch"] == "delete"}
            kept = [entry for entry in document.get(key, []) if entry["name"] not in deleted]
            document.pop(key, None)
            if kept:
                document[key] = kept
        else:
            document[key] = value


def _check_pod(before: dict[str, Any], after: dict[str, Any]) -> None:
    """A node selector may be narrowed, not changed, and only while a gate is on."""
    old, new = (pod.get("spec", {}).get("nodeSelector", {}) for pod in (before, after))
    narrowed = bool(before.get("spec", {}).get("schedulingGates")) and old.items() <= new.items()
    if old != new and not narrowed:
        raise _Refused(422, "spec.nodeSelector: Invalid value")
