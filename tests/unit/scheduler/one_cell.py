"""One cell, told of objects as its cluster's watcher would tell it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

from prometheus_client import REGISTRY
from sluice.crds.facts import queue_facts
from sluice.crds.tenancy import QueueSpec
from sluice.decisions import Decision
from sluice.events import (
    ConfigEvent,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    ObjectEvent,
    PodEvent,
    PodFacts,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    RebuildEvent,
    SyncEvent,
    TickEvent,
)
from sluice.values import Epoch
from sluice_scheduler.core.stored.entities import Report
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger import Commit
from sluice_scheduler.metrics import observe_commit
from sluice_scheduler.simulator.cell import CLUSTER, CONFIG, SimulatedCell, outcome


def shown_metric(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def contended() -> OneCell:
    """Queue `a` holds all that there is, with pods a1 and a2; b1 of queue `b` came a second ago."""
    cell = OneCell()
    cell.pool(cpu=2000)
    for queue in ("a", "b"):
        cell.queue(queue)
        cell.namespace(queue)
    for name in ("a1", "a2"):
        cell.pod(name, "a")
        cell.pod(name, "a", gated=False)
    cell.tick()
    cell.pod("b1", "b")
    cell.tick()
    return cell


class OneCell:
    """Objects are told of by name; to tell of one again is to change it."""

    def __init__(self) -> None:
        self.cell = SimulatedCell(installed_policies(), replace(CONFIG, reclaim_after_ms=0))
        self.decisions: list[Decision] = []
        self._versions = count(1)
        self._now_ms = 0

    @property
    def state(self) -> Any:
        return self.cell.state

    def tick(self) -> None:
        self._now_ms += 1000
        self.decisions += self.cell.feed([TickEvent(time_ms=self._now_ms, cluster=CLUSTER)])

    def tell(self, event: type[ObjectEvent], name: str, *, change: str = "MODIFIED", **facts: Any) -> None:
        record: Any = event
        version = next(self._versions)
        common = {"time_ms": self._now_ms, "cluster": CLUSTER, "change": change, "resource_version": version}
        told = {"uid": f"{event.type}-{name}", **common, **facts}
        self.decisions += self.cell.feed([record(name=name, **told)])

    def pool(self, name: str = "default", *, cell: str = "", **allocatable: int) -> None:
        """With one node, which has all of it."""
        labels = {"pool": name}
        self.tell(PoolEvent, name, pool=PoolFacts(cell=cell, node_selector=labels))
        self.tell(NodeEvent, f"node-{name}", node=NodeFacts(allocatable=allocatable, labels=labels))

    def configure(self, **changed: Any) -> None:
        config = replace(self.state.config, **changed)
        event = ConfigEvent(time_ms=self._now_ms, cluster=CLUSTER, config=config)
        self.decisions += self.cell.feed([event])

    def queue(self, name: str, **spec: Any) -> None:
        """It selects the namespace of its own name, unless told otherwise."""
        facts = queue_facts(
            QueueSpec.model_validate({"namespaces": {"names": [name]}, **spec}), generation=1, created_ms=0
        )
        self.tell(QueueEvent, name, queue=facts)

    def namespace(self, name: str, *, queue: str | None = None, managed: bool = True) -> None:
        """Bound to the queue of its own name, unless told otherwise."""
        self.tell(NamespaceEvent, name, managed=managed, queue=name if queue is None else queue)

    def pod(
        self, name: str, namespace: str, *, change: str = "MODIFIED", cpu: int = 1000, **facts: Any
    ) -> None:
        pod = PodFacts(**{"requests": {"cpu": cpu}, "created_ms": 0, "gated": True, **facts})
        self.tell(PodEvent, name, change=change, namespace=namespace, pod=pod)

    def rebuild(self, listing: Callable[[], None]) -> None:
        """Redis was lost: the ledger begins anew, and the cluster is listed."""
        self.answer(self.begin_anew(), listing)

    def begin_anew(self) -> Decision:
        """What asks for the cluster to be listed."""
        rebuild = RebuildEvent(
            time_ms=self._now_ms,
            cluster=CLUSTER,
            config=self.state.config,
            next_seq=self.state.cell.next_seq,
            reason="test",
        )
        [fence] = self.cell.feed([rebuild])
        [resync] = self.cell.feed([outcome(fence, self._now_ms)])
        return resync

    def answer(self, resync: Decision, listing: Callable[[], None]) -> None:
        sync: Any = {"kind": "queue", "sync": "again", "resource_version": 10**9, "request": resync.seq}
        for phase in ("BEGIN", "END"):
            record = SyncEvent(phase=phase, time_ms=self._now_ms, cluster=CLUSTER, **sync)
            self.decisions += self.cell.feed([record])
            if phase == "BEGIN":
                listing()

    # ---- what it shows

    def figures(self, name: str, kind: str = "queue") -> dict[str, Any]:
        """The status of a queue, or another kind, as last decided, after a tick."""
        return dict(self._report(name, kind).figures)

    def complaints(self, name: str, kind: str = "queue") -> dict[str, str]:
        """The conditions of a queue, or another kind, that are not as they should be, by type."""
        return {c.type: c.message for c in self._report(name, kind).conditions if c.reason == "Problem"}

    def metric(self, name: str, **labels: str) -> float | None:
        """After a commit that changed nothing."""
        nothing = Commit(
            epoch=Epoch(1, 1),
            expected_offset=0,
            next_offset=0,
            expected_seq=1,
            next_seq=1,
            published=1,
            changes={},
            decisions=[],
        )
        observe_commit(self.state.config.cell, nothing, self.state)
        return shown_metric(name, cell=self.state.config.cell, **labels)

    def sentences(self, reason: str) -> list[str]:
        return [decision.sentence for decision in self.decisions if decision.reason == reason]

    def _report(self, name: str, kind: str = "queue") -> Report:
        self.tick()
        found = self.state.reports.get(f"{Report.kind}/{kind}/{name}")
        assert isinstance(found, Report), f"nothing is reported of {kind} {name}"
        return found
