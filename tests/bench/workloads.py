"""Kueue's scheduler benchmark, its 15,000 workloads as DynamicWorkloads: `python -m tests.bench.workloads`.

Five cohorts of six queues, 20 CPUs nominal each and up to 100 borrowed. Each queue is sent 350 × 1 CPU for
200 ms every 100 ms, 100 × 5 CPUs for 500 ms every 500 ms and 50 × 20 CPUs for 1 s every 1.2 s, at priorities
50, 100 and 200. No schedule ends before 66 s. As there, a workload has no pods: a runner sees that it is
admitted, waits for its time, and deletes it; one that is taken back meanwhile begins anew.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import uvloop
from sluice_local import Stack, forget_given_endpoints

from tests.bench.__main__ import fresh, with_service_account
from tests.bench.client import CONNECTIONS, Client
from tests.bench.usage import Window, requests_by_kind

COHORTS, QUEUES = 5, 6
BOUND_S: Final = 66.0
API: Final = "/apis/sluice.dev/v1alpha1"


@dataclass(frozen=True, slots=True)
class Class:
    """Workloads that are alike."""

    name: str
    count: int
    cpu: int
    priority: int
    every_s: float
    runtime_s: float


CLASSES: Final = (
    Class("small", 350, 1, 50, 0.1, 0.2),
    Class("medium", 100, 5, 100, 0.5, 0.5),
    Class("large", 50, 20, 200, 1.2, 1.0),
)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def meta(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "sluice.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


async def prepare(client: Client) -> None:
    amounts = {"cpu": str(COHORTS * QUEUES * 20), "memory": "1Ti", "pods": "1000000"}
    await client.create_object(f"{API}/resourcepools", meta("ResourcePool", "bench", {}))
    status = {"allocatable": amounts, "capacity": amounts}
    await client.create_object("/api/v1/nodes", {"metadata": {"name": "n"}, "status": status})
    for each in CLASSES:
        ranked = {"metadata": {"name": each.name}, "value": each.priority}
        await client.create_object("/apis/scheduling.k8s.io/v1/priorityclasses", ranked)
    for cohort in range(COHORTS):
        bound = {"cpu": str(QUEUES * 20)}
        spec: dict[str, Any] = {"guaranteed": bound, "limit": bound}
        await client.create_object(f"{API}/queues", meta("Queue", f"cohort-{cohort}", spec))
        for queue in range(QUEUES):
            name = f"queue-{cohort}-{queue}"
            spec = {
                "parent": f"cohort-{cohort}",
                "guaranteed": {"cpu": "20"},
                "limit": {"cpu": "120"},
                "preemption": "lowerPriority",
                "namespaces": {"names": [name]},
            }
            await client.create_object(f"{API}/queues", meta("Queue", name, spec))
            labels = {"sluice.dev/managed": "true", "sluice.dev/queue": name}
            await client.create_object("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
            await with_service_account(client, name)


class Runner:
    """Sends workloads when they are due, and ends those that were admitted when their time is over."""

    def __init__(self, client: Client, scale: float) -> None:
        self._client = client
        self._creations, self._ends = _Lane(client), _Lane(client)
        self._runtimes: dict[str, float] = {}
        self._running: dict[str, asyncio.TimerHandle] = {}
        self.taken_back = 0
        self._plan = sorted(
            (
                (each.every_s * number, f"queue-{cohort}-{queue}", f"{each.name}-{number}", each)
                for cohort in range(COHORTS)
                for queue in range(QUEUES)
                for each in CLASSES
                for number in range(round(each.count * scale))
            ),
            key=lambda due: due[:3],
        )
        self.total = len(self._plan)

    async def run(self) -> float:
        ready = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._watch(ready))]
            for lane in (self._creations, self._ends):
                tasks += [group.create_task(lane.run()) for _ in range(CONNECTIONS // 2 - 1)]
            await ready.wait()
            start = time.perf_counter()
            for due_s, namespace, name, each in self._plan:
                await asyncio.sleep(max(0.0, start + due_s - time.perf_counter()))
                self._send(namespace, name, each)
            shown_s = time.perf_counter()
            while self._ends.done < self.total:
                await asyncio.sleep(0.05)
                if time.perf_counter() - shown_s > 10:
                    shown_s = time.perf_counter()
                    say(f"  {self._ends.done} of {self.total} have ended after {shown_s - start:.0f} s")
            took_s = time.perf_counter() - start
            for task in tasks:
                task.cancel()
        return took_s

    def _send(self, namespace: str, name: str, each: Class) -> None:
        spec = {
            "application": {"apiVersion": "example.com/v1", "kind": "Bench", "name": name},
            "podSets": [{"name": "main", "count": 1, "requests": {"cpu": str(each.cpu)}}],
            "priorityClassName": each.name,
        }
        self._runtimes[f"{namespace}/{name}"] = each.runtime_s
        self._creations.put("POST", collection(namespace), meta("DynamicWorkload", name, spec))

    async def _watch(self, ready: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        async for seen in self._client.watch(f"{API}/dynamicworkloads", ready):
            namespace, name = seen["metadata"]["namespace"], seen["metadata"]["name"]
            key = f"{namespace}/{name}"
            runs = seen.get("status", {}).get("phase") == "Running"
            if key not in self._runtimes:
                continue  # its end is under way, whatever becomes of it meanwhile
            if runs and key not in self._running:
                end = partial(self._end, key, f"{collection(namespace)}/{name}")
                self._running[key] = loop.call_later(self._runtimes[key], end)
            elif not runs and key in self._running:
                self._running.pop(key).cancel()
                self.taken_back += 1

    def _end(self, key: str, path: str) -> None:
        del self._runtimes[key], self._running[key]
        self._ends.put("DELETE", path, {})


def collection(namespace: str) -> str:
    return f"{API}/namespaces/{namespace}/dynamicworkloads"


class _Lane:
    """Requests in order, with connections of their own: no end waits for creations that are overdue."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._waiting: asyncio.Queue[tuple[str, str, dict[str, Any]]] = asyncio.Queue()
        self.done = 0

    def put(self, method: str, path: str, body: dict[str, Any]) -> None:
        self._waiting.put_nowait((method, path, body))

    async def run(self) -> None:
        while True:
            await self._client.call(*await self._waiting.get())
            self.done += 1


