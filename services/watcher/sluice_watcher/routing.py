"""Which cells a record goes to.

What every cell needs to know goes to all of them: namespaces, Queues, ResourcePools, PriorityClasses. A pod
goes to the cell of its namespace's binding (namespace → its queue → that queue's root → `spec.cell`), a node
to the cell of its pool. What nothing routes is not published: nodes outside every pool, and pods that Sluice
does not manage, which are summed instead.

A namespace that loses the label of managed ones stays bound while its queue, or one above, selects it: its
pods come without a gate from then on, and must be counted. Bindings end with the label `sluice.dev/queue`.

A binding to a queue that does not exist, and a cell that the settings do not name, lead to the first cell:
the scheduler there knows all Queues and reports what is wrong.

When the route of something already published changes, its kind is stale: listed again, it is missing in its
former cell's SYNC and so ends there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, Protocol, TypeAlias, TypeVar

from sluice.applications import BY_HAND, WITHOUT_OPERATOR
from sluice.events import (
    NamespaceEvent,
    NodeEvent,
    ObjectEvent,
    PodEvent,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    QueueFacts,
    WorkloadEvent,
)
from sluice.values import LabelRequirement, Resources, answering_cell

from sluice_watcher.normalise import RuntimeClassSeen, Sighting, is_unmanaged
from sluice_watcher.requests import Object
from sluice_watcher.unmanaged import Sum, UnmanagedPods

V = TypeVar("V")
Cells: TypeAlias = tuple[str, ...]


class Relisted(Protocol):
    def begin(self) -> None: ...
    def end(self) -> None: ...


class Known(dict[str, V], Generic[V]):
    """What is known of one kind's objects, by name. What a re-list does not show is forgotten at its end."""

    def __init__(self) -> None:
        super().__init__()
        self._unseen: set[str] = set()

    def begin(self) -> None:
        self._unseen = set(self)

    def __setitem__(self, name: str, value: V) -> None:
        super().__setitem__(name, value)
        self._unseen.discard(name)

    def end(self) -> None:
        for name in self._unseen:
            self.pop(name, None)
        self._unseen = set()


