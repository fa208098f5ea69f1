"""A client that creates pods and watches their gates open, all on one clock; and one that opens them itself.

It speaks plain HTTPS, so that what is measured is the API server and the product, not a library.
"""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import orjson
from sluice.vocabulary import GATE
from sluice_local import Endpoints

CONNECTIONS = 32
RUN_LABEL = "bench.sluice.dev/run"
STALL_S = 120


@dataclass(slots=True)
class Timing:
    """When each thing happened to one pod, in seconds of one clock."""

    sent: float
    acknowledged: float = 0.0
    opened: float = 0.0
    finished: float = 0.0


class Client:
    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self.run = secrets.token_hex(3)
        self.timings: dict[str, Timing] = {}
        self.opened = 0
        self.finished = 0
        self.reclaimed = 0
        self.holding = 0
        self.holding_max = 0
        self._changed = asyncio.Event()
        self._on_open: Callable[[str, str], None] = lambda namespace, name: None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Client]:
        tls = ssl.create_default_context(cafile=self._endpoints.ca_file)
        headers = {"Authorization": f"Bearer {self._endpoints.admin_token}"}
        connector = aiohttp.TCPConnector(limit=CONNECTIONS + 1, ssl=tls)
        no_limit = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            self._endpoints.api_server,
            connector=connector,
            headers=headers,
            timeout=no_limit,
            read_bufsize=2**20,
        ) as self._http:
            ready = asyncio.Event()
            self._watching = asyncio.create_task(self._watch(ready))
            await ready.wait()
            try:
                yield self
            finally:
                self._watching.cancel()

    # ---- what is done to pods

    async def create(self, namespace: str, name: str, *, gated: bool = False) -> None:
        body = self._pod(name, gated=gated)
        timing = self.timings[f"{namespace}/{name}"] = Timing(sent=time.perf_counter())
        await self.call("POST", f"/api/v1/namespaces/{namespace}/pods", body)
        timing.acknowledged = time.perf_counter()

    async def rehearse(self, namespace: str) -> None:
        """Create a pod that is not kept."""
        await self.call("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", self._pod("rehearsed"))

    def _pod(self, name: str, *, gated: bool = False) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "restartPolicy": "Never",
            "containers": [
                {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            ],
        }
        if gated:
            spec["schedulingGates"] = [{"name": GATE}]
        return {"metadata": {"name": name, "labels": {RUN_LABEL: self.run}}, "spec": spec}

    async def open_gate(self, namespace: str, name: str) -> None:
        patch = [
            {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
            {"op": "remove", "path": "/spec/schedulingGates/0"},
        ]
        await self.call("PATCH", f"/api/v1/namespaces/{namespace}/pods/{name}", patch, "json-patch")

    async def finish(self, namespace: str, name: str) -> None:
        """It may have been reclaimed."""
        path, done = f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": {"phase": "Succeeded"}}
        await self.call("PATCH", path, done, "merge-patch", accepted=(200, 404))

    def finish_after(self, seconds: float) -> None:
        """From now on each pod succeeds so long after its gate has opened."""
        loop, tasks = asyncio.get_running_loop(), set()

        def start(namespace: str, name: str) -> None:
            task = loop.create_task(self.finish(namespace, name))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        self._on_open = lambda namespace, name: void(loop.call_later(seconds, start, namespace, name))

    async def create_object(self, path: str, obj: dict[str, Any]) -> None:
        await self.call("POST", path, obj, accepted=(200, 201, 409))

    async def text(self, path: str) -> str:
        async with self._http.get(path) as response:
            return await response.text()

    async def call(
        self,
        method: str,
        path: str,
        body: Any,
        kind: str = "",
        *,
        accepted: tuple[int, ...] = (200, 201),
    ) -> None:
        headers = {"Content-Type": f"application/{kind}+json" if kind else "application/json"}
        async with self._http.request(method, path, data=orjson.dumps(body), headers=headers) as response:
            text = await response.text()
            if response.status not in accepted:
                raise RuntimeError(f"{method} {path}: {response.status} {text[:300]}")

    # ---- what is seen of them

    async def until(self, done: Callable[[], bool]) -> None:
        while not done():
            self._changed.clear()
            changed = asyncio.create_task(self._changed.wait())
            await asyncio.wait(
                {changed, self._watching}, timeout=STALL_S, return_when=asyncio.FIRST_COMPLETED
            )
            if self._watching.done():
                raise RuntimeError(f"the watch ended: {self._watching.exception()!r}")
            if not changed.done():
                raise TimeoutError(f"nothing happened for {STALL_S} s; {self.opened} gates are open")

    async def _watch(self, ready: asyncio.Event) -> None:
        """From the beginning of the run, on and on: a server that has just started ends watches early."""
        query = {"labelSelector": f"{RUN_LABEL}={self.run}"}
        async with self._http.get("/api/v1/pods", params=query, raise_for_status=True) as response:
            version = orjson.loads(await response.read())["metadata"]["resourceVersion"]
        while True:
            after = {"watch": "1", "resourceVersion": version}
            async with self._http.get(
                "/api/v1/pods", params=query | after, raise_for_status=True
            ) as response:
                ready.set()
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        event = orjson.loads(line)
                        version = event["object"]["metadata"]["resourceVersion"]
                        self._see(event["object"], gone=event["type"] == "DELETED")

    async def watch(self, path: str, ready: asyncio.Event) -> AsyncIterator[dict[str, Any]]:
        """Every change of a kind's objects but their ends, from now on."""
        async with self._http.get(path, raise_for_status=True) as response:
            version = orjson.loads(await response.read())["metadata"]["resourceVersion"]
        while True:
            after = {"watch": "1", "resourceVersion": version}
            async with self._http.get(path, params=after, raise_for_status=True) as response:
                ready.set()
                rest = b""
                async for chunk in response.content.iter_any():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for event in map(orjson.loads, lines):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "DELETED":
                            yield event["object"]

    def _see(self, obj: dict[str, Any], *, gone: bool) -> None:
        namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
        timing = self.timings[f"{namespace}/{name}"]
        now = time.perf_counter()
        if not timing.opened and not obj["spec"].get("schedulingGates"):
            timing.opened = now
            self.opened += 1
            self.holding += 1
            self.holding_max = max(self.holding_max, self.holding)
            self._on_open(namespace, name)
        if not timing.finished and (gone or obj["status"].get("phase") == "Succeeded"):
            timing.finished = now
            self.finished += 1
            self.reclaimed += gone
            self.holding -= 1
        self._changed.set()


def void(_: object) -> None:
    """For callbacks whose result nobody wants."""


async def spread(count: int, job: Callable[[int], Awaitable[None]]) -> None:
    """job(0 … count-1), as many at a time as there are connections, with no pause between."""
    numbers = iter(range(count))

    async def work() -> None:
        for number in numbers:
            await job(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(CONNECTIONS, count)):
            group.create_task(work())


@dataclass(slots=True)
class Latencies:
    values: list[float] = field(default_factory=list)

    def at(self, quantile: float) -> float:
        ordered = sorted(self.values)
        return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
