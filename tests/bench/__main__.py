"""`make bench`: the whole product beside a bare client, on one API server, in one run.

    burst      2,000 pods over 10 queues with ample quota, from the first creation to the last gate opened
    trickle    10 pods a second for a minute, over the rounds: from creation to open
    contended  room for 200 pods at a time, each finishing 200 ms after its gate opened, 2,000 in all

The bare client creates and opens as many with no controller, while no service runs. Absolute figures are
the machine's; the ratios are the claim. No kube-scheduler and no kubelet runs: gates are what is measured.

Each round has stacks of its own. What is told is each run's best round, and the span of all: neighbours on
the machine can only slow a run down, and do so by half for a minute or two.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import uvloop
from sluice_local import Stack, forget_given_endpoints

from tests.bench.client import Client, Latencies, spread
from tests.bench.usage import Window, requests_by_kind

QUEUES = 10
QUIET_S = 2.0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def prepare(client: Client, *, nodes: int, cpu: str) -> None:
    api = "/apis/sluice.dev/v1alpha1"
    meta = {"apiVersion": "sluice.dev/v1alpha1"}
    await client.create_object(
        f"{api}/resourcepools", meta | {"kind": "ResourcePool", "metadata": {"name": "bench"}, "spec": {}}
    )
    amounts = {"cpu": cpu, "memory": "100Ti", "pods": "1000000"}
    for number in range(nodes):
        status = {"allocatable": amounts, "capacity": amounts}
        await client.create_object("/api/v1/nodes", {"metadata": {"name": f"n{number}"}, "status": status})
    for name in [f"bench-{number}" for number in range(QUEUES)]:
        spec = {"namespaces": {"names": [name]}}
        await client.create_object(
            f"{api}/queues", meta | {"kind": "Queue", "metadata": {"name": name}, "spec": spec}
        )
        labels = {"sluice.dev/managed": "true", "sluice.dev/queue": name}
        await client.create_object("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        await with_service_account(client, name)
    # Once in its life an API server reads its own schema for the policy that gates pods, in every request
    # that is under way before the first has done so: seconds of CPU time, and no part of what is measured.
    await client.rehearse("bench-0")


async def with_service_account(client: Client, namespace: str) -> None:
    """No controller manager runs that would make it."""
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    await client.create_object(path, {"metadata": {"name": "default"}})


def where(number: int) -> tuple[str, str]:
    return f"bench-{number % QUEUES}", f"p{number}"


async def bare(client: Client, pods: int) -> dict[str, Any]:
    await client.create_object("/api/v1/namespaces", {"metadata": {"name": "bare"}})
    await with_service_account(client, "bare")
    start = time.perf_counter()
    await spread(pods, lambda number: client.create("bare", f"{client.run}-{number}", gated=True))
    created = time.perf_counter()
    await spread(pods, lambda number: client.open_gate("bare", f"{client.run}-{number}"))
    await client.until(lambda: client.opened >= pods)
    return {"seconds": time.perf_counter() - start, "create_seconds": created - start}


async def burst(client: Client, pods: int) -> dict[str, Any]:
    start = time.perf_counter()

    async def create(number: int) -> None:
        namespace, name = where(number)
        await client.create(namespace, f"{name}-{client.run}")

    await spread(pods, create)
    created = time.perf_counter()
    await client.until(lambda: client.opened >= pods)
    return {"seconds": time.perf_counter() - start, "create_seconds": created - start}


async def trickle(client: Client, seconds: int, rate: int) -> dict[str, Any]:
    start, count = time.perf_counter(), seconds * rate
    async with asyncio.TaskGroup() as group:
        for number in range(count):
            await asyncio.sleep(max(0.0, start + number / rate - time.perf_counter()))
            namespace, name = where(number)
            group.create_task(client.create(namespace, f"{name}-{client.run}"))
    await client.until(lambda: client.opened >= count)
    return {"latencies_ms": [(t.opened - t.sent) * 1e3 for t in client.timings.values()]}


async def contended(client: Client, pods: int, room: int) -> dict[str, Any]:
    client.finish_after(0.2)
    result = await burst(client, pods)
    await client.until(lambda: client.finished >= pods)
    start = min(timing.sent for timing in client.timings.values())
    ended = max(timing.finished for timing in client.timings.values())
    assert client.holding_max <= room, f"{client.holding_max} pods held room for {room}"
    return {
        "seconds": ended - start,
        "create_seconds": result["create_seconds"],
        "held_max": client.holding_max,
        "reclaimed": client.reclaimed,
    }


async def measured(stack: Stack, run: Any, pods: int) -> dict[str, Any]:
    """A run's figures, with what it cost."""
    async with Client(stack.endpoints).connected() as client:
        pids = {status.name: status.pid for status in stack.status() if status.pid}
        before = requests_by_kind(await client.text("/metrics"))
        window = Window(pids)
        figures: dict[str, Any] = await run(client)
        after = requests_by_kind(await client.text("/metrics"))
    asked = {kind: count - before.get(kind, 0) for kind, count in after.items()}
    figures["processes"] = {
        n: {"cpu_s": round(c, 2), "peak_mb": round(m)} for n, (c, m) in window.read().items()
    }
    figures["requests_per_pod"] = {
        k: round(n / pods, 3) for k, n in sorted(asked.items()) if n / pods > 0.002
    }
    return figures


