"""What the actuator relies on in an API server: the fake must promise it and the real one keep it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol
from uuid import uuid4

import orjson
import pytest
from fakes.actuated_cluster import FakeCluster, Fault
from sluice.credentials import Credentials
from sluice.kube import KubeClient
from sluice.vocabulary import DECISION_ANNOTATION, GATE, QUEUE_LABEL
from sluice_actuator.kube import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Answer,
    Cluster,
    KubeCluster,
    Unreachable,
    events_path,
    namespace_path,
    pod_path,
    sluice_path,
)
from sluice_local import Stack

Object = dict[str, Any]
FOREIGN_GATE = "example.dev/other"
QUEUE = {"apiVersion": "sluice.dev/v1alpha1", "kind": "Queue", "spec": {}}


class World(Protocol):
    """A cluster with one namespace, and somebody else who creates and reads there."""

    cluster: Cluster
    namespace: str

    async def create(self, collection: str, obj: Object) -> Object: ...
    async def read(self, path: str) -> Object | None: ...
    async def hold_by_budget(self, pod: str) -> None: ...


class FakeWorld:
    def __init__(self) -> None:
        self.namespace = "contract"
        self.fake = FakeCluster()
        self.cluster: Cluster = self.fake

    async def create(self, collection: str, obj: Object) -> Object:
        metadata = {"uid": str(uuid4()), **obj["metadata"]}
        return self.fake.put(f"{collection}/{metadata['name']}", {**obj, "metadata": metadata})

    async def read(self, path: str) -> Object | None:
        return self.fake.objects.get(path)

    async def hold_by_budget(self, pod: str) -> None:
        self.fake.budgeted.add(pod_path(self.namespace, pod))


class RealWorld:
    def __init__(self, administrator: KubeClient, actuator: KubeClient) -> None:
        self.namespace = f"contract-{uuid4().hex[:8]}"
        self.cluster: Cluster = KubeCluster(actuator)
        self._administrator = administrator

    async def create(self, collection: str, obj: Object) -> Object:
        answer = await self._administrator.request("POST", collection, body=orjson.dumps(obj))
        assert answer.ok, answer.message
        created: Object = answer.json()
        return created

    async def read(self, path: str) -> Object | None:
        answer = await self._administrator.request("GET", path)
        return answer.json() if answer.ok else None

    async def hold_by_budget(self, pod: str) -> None:
        """A pod that runs, and a budget that nobody has worked out yet: nothing may be disrupted."""
        path = pod_path(self.namespace, pod)
        running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
        answer = await self._administrator.request(
            "PATCH", path + "/status", body=orjson.dumps(running), content_type=MERGE_PATCH
        )
        assert answer.ok, answer.message
        budgets = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        spec = {"minAvailable": 1, "selector": {}}
        await self.create(budgets, {"metadata": {"name": "all"}, "spec": spec})


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    if request.param == "fake":
        yield FakeWorld()
        return
    stack: Stack = request.getfixturevalue("stack")
    monkeypatch.setenv("KUBECONFIG", str(stack.endpoints.kubeconfig))
    administrator = await KubeClient.connect()
    monkeypatch.setenv("KUBECONFIG", stack.service_env("actuator")["KUBECONFIG"])
    actuator = await KubeClient.connect()
    real = RealWorld(administrator, actuator)
    await real.create("/api/v1/namespaces", {"metadata": {"name": real.namespace}})
    # What the controller manager does elsewhere; pods need it.
    await real.create(namespace_path(real.namespace) + "/serviceaccounts", {"metadata": {"name": "default"}})
    yield real
    await administrator.request("DELETE", namespace_path(real.namespace))
    await administrator.close()
    await actuator.close()


async def a_pod(world: World, *gates: str, of: Object | None = None, **metadata: Any) -> Object:
    pods = namespace_path(world.namespace) + "/pods"
    spec = {
        "schedulingGates": [{"name": name} for name in gates],
        "containers": [{"name": "main", "image": "none"}],
        **(of or {}),
    }
    return await world.create(pods, {"metadata": {"name": "pod", **metadata}, "spec": spec})


def path_of(world: World, name: str = "pod") -> str:
    return pod_path(world.namespace, name)


def opening(uid: str, *, decision: str = "1-2.3", **node_selector: str) -> Object:
    return {
        "metadata": {"uid": uid, "annotations": {DECISION_ANNOTATION: decision}},
        "spec": {
            "schedulingGates": [{"$patch": "delete", "name": GATE}],
            "nodeSelector": node_selector,
        },
    }


async def open_gate(world: World, uid: str, **node_selector: str) -> int:
    patch = opening(uid, **node_selector)
    return (await world.cluster.patch(path_of(world), patch, form=STRATEGIC_MERGE_PATCH)).status


async def read(world: World, path: str) -> Object:
    found = await world.read(path)
    assert found is not None
    return found


# ---- opening gates


async def test_one_patch_takes_our_gate_annotates_and_narrows(world: World) -> None:
    pod = await a_pod(world, FOREIGN_GATE, GATE)
    assert await open_gate(world, pod["metadata"]["uid"], pool="a") == 200
    opened = await read(world, path_of(world))
    assert opened["spec"]["schedulingGates"] == [{"name": FOREIGN_GATE}]
    assert opened["spec"]["nodeSelector"] == {"pool": "a"}
    assert opened["metadata"]["annotations"] == {DECISION_ANNOTATION: "1-2.3"}


async def test_opening_keeps_annotations_that_were_there(world: World) -> None:
    pod = await a_pod(world, GATE, annotations={"a": "b"})
    assert await open_gate(world, pod["metadata"]["uid"]) == 200
    opened = await read(world, path_of(world))
    assert not opened["spec"].get("schedulingGates")
    assert opened["metadata"]["annotations"] == {"a": "b", DECISION_ANNOTATION: "1-2.3"}


async def test_opening_again_writes_nothing(world: World) -> None:
    pod = await a_pod(world, GATE)
    await open_gate(world, pod["metadata"]["uid"])
    once = await read(world, path_of(world))
    assert await open_gate(world, pod["metadata"]["uid"]) == 200
    assert await read(world, path_of(world)) == once


async def test_a_pod_of_another_uid_is_left_alone(world: World) -> None:
    await a_pod(world, GATE)
    assert await open_gate(world, str(uuid4())) in (409, 422)
    assert (await read(world, path_of(world)))["spec"]["schedulingGates"] == [{"name": GATE}]


async def test_an_open_pod_is_not_moved_to_other_nodes(world: World) -> None:
    pod = await a_pod(world, GATE)
    await open_gate(world, pod["metadata"]["uid"], pool="a")
    assert await open_gate(world, pod["metadata"]["uid"], pool="b") == 422


async def test_what_is_not_there_is_404(world: World) -> None:
    path, uid = path_of(world), str(uuid4())
    assert (await world.cluster.get(path)).status == 404
    assert await open_gate(world, uid) == 404
    assert (await world.cluster.evict(world.namespace, "pod", uid=uid)).status == 404
    assert (await world.cluster.delete(path, uid=uid)).status == 404


# ---- taking back


async def test_a_gated_pod_is_evicted_at_once(world: World) -> None:
    pod = await a_pod(world, GATE)
    assert (await world.cluster.evict(world.namespace, "pod", uid=pod["metadata"]["uid"])).ok
    assert await world.read(path_of(world)) is None


async def test_a_budget_holds_evictions_but_not_deletions(world: World) -> None:
    pod = await a_pod(world)
    await world.hold_by_budget("pod")
    uid = pod["metadata"]["uid"]
    held = await world.cluster.evict(world.namespace, "pod", uid=uid)
    assert held.status == 429
    assert held.retry_after_s
    assert "disruption budget" in held.message
    assert (await world.cluster.delete(path_of(world), uid=uid)).ok
    assert await world.read(path_of(world)) is None


async def test_neither_eviction_nor_deletion_takes_another_uid(world: World) -> None:
    await a_pod(world)
    assert (await world.cluster.evict(world.namespace, "pod", uid=str(uuid4()))).status == 409
    assert (await world.cluster.delete(path_of(world), uid=str(uuid4()))).status == 409
    assert await world.read(path_of(world)) is not None


@pytest.mark.parametrize("verb", ["evict", "delete"])
async def test_a_pod_on_a_node_has_as_long_to_end_as_it_says_or_as_it_is_told(
    world: World, verb: str
) -> None:
    """A longer time is taken, too, but of a pod that is being deleted only a shorter one."""

    async def leave(name: str, uid: str, grace_s: int | None) -> int:
        if verb == "evict":
            answer = await world.cluster.evict(world.namespace, name, uid=uid, grace_s=grace_s)
        else:
            answer = await world.cluster.delete(path_of(world, name), uid=uid, grace_s=grace_s)
        assert answer.ok, answer.message
        return int((await read(world, path_of(world, name)))["metadata"]["deletionGracePeriodSeconds"])

    for name, told_s, has_s in (("own", None, 4000), ("shorter", 600, 600), ("longer", 9000, 9000)):
        spec = {"nodeName": "nowhere", "terminationGracePeriodSeconds": 4000}
        pod = await a_pod(world, of=spec, name=name)
        uid = pod["metadata"]["uid"]
        assert await leave(name, uid, told_s) == has_s
        assert await leave(name, uid, 20_000) == has_s
        assert await leave(name, uid, 60) == 60


# ---- namespaces, statuses, events


async def test_a_namespace_is_labelled_only_as_it_was_read(world: World) -> None:
    if isinstance(world, FakeWorld):
        await world.create("/api/v1/namespaces", {"metadata": {"name": world.namespace}})
    path = namespace_path(world.namespace)
    metadata = (await world.cluster.get(path)).json()["metadata"]

    def labelled(queue: str | None) -> Object:
        labels = {QUEUE_LABEL: queue}
        precondition = {key: metadata[key] for key in ("uid", "resourceVersion")}
        return {"metadata": {**precondition, "labels": labels, "annotations": {DECISION_ANNOTATION: "1-2.3"}}}

    assert (await world.cluster.patch(path, labelled("team-a"), form=MERGE_PATCH)).ok
    assert (await read(world, path))["metadata"]["labels"][QUEUE_LABEL] == "team-a"
    stale = await world.cluster.patch(path, labelled("team-b"), form=MERGE_PATCH)
    assert stale.status == 409
    metadata = (await world.cluster.get(path)).json()["metadata"]
    assert (await world.cluster.patch(path, labelled(None), form=MERGE_PATCH)).ok
    assert QUEUE_LABEL not in (await read(world, path))["metadata"].get("labels", {})


async def test_a_status_is_replaced_whole_and_only_as_it_was_read(world: World) -> None:
    name = f"queue-{uuid4().hex[:8]}"
    path = sluice_path("queues", name)
    queue = await world.create(path.rpartition("/")[0], {**QUEUE, "metadata": {"name": name}})

    async def write(version: str, usage: dict[str, str]) -> Answer:
        replacement: list[Object] = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
            {"op": "add", "path": "/status", "value": {"usage": usage}},
        ]
        return await world.cluster.patch(path + "/status", replacement, form=JSON_PATCH)

    first = queue["metadata"]["resourceVersion"]
    answer = await write(first, {"a/cpu": "1"})
    assert answer.ok
    assert (await write(first, {"b/cpu": "1"})).status == 409
    second = answer.json()["metadata"]["resourceVersion"]
    assert (await write(second, {"b/cpu": "2"})).ok
    assert (await read(world, path))["status"]["usage"] == {"b/cpu": "2"}


async def test_an_event_is_created_once(world: World) -> None:
    involved = {"kind": "Pod", "apiVersion": "v1", "name": "pod", "namespace": world.namespace}
    event = {
        "metadata": {"name": "sluice-default-7", "namespace": world.namespace},
        "involvedObject": involved,
        "reason": "Waits",
        "message": "it waits",
    }
    path = events_path(world.namespace)
    assert (await world.cluster.create(path, event)).ok
    assert (await world.cluster.create(path, event)).status == 409


# ---- no answer


async def nobody() -> str:
    return ""


async def test_a_lost_connection_is_no_answer(world: World) -> None:
    if isinstance(world, FakeWorld):
        world.fake.faults.append(Fault.LOST)
    else:
        nowhere = Credentials("https://127.0.0.1:9", None, nobody)
        world.cluster = KubeCluster(KubeClient(nowhere, connections=1))
    with pytest.raises(Unreachable):
        await open_gate(world, str(uuid4()))
