"""Cost of an admission against queues and pending pods: `python -m tests.bench.core [--plot out.png]`.

Figures are of this process on this machine at this moment; the growth factors are what to compare.
"""

from __future__ import annotations

import argparse
import gc
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from sluice.events import (
    CellConfig,
    Event,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    OutcomeEvent,
    PodEvent,
    PodFacts,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    QueueFacts,
    RebuildEvent,
    SyncEvent,
    TickEvent,
)
from sluice.values import NamespaceSelector
from sluice_scheduler.core import State, step
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.installed import installed_policies

CLUSTER: Final = "bench"


class Bench:
    def __init__(self, queues: int, *, policy: str = "drf", fan_out: int = 0) -> None:
        """`fan_out` queues under each of so many parents; 0: all are roots."""
        self.state = State(installed_policies())
        self._version = 0
        self.longest_s = 0.0
        self.now_ms = 1
        config = CellConfig(
            cell="default", clusters=(CLUSTER,), kinds=("queue",), policy=policy, core_version=1
        )
        step(self.state, RebuildEvent(config=config, next_seq=1, reason="bench", **self._at()))
        fence = OutcomeEvent(seq=1, epoch="1-1", decision="fence", result="Applied", **self._at())
        step(self.state, fence)
        parents = range(queues // fan_out) if fan_out else range(0)
        for number in parents:
            self.queue(f"p{number:04}", "", more=True)
        self.queues = [f"q{number:04}" for number in range(queues)]
        for number, name in enumerate(self.queues):
            self.queue(name, f"p{number // fan_out:04}" if fan_out else "", more=True)
        for name in self.queues:
            self.see(NamespaceEvent, name, managed=True, queue=name, more=True)
        self.see(PoolEvent, "all", pool=PoolFacts(), more=True)
        for phase in ("BEGIN", "END"):
            sync = SyncEvent(phase=phase, kind="queue", sync="1", resource_version=0, request=2, **self._at())
            step(self.state, sync)

    def queue(self, name: str, parent: str, *, more: bool) -> None:
        facts = QueueFacts(parent=parent, namespaces=NamespaceSelector(names=(name,)))
        self.see(QueueEvent, name, queue=facts, more=more)

    def see(self, make: type[Event], name: str, *, more: bool = False, **fields: Any) -> list[object]:
        self._version += 1
        event = make(  # type: ignore[call-arg]
            uid=fields.pop("uid", name),
            name=name,
            change="MODIFIED",
            resource_version=self._version,
            more=more,
            **self._at(),
            **fields,
        )
        return list(step(self.state, event))

    def capacity(self, cpu: int) -> list[object]:
        """What one node offers now; and all that the steps behind that have left to the next records."""
        size = {"cpu": cpu, "memory": cpu * 2**30}
        decided: list[object] = self.see(NodeEvent, "node", node=NodeFacts(allocatable=size))
        while self.state.cell.unfinished:
            decided = decided + self.timed(
                OutcomeEvent(seq=0, epoch="1-1", decision="none", result="Applied", **self._at())
            )
        return decided

    def timed(self, event: Event) -> list[object]:
        """Step, and remember the longest step."""
        started = time.process_time()
        decided: list[object] = list(step(self.state, event))
        self.longest_s = max(self.longest_s, time.process_time() - started)
        return decided

    def pods(self, count: int) -> Iterator[PodEvent]:
        for number in range(count):
            name = self.queues[number % len(self.queues)]
            self._version += 1
            yield PodEvent(
                uid=f"{number:08}-4d2c-4b5e-9a53-0d3b6d1f7a11",
                name=f"pod-{number}",
                namespace=name,
                change="ADDED",
                resource_version=self._version,
                pod=PodFacts(
                    requests={"cpu": 1000 + number % 4 * 250, "memory": 2**30}, created_ms=number, gated=True
                ),
                more=True,
                **self._at(),
            )

    def finish(self, pod: Pod) -> list[object]:
        facts = replace(pod.facts, phase="Succeeded", gated=False)
        return self.see(PodEvent, pod.name, uid=pod.uid, namespace=pod.namespace, pod=facts)

    def tick(self, after_ms: int = 0) -> list[object]:
        self.now_ms += after_ms
        return self.timed(TickEvent(**self._at()))

    def _at(self) -> dict[str, Any]:
        return {"time_ms": self.now_ms, "cluster": CLUSTER}


def admission_us(queues: int, pending: int, *, fan_out: int = 0, rounds: int = 2) -> float:
    """Microseconds for each admission when all that waits is let in at once: the best of some rounds, because
    neighbours on the machine can only slow it down."""
    return min(_admission_us(queues, pending, fan_out=fan_out) for _ in range(rounds))


def _admission_us(queues: int, pending: int, *, fan_out: int) -> float:
    bench = Bench(queues, fan_out=fan_out)
    for event in bench.pods(pending):
        step(bench.state, event)
    gc.collect()
    gc.freeze()
    started = time.process_time()
    decided = bench.capacity(2 * 10**3 * pending)
    fill = time.process_time() - started
    admitted = sum(1 for decision in decided if type(decision).__name__ == "Admit")
    assert admitted == pending, (admitted, pending)
    gc.unfreeze()
    return fill / admitted * 1e6


def life_us(queues: int, pods: int) -> tuple[float, float, float]:
    """Microseconds of the core for a pod's arrival, its admission and its end, where all of them fit.

    The pass that each of these records is followed by is in it, and taking the changes that the ledger would
    write; serialisation is not.
    """
    bench = Bench(queues)
    bench.capacity(2 * 10**3 * pods)
    events = [replace(event, more=False) for event in bench.pods(pods)]
    started = time.process_time()
    for event in events:
        step(bench.state, event)
        bench.state.take_changes()
    arrived = time.process_time()
    held = list(bench.state.pods)
    for pod in held:
        opened = replace(pod.facts, gated=False)
        bench.see(PodEvent, pod.name, uid=pod.uid, namespace=pod.namespace, pod=opened)
        bench.state.take_changes()
    shown = time.process_time()
    for pod in held:
        bench.finish(pod)
        bench.state.take_changes()
    ended = time.process_time()
    arrival, admission, end = ((b - a) / pods * 1e6 for a, b in pairwise((started, arrived, shown, ended)))
    return arrival, admission, end


def steady_us(queues: int, pending: int, *, fan_out: int = 0, rounds: int = 100) -> float:
    """Microseconds for one pod that ends and the one that takes its place, in a full cluster."""
    bench = Bench(queues, fan_out=fan_out)
    events = list(bench.pods(pending))
    for event in events:
        step(bench.state, event)
    bench.capacity(1_000 * pending // 10)
    held = [pod for pod in bench.state.pods if pod.holds][:rounds]
    gc.collect()
    started = time.process_time()
    for pod in held:
        bench.finish(pod)
    return (time.process_time() - started) / len(held) * 1e6


def no_op_us(pending: int = 10_000) -> float:
    """Microseconds for an event that changes nothing, with so many waiting."""
    bench = Bench(100)
    events = list(bench.pods(pending))
    for event in events:
        step(bench.state, event)
    bench.tick()
    started = time.process_time()
    for event in events[:5_000]:
        step(bench.state, replace(event, more=False))  # an old resourceVersion
    return (time.process_time() - started) / 5_000 * 1e6


def edit_ms(pods: int = 100_000) -> tuple[float, float, float]:
    """Milliseconds for an edit of one Queue, for a node's change and for a tick, with so many pods, half of them
    running."""
    bench = Bench(1_000)
    for event in bench.pods(pods):
        step(bench.state, event)
    bench.capacity(600 * pods)
    bench.tick()
    times = [time.process_time()]
    bench.see(QueueEvent, "q0001", queue=QueueFacts(weight=2, namespaces=NamespaceSelector(names=("q0001",))))
    times.append(time.process_time())
    bench.capacity(601 * pods)
    times.append(time.process_time())
    bench.tick(1_000)
    times.append(time.process_time())
    edit, node, tick = ((b - a) * 1e3 for a, b in pairwise(times))
    return edit, node, tick


def taken_back(count: int) -> tuple[int, float, float]:
    """How many of about so many pods were taken back for a queue that deserves them, in how many seconds of work,
    and milliseconds of the longest step."""
    bench = Bench(2)
    events = list(bench.pods(4 * count))
    for event in events[0::2]:
        step(bench.state, event)
    bench.capacity(sum(event.pod.requests["cpu"] for event in events[0::2]))
    for event in events[1::2]:
        step(bench.state, event)
    bench.longest_s, evicted, started = 0.0, 0, time.process_time()
    while True:
        decided = bench.tick(1_000_000 if not evicted else 0)
        evicted += sum(1 for decision in decided if type(decision).__name__ == "Evict")
        if not bench.state.cell.unfinished:
            return evicted, time.process_time() - started, bench.longest_s * 1e3


def memory_mb(pending: int) -> float:
    """Of so many pending pods, all that the core keeps of them."""
    bench = Bench(1_000)
    tracemalloc.start()
    for event in bench.pods(pending):
        step(bench.state, event)
        bench.state.take_changes()
    megabytes = tracemalloc.get_traced_memory()[0] / 2**20
    tracemalloc.stop()
    return megabytes


def openb_s() -> float:
    """Seconds in which `sluice simulate` compares three policies on the openb trace under contention."""
    traces = Path(__file__).parents[1] / "traces"
    started = time.perf_counter()
    command = [sys.executable, "-m", "sluice_scheduler.simulator.main", "--part", "0.008"]
    command += ["--trace", str(traces / "openb-pods.csv.gz"), "--nodes", str(traces / "openb-nodes.csv.gz")]
    command += ["--queues", str(traces / "tenants.yaml"), "--compare", "drf,fifo,usage-drf"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    scale = 10 if options.quick else 1
    by_pending = _row("pending pods", [n // scale for n in (1_000, 10_000, 100_000)], queues=1_000 // scale)
    by_queues = _row("queues", [10, 100, 1_000], pending=100_000 // scale)
    tree = admission_us(1_000 // scale, 100_000 // scale, fan_out=25)
    print(f"in a tree of {1_000 // scale} queues, 25 to a parent: {tree:.1f} us, {1e6 / tree:,.0f} a second")
    for fan_out in (0, 25):
        steady = steady_us(1_000 // scale, 20_000 // scale, fan_out=fan_out)
        print(
            f"full cluster, fan-out {fan_out or 'flat'}: {steady:.0f} us for a pod that ends and the next one"
        )
    arrived, shown, ended = life_us(10, 20_000 // scale)
    print(
        f"a pod's life: {arrived:.0f} us to arrive and be admitted, {shown:.0f} to be seen open, "
        f"{ended:.0f} to end"
    )
    edit, node, tick = edit_ms(100_000 // scale)
    print(
        f"at {100_000 // scale:,} pods: an edit of a Queue {edit:.0f} ms, of a node {node:.0f} ms, a tick {tick:.0f} ms"
    )
    for count in (1_000 // scale, 4_000 // scale):
        evicted, work_s, longest_ms = taken_back(count)
        print(f"{evicted:,} pods taken back: {work_s:.2f} s of work, no step over {longest_ms:.0f} ms")
    print(f"event that changes nothing: {no_op_us():.1f} us")
    print(f"{100_000 // scale:,} pending pods: {memory_mb(100_000 // scale):.0f} MB")
    if not options.quick:
        print(f"the openb trace under drf, fifo and usage-drf: {openb_s():.0f} s")
    if options.plot:
        plot(by_pending, by_queues, options.plot)


def _row(name: str, sizes: list[int], **fixed: int) -> dict[int, float]:
    """Cost by size. Each is told as soon as it is known: the large ones take a while."""
    found: dict[int, float] = {}
    for n in sizes:
        grows = "queues" if name == "queues" else "pending"
        cost = found[n] = admission_us(**{grows: n}, **fixed)
        print(f"{n:>8} {name:<13} {cost:6.1f} us an admission, {1e6 / cost:>8,.0f} a second")
    first, *_, last = found.values()
    print(f"         growth {last / first:.2f}")
    return found


def plot(by_pending: dict[int, float], by_queues: dict[int, float], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.5), sharey=True)
    for axis, found, label in zip(axes, (by_pending, by_queues), ("pending pods", "queues"), strict=True):
        axis.semilogx(list(found), list(found.values()), marker="o")
        axis.set_xlabel(label)
        axis.set_ylim(bottom=0)
    axes[0].set_ylabel("microseconds an admission")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
