"""The scheduler's core alone in one process: `python -m tests.bench.core [--quick] [--plot out.png]`.

Here is the cell that is measured; core_costs.py measures it, core_report.py tells and plots the figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
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
from sluice.values import NamespaceSelector, Resources
from sluice_scheduler.core import State, step
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.installed import installed_policies

CLUSTER: Final = "bench"


def four_sizes(number: int) -> Resources:
    return {"cpu": 1000 + number % 4 * 250, "memory": 2**30}


class Bench:
    def __init__(
        self, queues: int, *, policy: str = "drf", fan_out: int = 0, pools: int = 1, kinds: int = 2
    ) -> None:
        """`fan_out` queues under each of so many parents; 0: all are roots. `kinds` of resources in every pool."""
        self.state = State(installed_policies())
        self._version = 0
        self.longest_s = 0.0
        self.now_ms = 1
        self.kinds = ["cpu", "memory", *(f"example.com/k{number:02}" for number in range(kinds - 2))]
        self.pools = [f"pool{number:02}" for number in range(pools)] if pools > 1 else ["all"]
        config = CellConfig(
            cell="default", clusters=(CLUSTER,), kinds=("queue",), policy=policy, core_version=1
        )
        step(self.state, RebuildEvent(config=config, next_seq=1, reason="bench", **self._at()))
        fence = OutcomeEvent(seq=1, epoch="1-1", decision="fence", result="Applied", **self._at())
        step(self.state, fence)
        parents = range(-(-queues // fan_out)) if fan_out else range(0)
        for number in parents:
            self.queue(f"p{number:04}", "", more=True)
        self.queues = [f"q{number:04}" for number in range(queues)]
        for number, name in enumerate(self.queues):
            self.queue(name, f"p{number // fan_out:04}" if fan_out else "", more=True)
        for name in self.queues:
            self.see(NamespaceEvent, name, managed=True, queue=name, more=True)
        for name in self.pools:
            selector = {"pool": name} if pools > 1 else {}
            self.see(PoolEvent, name, pool=PoolFacts(node_selector=selector), more=True)
        for phase in ("BEGIN", "END"):
            sync = SyncEvent(phase=phase, kind="queue", sync="1", resource_version=0, request=2, **self._at())
            step(self.state, sync)

    def queue(self, name: str, parent: str, *, more: bool = False, **fields: Any) -> list[object]:
        facts = QueueFacts(parent=parent, namespaces=NamespaceSelector(names=(name,)), **fields)
        return self.see(QueueEvent, name, queue=facts, more=more)

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
        return self.resized(cpu) + self.go_on()

    def resized(self, cpu: int) -> list[object]:
        size = {"cpu": cpu, "memory": cpu * 2**30}
        return self.see(NodeEvent, "node", node=NodeFacts(allocatable=size))

    def node(self, pool: str, amount: int) -> list[object]:
        """A node in each of several pools, with so much of every kind."""
        facts = NodeFacts(allocatable=dict.fromkeys(self.kinds, amount), labels={"pool": pool})
        return self.see(NodeEvent, f"node-{pool}", node=facts)

    def go_on(self) -> list[object]:
        """All that the last step has left to the next records."""
        decided: list[object] = []
        while self.state.cell.unfinished:
            record = OutcomeEvent(seq=0, epoch="1-1", decision="none", result="Applied", **self._at())
            decided += self.timed(record)
        return decided

    def timed(self, event: Event) -> list[object]:
        """Step, and remember the longest step."""
        started = time.process_time()
        decided: list[object] = list(step(self.state, event))
        self.longest_s = max(self.longest_s, time.process_time() - started)
        return decided

    def pods(
        self,
        count: int,
        *,
        requests: Callable[[int], Resources] = four_sizes,
        queues: Sequence[str] = (),
        series: int = 0,
        bound: bool = False,
    ) -> Iterator[PodEvent]:
        """Gated pods that come one after another, to each queue in turn. `series`: those of another come beside.
        `bound`: to each pool in turn."""
        names = queues or self.queues
        for number in range(count):
            self._version += 1
            yield PodEvent(
                uid=f"{number:08}-4d2c-4b5e-9a53-0d3b6d1f7a{11 + series}",
                name=f"pod-{series}-{number}" if series else f"pod-{number}",
                namespace=names[number % len(names)],
                change="ADDED",
                resource_version=self._version,
                pod=PodFacts(
                    requests=requests(number),
                    created_ms=number,
                    gated=True,
                    node_selector={"pool": self.pools[number % len(self.pools)]} if bound else {},
                ),
                more=True,
                **self._at(),
            )

    def submit(self, count: int, **which: Any) -> None:
        """They come, and no pass follows yet."""
        for event in self.pods(count, **which):
            step(self.state, event)

    def finish(self, pod: Pod) -> list[object]:
        facts = replace(pod.facts, phase="Succeeded", gated=False)
        return self.see(PodEvent, pod.name, uid=pod.uid, namespace=pod.namespace, pod=facts)

    def tick(self, after_ms: int = 0) -> list[object]:
        self.now_ms += after_ms
        return self.timed(TickEvent(**self._at()))

    def _at(self) -> dict[str, Any]:
        return {"time_ms": self.now_ms, "cluster": CLUSTER}


if __name__ == "__main__":
    from .core_report import main

    main()