def fresh(name: str) -> Stack:
    stack = Stack(name, without=("kube-controller-manager", "kube-scheduler", "kwok"))
    stack.down(purge=True) if stack.directory.exists() else None
    stack.up()
    return stack


def ample(pods: int, seconds: int) -> dict[str, Any]:
    stack, results = fresh("bench-ample"), {}
    try:
        uvloop.run(prepared(stack, nodes=10, cpu="100000"))
        say("  » bare client")
        results["bare"] = uvloop.run(measured(stack, lambda c: bare(c, pods), pods))
        stack.services_up()
        time.sleep(QUIET_S)  # start-up work of the services is not what is measured
        say("  » burst")
        results["burst"] = uvloop.run(measured(stack, lambda c: burst(c, pods), pods))
        say(f"  » trickle ({seconds} s)")
        results["trickle"] = uvloop.run(measured(stack, lambda c: trickle(c, seconds, 10), seconds * 10))
    finally:
        stack.down(purge=True)
    return results


def scarce(pods: int) -> dict[str, Any]:
    stack = fresh("bench-contended")
    try:
        uvloop.run(prepared(stack, nodes=1, cpu="200"))
        stack.services_up()
        time.sleep(QUIET_S)
        say("  » contended")
        return uvloop.run(measured(stack, lambda c: contended(c, pods, 200), pods))
    finally:
        stack.down(purge=True)


def bench(pods: int, seconds: int, rounds: int) -> list[dict[str, Any]]:
    results = []
    for number in range(1, rounds + 1):
        say(f"» round {number} of {rounds}")
        results.append(ample(pods, seconds) | {"contended": scarce(pods)})
    return results


def best(rounds: list[dict[str, Any]], run: str) -> tuple[dict[str, Any], str]:
    """The round in which a run took least, and how long it took in all of them."""
    seconds = sorted(results[run]["seconds"] for results in rounds)
    found = min(rounds, key=lambda results: results[run]["seconds"])
    return found[run], f"{seconds[0]:.1f} to {seconds[-1]:.1f}"


async def prepared(stack: Stack, *, nodes: int, cpu: str) -> None:
    async with Client(stack.endpoints).connected() as client:
        await prepare(client, nodes=nodes, cpu=cpu)


def show(rounds: list[dict[str, Any]], pods: int) -> None:
    told, spans = {}, {}
    for run in ("bare", "burst", "contended"):
        told[run], spans[run] = best(rounds, run)
    told["trickle"] = rounds[0]["trickle"]
    trickled = Latencies([latency for results in rounds for latency in results["trickle"]["latencies_ms"]])
    ratio = told["burst"]["seconds"] / told["bare"]["seconds"]
    ratios = sorted(results["burst"]["seconds"] / results["bare"]["seconds"] for results in rounds)
    title = f"{pods} pods over {QUEUES} queues"
    print(f"{title:<32} {'measured':>11}   {'aim':<9} in {len(rounds)} rounds")
    for label, measured, unit, aim, rest in (
        ("bare client, no controller", told["bare"]["seconds"], "s", "", spans["bare"]),
        ("burst, ample quota", told["burst"]["seconds"], "s", "", spans["burst"]),
        ("  by the bare client", ratio, "×", "2 ×", f"{ratios[0]:.2f} to {ratios[-1]:.2f}"),
        ("10 pods/s, creation to open: p50", trickled.at(0.5), "ms", "", "all of them"),
        ("                             p99", trickled.at(0.99), "ms", "150 ms", "all of them"),
        ("contended, room for 200", told["contended"]["seconds"], "s", "25 s", spans["contended"]),
        ("  of them reclaimed", told["contended"]["reclaimed"], "", "", ""),
    ):
        print(f"  {label:<32}{measured:>9.2f} {unit:<3} {aim:<9} {rest}".rstrip())
    for run in ("bare", "burst", "trickle", "contended"):
        print(f"\n{run}")
        for name, cost in told[run]["processes"].items():
            print(f"  {name:<28}{cost['cpu_s']:>8.2f} CPU s {cost['peak_mb']:>6} MB at most")
        asked = ", ".join(f"{kind} {count:g}" for kind, count in told[run]["requests_per_pod"].items())
        print(f"  API requests per pod: {asked}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20, help="of the trickle, in each round")
    parser.add_argument("--json", type=Path, help="also write everything here")
    options = parser.parse_args()
    forget_given_endpoints()
    results = bench(options.pods, options.seconds, options.rounds)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))
    show(results, options.pods)


if __name__ == "__main__":
    main()
