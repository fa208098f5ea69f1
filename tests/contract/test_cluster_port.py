"""What the watcher relies on in an API server: the fake must promise it and the real one keep it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import uuid4

import orjson
import pytest
from fakes.cluster import FakeCluster
from sluice.kube import KubeClient
from sluice_local import Stack
from sluice_watcher.kube import Cluster, KubeCluster, NotServed, Unreachable

MISSING = "/apis/nobody.example/v1/things"


class World(Protocol):
    """A cluster, and the means to make something happen in it."""

    cluster: Cluster
    path: str  # of an empty collection

    async def put(self, name: str, value: str) -> None: ...
    async def delete(self, name: str) -> None: ...


class FakeWorld:
    def __init__(self) -> None:
        self.path = "/api/v1/namespaces/contract/secrets"
        self.fake = FakeCluster(self.path)
        self.cluster: Cluster = self.fake

    async def put(self, name: str, value: str) -> None:
        self.fake.put(self.path, name, "contract", metadata={"labels": {"value": value}})

    async def delete(self, name: str) -> None:
        self.fake.delete(self.path, name, "contract")


@dataclass
class RealWorld:
    client: KubeClient
    namespace: str

    def __post_init__(self) -> None:
        self.path = f"/api/v1/namespaces/{self.namespace}/secrets"
        self.cluster: Cluster = KubeCluster(self.client)

    async def put(self, name: str, value: str) -> None:
        body = orjson.dumps({"metadata": {"name": name, "labels": {"value": value}}})
        answer = await self.client.request("POST", self.path, body=body)
        if answer.status == 409:
            answer = await self.client.request("PUT", f"{self.path}/{name}", body=body)
        assert answer.ok, answer.message

    async def delete(self, name: str) -> None:
        answer = await self.client.request("DELETE", f"{self.path}/{name}")
        assert answer.ok, answer.message


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.integration)])
async def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    if request.param == "fake":
        yield FakeWorld()
        return
    stack: Stack = request.getfixturevalue("stack")
    monkeypatch.setenv("KUBECONFIG", str(stack.endpoints.kubeconfig))
    client = await KubeClient.connect()
    real = RealWorld(client, f"contract-{uuid4().hex[:8]}")
    created = await client.request(
        "POST", "/api/v1/namespaces", body=orjson.dumps({"metadata": {"name": real.namespace}})
    )
    assert created.ok, created.message
    yield real
    await client.request("DELETE", f"/api/v1/namespaces/{real.namespace}")
    await client.close()


async def listed(world: World, *, limit: int) -> tuple[list[str], set[str]]:
    """The names of all objects, page by page, and the versions that the pages gave."""
    names, versions, token = [], set(), ""
    while True:
        page = await world.cluster.page(world.path, limit=limit, token=token)
        assert len(page.items) <= limit
        names += [item["metadata"]["name"] for item in page.items]
        versions.add(page.version)
        token = page.token
        if not token:
            return names, versions


async def watched(world: World, version: str, count: int, *, timeout_s: int = 60) -> list[dict[str, Any]]:
    """The next `count` events after `version`, or as many as come before the server ends the watch."""
    events: list[dict[str, Any]] = []
    stream = world.cluster.watch(world.path, version=version, timeout_s=timeout_s, silence_s=30)
    async with aclosing(stream):
        async for lines in stream:
            events += [event for event in map(orjson.loads, lines) if event["type"] != "BOOKMARK"]
            if len(events) >= count:
                break
    return events


async def test_an_empty_list_has_a_version_to_watch_from(world: World) -> None:
    page = await world.cluster.page(world.path, limit=500, token="")
    assert (page.items, page.token) == ([], "")
    await world.put("a", "1")
    [event] = await watched(world, page.version, 1)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


async def test_pages_of_a_list_have_its_version_and_show_each_object_once(world: World) -> None:
    for number in range(5):
        await world.put(f"object-{number}", "1")
    names, versions = await listed(world, limit=2)
    assert sorted(names) == [f"object-{number}" for number in range(5)]
    assert len(versions) == 1


async def test_later_pages_do_not_show_what_came_after_the_first(world: World) -> None:
    for number in range(4):
        await world.put(f"object-{number}", "1")
    first = await world.cluster.page(world.path, limit=2, token="")
    await world.put("object-9", "1")
    await world.delete("object-3")
    second = await world.cluster.page(world.path, limit=500, token=first.token)
    assert [item["metadata"]["name"] for item in second.items] == ["object-2", "object-3"]
    assert second.version == first.version
    later = await watched(world, first.version, 2)
    assert [event["type"] for event in later] == ["ADDED", "DELETED"]


async def test_a_watch_shows_all_changes_after_its_version_in_order(world: World) -> None:
    await world.put("a", "1")
    version = (await world.cluster.page(world.path, limit=500, token="")).version
    await world.put("a", "2")
    await world.put("b", "1")
    await world.delete("a")
    events = await watched(world, version, 3)
    assert [(e["type"], e["object"]["metadata"]["name"]) for e in events] == [
        ("MODIFIED", "a"),
        ("ADDED", "b"),
        ("DELETED", "a"),
    ]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)
    assert versions[0] > int(version)


async def test_a_watch_goes_on_from_any_event_seen(world: World) -> None:
    version = (await world.cluster.page(world.path, limit=500, token="")).version
    for name in "abc":
        await world.put(name, "1")
    events = await watched(world, version, 3)
    again = await watched(world, events[0]["object"]["metadata"]["resourceVersion"], 2)
    assert again == events[1:]


async def test_the_server_ends_a_watch_in_time(world: World) -> None:
    version = (await world.cluster.page(world.path, limit=500, token="")).version
    assert await watched(world, version, 1, timeout_s=1) == []


async def test_a_silent_connection_counts_as_lost(world: World) -> None:
    version = (await world.cluster.page(world.path, limit=500, token="")).version
    stream = world.cluster.watch(world.path, version=version, timeout_s=60, silence_s=0.2)
    async with aclosing(stream):
        with pytest.raises(Unreachable):
            await anext(stream)


async def test_a_kind_that_nobody_installed_is_not_served(world: World) -> None:
    with pytest.raises(NotServed):
        await world.cluster.page(MISSING, limit=500, token="")
    stream = world.cluster.watch(MISSING, version="1", timeout_s=60, silence_s=30)
    async with aclosing(stream):
        with pytest.raises(NotServed):
            await anext(stream)
