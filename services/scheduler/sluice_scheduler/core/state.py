"""All that `step` reads and writes: the entities of one cell, and what is derived from them.

Entities are committed to the ledger as they change. The books, the tree and the lines are not: they are
recomputed from the entities by `State.restore`, so they can never disagree with what was committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from sluice.decisions import Decision
from sluice.events import CellConfig

from sluice_scheduler.core.books import Books
from sluice_scheduler.core.entities import (
    Cell,
    Cluster,
    Entity,
    Namespace,
    Node,
    Pod,
    Pool,
    Queue,
    Report,
    Table,
    Tombstone,
    Unmanaged,
)
from sluice_scheduler.core.places import Places
from sluice_scheduler.core.policies import Policy
from sluice_scheduler.core.tree import QueueNode, build_tree
from sluice_scheduler.core.waiting import Line

#: Rises whenever equal events could give other decisions than before.
CORE_VERSION: Final = 1

D = TypeVar("D", bound=Decision)


class State:
    def __init__(self, policies: Mapping[str, Policy], entities: Iterable[Entity] = ()) -> None:
        self.policies = policies
        self.changes: dict[str, Entity | None] = {}
        self.decided: list[Decision] = []

        self.cells: Table[Cell] = Table(self.changes)
        self.clusters: Table[Cluster] = Table(self.changes)
        self.namespaces: Table[Namespace] = Table(self.changes)
        self.queues: Table[Queue] = Table(self.changes)
        self.pools: Table[Pool] = Table(self.changes)
        self.nodes: Table[Node] = Table(self.changes)
        self.unmanaged: Table[Unmanaged] = Table(self.changes)
        self.tombstones: Table[Tombstone] = Table(self.changes)
        self.reports: Table[Report] = Table(self.changes)
        self.pods: Table[Pod] = Table(self.changes)
        tables: tuple[tuple[type[Entity], Table[Any]], ...] = (
            (Cell, self.cells),
            (Cluster, self.clusters),
            (Namespace, self.namespaces),
            (Queue, self.queues),
            (Pool, self.pools),
            (Node, self.nodes),
            (Unmanaged, self.unmanaged),
            (Tombstone, self.tombstones),
            (Report, self.reports),
            (Pod, self.pods),
        )
        self._tables: dict[str, Table[Any]] = {entity.kind: table for entity, table in tables}
        for entity in entities:
            self._tables[entity.kind].restore(entity)

        #: Something happened since the last pass that a pass could act upon.
        self.pass_due = True
        #: Something that a status shows may have changed.
        self.report_due = True
        self.namespace_by_name = {(n.cluster, n.name): n for n in self.namespaces}
        self.derive()

    def clear(self) -> None:
        """Forget everything, as at the beginning of a ledger."""
        for table in self._tables.values():
            table.clear()
        self.namespace_by_name = {}

    def table(self, kind: str) -> Table[Any]:
        return self._tables[kind]

    # ---- the cell

    @property
    def cell(self) -> Cell:
        cell = self.cells.get(Cell.kind)
        assert cell is not None, "no event is read before REBUILD"
        return cell

    @property
    def begun(self) -> bool:
        return self.cells.get(Cell.kind) is not None

    @property
    def config(self) -> CellConfig:
        return self.cell.config

    @property
    def home(self) -> str:
        """The cluster whose Queues and ResourcePools rule the cell."""
        return self.config.clusters[0]

    def configure(self, config: CellConfig) -> None:
        cell = self.cell
        cell.config = config
        self.cells.put(cell)
        self.pass_due = self.report_due = True

    def advance_time(self, time_ms: int) -> None:
        """A cell's time is the largest seen."""
        cell = self.cell
        if time_ms > cell.time_ms:
            cell.time_ms = time_ms
            self.cells.put(cell)

    @property
    def policy(self) -> Policy:
        return self.policies[self.config.policy]

    def is_live(self, cluster: str) -> bool:
        found = self.clusters.get(f"{Cluster.kind}/{cluster}")
        return found is not None and found.live

    def decide(self, make: Callable[..., D], *, cluster: str, **fields: Any) -> D:
        """The only way to have an effect on the world: the next decision in the cell's order."""
        cell = self.cell
        decision = make(
            seq=cell.next_seq, cell=cell.config.cell, cluster=cluster, time_ms=cell.time_ms, **fields
        )
        cell.next_seq += 1
        self.cells.put(cell)
        self.decided.append(decision)
        return decision

    def take_decisions(self) -> list[Decision]:
        decided, self.decided = self.decided, []
        return decided

    def take_changes(self) -> dict[str, Entity | None]:
        """What the ledger must write (or, None, delete) since this was last asked."""
        changes = dict(self.changes)
        self.changes.clear()
        return changes

    def pods_in(self, namespace: Namespace) -> list[Pod]:
        where = (namespace.cluster, namespace.name)
        return sorted(
            (pod for pod in self.pods if (pod.cluster, pod.namespace) == where), key=lambda pod: pod.key
        )

    def namespace_of(self, cluster: str, name: str) -> Namespace | None:
        return self.namespace_by_name.get((cluster, name))

    # ---- accounts: a pod waits in one line, or holds of one pool, or neither

    def enter(self, pod: Pod) -> None:
        """Bring a pod's account into the books and lines, as its phase says."""
        self.report_due = True
        if pod.bypassed:
            self.bypassed.add(pod.key)
        if pod.phase == "Assumed":
            self.assumed[pod.seq] = pod.key
        if pod.holds:
            if pod.pool:
                self.books.charge(self.tree.get(pod.queue), (pod.cluster, pod.pool), pod.facts.requests)
        elif pod.phase == "Waiting" and not pod.facts.deleting and not pod.problem and pod.queue:
            if pod.retry_ms > self.cell.time_ms:
                self._retries[pod.key] = pod.retry_ms
            else:
                self.lines.setdefault(pod.queue, Line()).join(pod)
                self.pass_due = True

    def withdraw(self, pod: Pod) -> None:
        """The opposite of `enter`: call it before changing anything of the account."""
        self.report_due = True
        self.bypassed.discard(pod.key)
        self.assumed.pop(pod.seq, None)
        if pod.holds and pod.pool:
            self.books.release(self.tree.get(pod.queue), (pod.cluster, pod.pool), pod.facts.requests)
            self.pass_due = True
        if pod.queue in self.lines:
            self.lines[pod.queue].leave(pod)
        self._retries.pop(pod.key, None)

    def replace_pod(self, before: Pod, after: Pod) -> None:
        """Put a later view of an account in the place of one that stands the same in books and lines."""
        if after.phase != "Assumed":
            self.assumed.pop(before.seq, None)
        self.pods.put(after)

    def capacity_changed(self) -> None:
        self.books.freed += 1
        self.pass_due = self.report_due = True

    def offer_retries(self) -> None:
        """Pods whose admission failed come back to their line when their pause is over."""
        for key in [key for key, retry_ms in self._retries.items() if retry_ms <= self.cell.time_ms]:
            del self._retries[key]
            pod = self.pods.get(key)
            assert pod is not None, "an account leaves its pause before it is dropped"
            self.enter(pod)

    # ---- what is derived

    def derive(self) -> None:
        """Recompute everything that is not an entity. Rare: at a start, and when Queues or pools change."""
        self.places = Places(pool for pool in self.pools if self.begun and pool.cluster == self.home)
        self.books = Books(self.places)
        self.tree: dict[str, QueueNode] = {}
        self.lines: dict[str, Line] = {}
        self.bypassed: set[str] = set()  # keys of open pods that nobody admitted
        self.assumed: dict[int, str] = {}  # the decision that admitted a pod → the pod's key
        self._retries: dict[str, int] = {}  # a pod's key → not offered again before
        self.pass_due = self.report_due = True
        if not self.begun:
            return
        self.tree = build_tree((q for q in self.queues if q.cluster == self.home), self.config.cell)
        for node in self.nodes:
            self.places.add(node)
        for held in self.unmanaged:
            self.places.hold(held, 1)
        for pod in self.pods:
            self.enter(pod)
