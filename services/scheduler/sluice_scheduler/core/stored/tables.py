"""Tables: all that the ledger stores, by kind, and which of it has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import (
    Aside,
    Cell,
    Cluster,
    Deserved,
    Drain,
    Entity,
    History,
    LostWork,
    Namespace,
    Node,
    Pool,
    PriorityClass,
    Promise,
    Queue,
    Report,
    Tombstone,
    TrackedObject,
    Turn,
    Unmanaged,
)

ENTITY_TYPES: Final[tuple[type[Entity], ...]] = (
    Cell,
    Cluster,
    Namespace,
    PriorityClass,
    Queue,
    Pool,
    Node,
    Unmanaged,
    Tombstone,
    Report,
    Promise,
    History,
    Drain,
    Deserved,
    Turn,
    LostWork,
    Aside,
    Workload,
    Pod,
)

E = TypeVar("E", bound=Entity)


class Table(Generic[E]):
    """Entities of one kind by key; knows which changed, and which are in a namespace."""

    def __init__(self, changes: dict[str, Entity | None]) -> None:
        self._rows: dict[str, E] = {}
        self._changes = changes
        self._in_namespace: dict[tuple[str, str], dict[str, E]] = {}

    def __iter__(self) -> Iterator[E]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def get(self, key: str) -> E | None:
        return self._rows.get(key)

    @property
    def keys(self) -> Iterable[str]:
        return self._rows.keys()

    def put(self, entity: E) -> str:
        """Add an entity, or say that one has changed; its key."""
        key = entity.key
        if self._rows.get(key) is not entity:
            self.restore(entity)
        self._changes[key] = entity
        return key

    def drop(self, key: str) -> None:
        entity = self._rows.pop(key)
        self._changes[key] = None
        if isinstance(entity, TrackedObject) and entity.namespace:
            there = self._in_namespace[(entity.cluster, entity.namespace)]
            del there[key]
            if not there:
                del self._in_namespace[(entity.cluster, entity.namespace)]

    def in_namespace(self, cluster: str, namespace: str) -> list[E]:
        """In order of their keys."""
        there = self._in_namespace.get((cluster, namespace), {})
        return [entity for _, entity in sorted(there.items())]

    def clear(self) -> None:
        for key in self._rows:
            self._changes[key] = None
        self._rows.clear()
        self._in_namespace.clear()

    def discard(self, key: str) -> None:
        if key in self._rows:
            self.drop(key)

    def restore(self, entity: E) -> None:
        """Put back what was committed before."""
        key = entity.key
        self._rows[key] = entity
        if isinstance(entity, TrackedObject) and entity.namespace:
            self._in_namespace.setdefault((entity.cluster, entity.namespace), {})[key] = entity


class Tables:
    """All entities of one cell."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.changes: dict[str, Entity | None] = {}
        self._tables: dict[str, Table[Any]] = {each.kind: Table(self.changes) for each in ENTITY_TYPES}
        self.cells: Table[Cell] = self._tables[Cell.kind]
        self.clusters: Table[Cluster] = self._tables[Cluster.kind]
        self.namespaces: Table[Namespace] = self._tables[Namespace.kind]
        self.priority_classes: Table[PriorityClass] = self._tables[PriorityClass.kind]
        self.queues: Table[Queue] = self._tables[Queue.kind]
        self.pools: Table[Pool] = self._tables[Pool.kind]
        self.nodes: Table[Node] = self._tables[Node.kind]
        self.unmanaged: Table[Unmanaged] = self._tables[Unmanaged.kind]
        self.tombstones: Table[Tombstone] = self._tables[Tombstone.kind]
        self.reports: Table[Report] = self._tables[Report.kind]
        self.promises: Table[Promise] = self._tables[Promise.kind]
        self.histories: Table[History] = self._tables[History.kind]
        self.deserved: Table[Deserved] = self._tables[Deserved.kind]
        self.asides: Table[Aside] = self._tables[Aside.kind]
        self.turns: Table[Turn] = self._tables[Turn.kind]
        self.lost_work: Table[LostWork] = self._tables[LostWork.kind]
        self.drains: Table[Drain] = self._tables[Drain.kind]
        self.workloads: Table[Workload] = self._tables[Workload.kind]
        self.pods: Table[Pod] = self._tables[Pod.kind]
        for entity in entities:
            self._tables[entity.kind].restore(entity)

    def clear(self) -> None:
        for table in self._tables.values():
            table.clear()

    def has_table(self, kind: str) -> bool:
        return kind in self._tables

    def table(self, kind: str) -> Table[Any]:
        return self._tables[kind]

    def all_keys(self) -> list[str]:
        keys: list[str] = []
        for table in self._tables.values():
            keys += table.keys
        return keys

    def entity(self, key: str) -> Entity | None:
        """Whatever stands under a key."""
        found: Entity | None = self._tables[key.partition("/")[0]].get(key)
        return found

    def take_changes(self) -> dict[str, Entity | None]:
        """What the ledger must write (or, None, delete) since this was last asked."""
        changes = dict(self.changes)
        self.changes.clear()
        return changes