class Router:
    """Learns routes from the records themselves, and keeps names and labels only."""

    def __init__(
        self,
        cells: Iterable[str],
        routed_by_namespace: Iterable[str] = ("pod",),
        pod_selector: Iterable[LabelRequirement] = (),
    ) -> None:
        self.cells: Cells = tuple(cells)
        self._pod_selector = tuple(pod_selector)
        self._routed_by_namespace = tuple(routed_by_namespace)
        self._asking = [kind for kind in self._routed_by_namespace if kind != "pod"]
        #: By RuntimeClass: the same dict for as long as this lives.
        self.overheads = Known[Resources]()
        self._namespaces = Known[NamespaceEvent]()
        self._queues = Known[QueueFacts]()
        self._pools = Known[PoolFacts]()
        self._pool_of_node = Known[str]()  # empty: in none
        self._unmanaged = UnmanagedPods()
        #: Namespace → where what is in it has gone; empty: nowhere.
        self._cell_of_contents: dict[str, str] = {}
        self._stale: set[str] = set()
        self._by_kind: dict[str, Relisted] = {
            "runtimeclass": self.overheads,
            "namespace": self._namespaces,
            "queue": self._queues,
            "resourcepool": self._pools,
            "node": self._pool_of_node,
            "pod": self._unmanaged,
        }

    def begin(self, kind: str) -> None:
        """A re-list of this kind begins."""
        if kind in self._by_kind:
            self._by_kind[kind].begin()

    def end(self, kind: str) -> None:
        if kind in self._by_kind:
            self._by_kind[kind].end()
        self._reroute(self._cell_of_contents)

    def take_stale(self) -> set[str]:
        """Kinds that must be listed again, each told once."""
        stale, self._stale = self._stale, set()
        return stale

    def unmanaged_by_pool(self) -> dict[tuple[str, str], Sum]:
        """What unmanaged pods hold, by cell and pool; also where it is nothing."""
        held = self._unmanaged.by_pool(self._pool_of_node)
        return {(self._cell(facts.cell), pool): held.get(pool, Sum()) for pool, facts in self._pools.items()}

    # ------------------------------------------------------------------------------ the kinds' own routes

    def everywhere(self, event: ObjectEvent, seen: Sighting) -> Cells:
        return self.cells

    def runtime_class(self, event: RuntimeClassSeen, seen: Sighting) -> Cells:
        before = self.overheads.get(event.name)
        if event.change == "DELETED":
            self.overheads.pop(event.name, None)
        else:
            self.overheads[event.name] = event.overhead
        if self.overheads.get(event.name) != before:
            self._stale.update(self._asking)
        return ()

    def namespace(self, event: NamespaceEvent, seen: Sighting) -> Cells:
        # The binding outlives its namespace: the other watch may still bring its last pods' ends.
        if event.change != "DELETED":
            self._namespaces[event.name] = event
            self._reroute({event.name} & self._cell_of_contents.keys())
        return self.cells

    def queue(self, event: QueueEvent, seen: Sighting) -> Cells:
        if event.change == "DELETED":
            self._queues.pop(event.name, None)
        else:
            self._queues[event.name] = event.queue
        self._reroute(self._cell_of_contents)
        return self.cells

    def pool(self, event: PoolEvent, seen: Sighting) -> Cells:
        before = self._pools.get(event.name)
        if event.change == "DELETED":
            self._pools.pop(event.name, None)
        else:
            self._pools[event.name] = event.pool
        if self._pools.get(event.name) != before and self._pool_of_node:
            self._stale.add("node")
        return self.cells

    def node(self, event: NodeEvent, seen: Sighting) -> Cells:
        before = self._cell_of_pool(self._pool_of_node.get(event.name, ""))
        if event.change == "DELETED":
            self._pool_of_node.pop(event.name, None)
            return (before,) if before else ()
        pool = self._pool_of_node[event.name] = self._pool_that_selects(event.node.labels)
        cell = self._cell_of_pool(pool)
        if before not in ("", cell) and not seen.listed:
            self._stale.add("node")
        return (cell,) if cell else ()

    def pod(self, event: PodEvent, seen: Sighting) -> Cells:
        cell = self._cell_of(event)
        if cell and not is_unmanaged(seen.object, self._pod_selector):
            self._unmanaged.drop(event.uid)  # its namespace may have been bound a moment ago
            return (cell,)
        if event.change != "DELETED" and event.pod.node and not event.pod.finished:
            self._unmanaged.put(event.uid, event.pod.node, event.pod.requests)
        else:
            self._unmanaged.drop(event.uid)
        return ()

    def workload(self, event: WorkloadEvent, seen: Sighting) -> Cells:
        if event.workload.kind == BY_HAND and (event.workload.controller or _of_pods_alone(seen.object)):
            return ()  # not written by hand: it shows what is known of its application
        cell = self._cell_of(event)
        return (cell,) if cell else ()

    # ------------------------------------------------------------------------------------------------------

    def _cell_of(self, event: PodEvent | WorkloadEvent) -> str:
        cell = self._cell_of_contents.get(event.namespace)
        if cell is None:
            cell = self._cell_of_contents[event.namespace] = self._cell_of_namespace(event.namespace)
        return cell

    def _reroute(self, namespaces: Iterable[str]) -> None:
        for namespace in namespaces:
            cell = self._cell_of_namespace(namespace)
            if cell != self._cell_of_contents[namespace]:
                self._cell_of_contents[namespace] = cell
                self._stale.update(self._routed_by_namespace)

    def _cell_of_namespace(self, name: str) -> str:
        """Empty: it is not bound."""
        namespace = self._namespaces.get(name)
        if namespace is None or not namespace.queue:
            return ""
        path = list(self._path(namespace.queue))
        if not namespace.managed and not any(
            queue.namespaces.selects(name, namespace.labels) for queue in path
        ):
            return ""
        return self._cell(path[-1].cell if path else "")

    def _path(self, name: str) -> Iterator[QueueFacts]:
        """A queue and those above it, as far as they are known. A circle is the scheduler's to report."""
        passed: set[str] = set()
        while name not in passed and (queue := self._queues.get(name)) is not None:
            passed.add(name)
            yield queue
            name = queue.parent

    def _pool_that_selects(self, labels: Mapping[str, str]) -> str:
        """Pools do not overlap; should they, the scheduler's rule holds: the first by name."""
        return min(
            (
                name
                for name, facts in self._pools.items()
                if not facts.problem and facts.node_selector.items() <= labels.items()
            ),
            default="",
        )

    def _cell_of_pool(self, pool: str) -> str:
        return self._cell(self._pools[pool].cell) if pool in self._pools else ""

    def _cell(self, name: str) -> str:
        return answering_cell(name, self.cells)


def _of_pods_alone(workload: Object) -> bool:
    """Whether a DynamicWorkload shows an application that has no object, so that none could control it."""
    return bool(workload["spec"].get("application", {}).get("kind") == WITHOUT_OPERATOR)