async def measured(stack: Stack, scale: float) -> dict[str, Any]:
    async with Client(stack.endpoints).connected() as client:
        runner = Runner(client, scale)
        before = requests_by_kind(await client.text("/metrics"))
        window = Window({status.name: status.pid for status in stack.status() if status.pid})
        took_s = await runner.run()
        after = requests_by_kind(await client.text("/metrics"))
    asked = {kind: count - before.get(kind, 0) for kind, count in after.items()}
    return {
        "workloads": runner.total,
        "taken_back": runner.taken_back,
        "seconds": took_s,
        "processes": {n: {"cpu_s": round(c, 2), "peak_mb": round(m)} for n, (c, m) in window.read().items()},
        "requests_per_workload": {
            kind: round(count / runner.total, 3)
            for kind, count in sorted(asked.items())
            if count / runner.total > 0.002
        },
    }


async def prepared(stack: Stack) -> None:
    async with Client(stack.endpoints).connected() as client:
        await prepare(client)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of the numbers of workloads")
    options = parser.parse_args()
    forget_given_endpoints()
    say("» starting a stack")
    stack = fresh("bench-workloads")
    try:
        uvloop.run(prepared(stack))
        stack.services_up()
        time.sleep(2)  # start-up work of the services is not what is measured
        say("» workloads")
        figures = uvloop.run(measured(stack, options.scale))
    finally:
        stack.down(purge=True)
    print(
        f"{figures['workloads']} workloads     {figures['seconds']:8.1f} s   aim 150 s; bound {BOUND_S:.0f} s"
    )
    print(f"  taken back, and begun anew  {figures['taken_back']:>8}")
    for name, cost in figures["processes"].items():
        print(f"  {name:<28}{cost['cpu_s']:>8.2f} CPU s {cost['peak_mb']:>6} MB at most")
    print(f"  API requests per workload: {json.dumps(figures['requests_per_workload'])}")


if __name__ == "__main__":
    main()
