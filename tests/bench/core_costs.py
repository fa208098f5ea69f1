"""What the core costs, in CPU time of this process. Neighbours on the machine can only slow it down."""

from __future__ import annotations

import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sluice.events import PodEvent, PoolEvent, PoolFacts
from sluice.values import Resources
from sluice_scheduler.core import step

from .core import Bench

#: Queues under each parent, where there is a tree.
FAN_OUT = 25
_HOUR_MS = 3_600_000


class Watch:
    """CPU time since it was made."""

    def __init__(self) -> None:
        self._started = time.process_time()

    @property
    def s(self) -> float:
        return time.process_time() - self._started


@contextmanager
def unswept() -> Iterator[None]:
    """What stands by now is not swept for garbage meanwhile: how often that comes depends on what ran before."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def decided(decisions: list[object], name: str) -> int:
    return sum(1 for decision in decisions if type(decision).__name__ == name)


# ---- admissions


def admission_us(queues: int, pending: int, *, fan_out: int = 0, rounds: int = 2) -> float:
    """Microseconds for each admission when all that waits is let in at once: the best of some rounds."""
    return min(_admission_us(queues, pending, fan_out=fan_out) for _ in range(rounds))


def _admission_us(queues: int, pending: int, *, fan_out: int) -> float:
    bench = Bench(queues, fan_out=fan_out)
    bench.submit(pending)
    return _admit_all_us(bench, pending)


def _admit_all_us(bench: Bench, pending: int, cpu: int = 0) -> float:
    with unswept():
        watch = Watch()
        found = bench.capacity(cpu or 2 * 10**3 * pending)
        fill_s = watch.s
    admitted = decided(found, "Admit")
    assert admitted == pending, (admitted, pending)
    return fill_s / admitted * 1e6


def shapes_us(pending: int, queues: int = 1) -> tuple[float, float]:
    """Microseconds for each of so many pods that all ask for something else: to come, and to be admitted."""
    bench = Bench(queues)
    bench.capacity(1)
    watch = Watch()
    bench.submit(pending, requests=lambda number: {"cpu": 1000 + number, "memory": 2**30})
    bench.tick(1_000)
    came_s = watch.s
    return came_s / pending * 1e6, _admit_all_us(bench, pending, (1_000 + pending) * pending)


def memory_mb(pending: int, queues: int = 1_000) -> float:
    """Of so many pending pods, all that the core keeps of them."""
    bench = Bench(queues)
    tracemalloc.start()
    for event in bench.pods(pending):
        step(bench.state, event)
        bench.state.take_changes()
    megabytes = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return megabytes


# ---- one pod


def life_us(queues: int, pods: int) -> tuple[float, float, float]:
    """Microseconds of the core for a pod's arrival, its admission and its end, where all of them fit.

    The pass that each of these records is followed by is in it, and taking the changes that the ledger would
    write; serialisation is not.
    """
    bench = Bench(queues)
    bench.capacity(2 * 10**3 * pods)
    events = [replace(event, more=False) for event in bench.pods(pods)]
    times = [time.process_time()]
    for event in events:
        step(bench.state, event)
        bench.state.take_changes()
    times.append(time.process_time())
    held = list(bench.state.pods)
    for pod in held:
        opened = replace(pod.facts, gated=False)
        bench.see(PodEvent, pod.name, uid=pod.uid, namespace=pod.namespace, pod=opened)
        bench.state.take_changes()
    times.append(time.process_time())
    for pod in held:
        bench.finish(pod)
        bench.state.take_changes()
    times.append(time.process_time())
    arrival, admission, end = ((b - a) / pods * 1e6 for a, b in pairwise(times))
    return arrival, admission, end


class Cost(NamedTuple):
    """Of one of many alike: on average, and at most."""

    mean_ms: float
    most_ms: float


def _cost(works: Iterator[Callable[[], object]]) -> Cost:
    took = []
    for work in works:
        watch = Watch()
        work()
        took.append(watch.s * 1e3)
    return Cost(sum(took) / len(took), max(took))


def end_in_full(queues: int, *, fan_out: int = 0, pools: int = 1, kinds: int = 2, pods: int = 100) -> Cost:
    """A pod ends and the next one takes its place, in a full cluster where every queue waits."""
    bench = full(queues, fan_out=fan_out, pools=pools, kinds=kinds)
    bench.tick(1_000)
    held = [pod for pod in bench.state.pods if pod.holds]
    chosen = held[:: max(1, len(held) // pods)][:pods]
    with unswept():
        return _cost((lambda pod=pod: bench.finish(pod)) for pod in chosen)


def full(queues: int, *, fan_out: int, pools: int, kinds: int) -> Bench:
    """Half of all pods have found room, in each of the pools; they ask for some of every kind."""
    bench = Bench(queues, fan_out=fan_out, pools=pools, kinds=kinds)
    pods = 20 * queues if pools == 1 else 4 * queues

    def requests(number: int) -> Resources:
        size = 1_000 + number % 4 * 250
        return {kind: size if at < 2 else 1 + (number + at) % 7 for at, kind in enumerate(bench.kinds)}

    if pools == 1:
        bench.submit(pods)
        bench.capacity(1_375 * pods // 2)
    else:
        bench.submit(pods, requests=requests)
        for pool in bench.pools:
            bench.node(pool, 1_375 * pods // 2 // pools)
            bench.go_on()
    waiting = len([leaf for leaf in bench.state.forest.leaves.values() if len(leaf.line)])
    assert waiting >= 0.75 * queues, waiting
    return bench


def no_op_us(pending: int = 10_000) -> float:
    """Microseconds for an event that changes nothing, with so many waiting."""
    bench = Bench(100)
    events = list(bench.pods(pending))
    for event in events:
        step(bench.state, event)
    bench.tick()
    watch = Watch()
    for event in events[:5_000]:
        step(bench.state, replace(event, more=False))  # an old resourceVersion
    return watch.s / len(events[:5_000]) * 1e6


# ---- ticks and edits


class Ticks(NamedTuple):
    """Milliseconds of a tick after one pod came, in a tree."""

    with_room: float
    all_wait: float
    all_bound: float  # each pod that waits may go to one pool only


def ticks_ms(queues: int, *, pools: int = 20, kinds: int = 50, rounds: int = 5) -> Ticks:
    def tick_ms(room: int, *, bound: bool = False) -> float:
        return _tick_ms(queues, pools, kinds, rounds, room=room, bound=bound)

    return Ticks(tick_ms(10), tick_ms(1), tick_ms(1, bound=True))


def _tick_ms(queues: int, pools: int, kinds: int, rounds: int, *, room: int, bound: bool) -> float:
    bench = Bench(queues, fan_out=FAN_OUT, pools=pools, kinds=kinds)

    def requests(number: int) -> Resources:
        return {"cpu": 1_000, "memory": 1_000, bench.kinds[number % kinds]: 1_000}

    for pool in bench.pools:
        bench.node(pool, room * 1_000 * queues // pools)
    bench.submit(2 * queues, requests=requests, bound=bound)
    for _ in range(3):
        bench.tick(1_000)
        bench.go_on()
    took = []
    for event in bench.pods(rounds, requests=requests, series=1, bound=bound):
        step(bench.state, replace(event, more=False))
        watch = Watch()
        bench.tick(1_000)
        took.append(watch.s * 1e3)
        bench.go_on()
    return min(took)


class Edits(NamedTuple):
    """The longest step of each, in milliseconds."""

    queue_ms: float
    node_ms: float
    pool_ms: float
    tick_ms: float


def edits(pods: int, queues: int = 1_000) -> Edits:
    """A Queue is edited, a node and a pool change, and time passes, with so many pods, half of them running."""
    bench = Bench(queues, fan_out=FAN_OUT)
    bench.submit(pods)
    bench.capacity(687 * pods)
    bench.tick(1_000)
    bench.go_on()
    name = bench.queues[1]
    found: dict[str, float] = {}
    changes: dict[str, list[Callable[[], object]]] = {
        "queue_ms": [
            lambda: bench.queue(name, "p0000", weight=2),
            lambda: bench.queue(name, "p0000", guaranteed={"cpu": "3"}),
            lambda: bench.queue(name, "p0000", limit={"cpu": "40"}),
            lambda: bench.queue(name, "p0001"),
        ],
        "node_ms": [lambda: bench.resized(686 * pods), lambda: bench.resized(687 * pods)],
        "pool_ms": [lambda: bench.see(PoolEvent, "other", pool=PoolFacts(node_selector={"pool": "other"}))],
        "tick_ms": [lambda: bench.tick(1_000)],
    }
    with unswept():
        for what, works in changes.items():
            found[what] = 0.0
            for work in works:
                bench.longest_s, watch = 0.0, Watch()
                work()
                first_s = watch.s
                bench.go_on()
                found[what] = max(found[what], first_s * 1e3, bench.longest_s * 1e3)
    return Edits(**found)


# ---- taking back


class TakenBack(NamedTuple):
    pods: int
    work_s: float
    longest_ms: float


def alike(number: int) -> Resources:
    return {"cpu": 1_000, "memory": 2**30}


def mixed(number: int) -> Resources:
    return {"cpu": (500, 1_000, 2_000, 3_000)[number % 4], "memory": 2**30}


def taken_back(count: int, *, sizes: Callable[[int], Resources] = alike, claimants: int = 1) -> TakenBack:
    """About so many pods of one queue leave for others that deserve what they hold, each as much as the next."""
    bench = Bench(claimants + 1)
    victim, *others = bench.queues
    held = count * (claimants + 1) // claimants
    bench.submit(held, requests=sizes, queues=[victim])
    bench.capacity(sum(sizes(number)["cpu"] for number in range(held)))
    bench.submit(2 * count, requests=sizes, queues=others, series=1)
    bench.longest_s, evicted, watch = 0.0, 0, Watch()
    bench.now_ms += _HOUR_MS
    for _ in range(1_000):
        found = decided(bench.tick(1_000) + bench.go_on(), "Evict")
        evicted += found
        if evicted and not found:
            break
    assert 0.9 * count <= evicted <= 1.1 * count, (evicted, count)
    return TakenBack(evicted, watch.s, bench.longest_s * 1e3)


def young_ms(victims: int, claimants: int, rounds: int = 20) -> tuple[float, float]:
    """Milliseconds of an event and of a tick where claimants deserve what victims hold that are too young to go."""
    bench = Bench(claimants + 1)
    victim, *others = bench.queues
    bench.queue(victim, "", minimum_run_ms=_HOUR_MS)
    bench.submit(victims, requests=alike, queues=[victim])
    bench.capacity(1_000 * victims)
    bench.submit(claimants, requests=alike, queues=others, series=1)
    for _ in range(3):
        bench.tick(2_000)
    with unswept():
        arrive = (
            lambda event=event: step(bench.state, replace(event, more=False))
            for event in bench.pods(rounds, requests=alike, queues=[victim], series=2)
        )
        event = _cost(arrive)
        tick = _cost((lambda: bench.tick(1_000)) for _ in range(rounds))
    assert not [pod for pod in bench.state.pods if pod.evicting]
    return event.mean_ms, tick.mean_ms


# ---- the simulator


def openb_s() -> float:
    """Seconds in which `sluice simulate` compares three policies on the openb trace under contention."""
    traces = Path(__file__).parents[1] / "traces"
    command = [sys.executable, "-m", "sluice_scheduler.simulator.main", "--part", "0.008"]
    command += ["--trace", str(traces / "openb-pods.csv.gz"), "--nodes", str(traces / "openb-nodes.csv.gz")]
    command += ["--queues", str(traces / "tenants.yaml"), "--compare", "drf,fifo,usage-drf"]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started
