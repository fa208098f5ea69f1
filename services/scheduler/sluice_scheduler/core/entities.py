"""Entities: what the ledger stores, each under a key of its own such as `pod/<cluster>/<uid>`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeAlias, TypeVar

from sluice.applications import BY_HAND, listed_as
from sluice.decisions import Condition
from sluice.events import (
    CellConfig,
    NodeFacts,
    ObjectEvent,
    PodFacts,
    PoolFacts,
    QueueFacts,
    WorkloadFacts,
)
from sluice.values import Resources

#: Waiting: gated. Assumed: a decision to admit is out. Holding: seen open. Withdrawn: known to be gone.
PodPhase: TypeAlias = Literal["Waiting", "Assumed", "Holding", "Withdrawn"]


@dataclass(slots=True, kw_only=True)
class Entity:
    """Something that the ledger stores."""

    kind: ClassVar[str]

    @property
    def key(self) -> str:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class TrackedObject(Entity):
    """A Kubernetes object as last seen."""

    cluster: str
    uid: str
    name: str
    namespace: str = ""
    resource_version: int
    sync: str = ""  # the last re-list that it was seen in

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.cluster}/{self.uid}"

    @property
    def listed_as(self) -> str:
        """What a SYNC calls this kind."""
        return self.kind


def identity(event: ObjectEvent, sync: str) -> dict[str, Any]:
    """What every tracked object is made with."""
    return {
        "cluster": event.cluster,
        "uid": event.uid,
        "name": event.name,
        "namespace": event.namespace,
        "resource_version": event.resource_version,
        "sync": sync,
    }


@dataclass(slots=True, kw_only=True)
class Pod(TrackedObject):
    """A managed pod's account."""

    kind: ClassVar[str] = "pod"
    facts: PodFacts
    phase: PodPhase = "Waiting"
    queue: str = ""  # charged to, or waiting in; empty while `problem` says why
    pool: str = ""  # where it holds its share
    seq: int = 0  # the decision that admitted it; 0: found open
    retry_ms: int = 0  # it pauses until the first tick from then on; 0: it doesn't
    problem: str = ""  # why it can't wait in any queue
    evicting: int = 0  # seq of the decision to evict it
    admitted_ms: int = 0
    application: str = ""  # the title of what it is charged with; empty: it stands for itself
    pod_set: str = ""
    judged: bool = False  # whether the minimum of its group came up in time
    stranger: bool = False  # first seen open, and not in a rebuild: whatever opened it, this ledger did not

    @property
    def holds(self) -> bool:
        return self.phase in ("Assumed", "Holding")

    @property
    def waits(self) -> bool:
        """Whether it may stand in a line at all."""
        return (
            self.phase == "Waiting"
            and not self.facts.deleting
            and not self.problem
            and not self.evicting
            and bool(self.queue)
        )

    @property
    def bypassed(self) -> bool:
        """Open without a decision, or with one that nobody made: the policies were got round."""
        return self.phase == "Holding" and self.seq == 0 and (self.stranger or not self.facts.decision)


@dataclass(slots=True, kw_only=True)
class JobRecord:
    """How far a QueueJob is. Its pods are `<job>-<index>-<attempt>`; an index is done when one succeeds."""

    attempts: dict[str, int] = field(default_factory=dict)  # index → pods made of it so far
    done: tuple[int, ...] = ()
    failures: int = 0
    in_a_row: int = 0
    resume_ms: int = 0  # no new pod before
    asked_for: dict[str, tuple[int, int]] = field(default_factory=dict)  # unseen pods → index, decision
    outcome: Literal["", "Finished", "Failed"] = ""
    why: str = ""
    start_ms: int = 0
    end_ms: int = 0


@dataclass(slots=True, kw_only=True)
class Workload(TrackedObject):
    """An application's account. While admitted, what is missing of its minima is reserved."""

    kind: ClassVar[str] = "workload"
    facts: WorkloadFacts
    queue: str = ""
    problem: str = ""
    admitted: bool = False
    admitted_ms: int = 0
    priority: int = 0  # of its class, or its own
    seq: int = 0  # the last decision to release or suspend it; 0: there was none
    deadline_ms: int = 0  # until when its pods may hold up its suspension
    found: bool = False  # first seen in a rebuild: an earlier ledger may have released it
    retry_ms: int = 0  # it has no claim of its own until the first tick from then on
    #: What was granted at its admission: where each pod set is held, how many pods of it, and how large.
    pools: dict[str, str] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    sizes: dict[str, Resources] = field(default_factory=dict)
    succeeded: dict[str, int] = field(default_factory=dict)  # finished pods of each pod set
    kept: dict[str, int] = field(default_factory=dict)  # shares of failed pods, for those that replace them
    judged: bool = False  # whether its minimum came up in time
    minima: dict[str, int] = field(default_factory=dict)  # smaller ones, since the rest did not come in time
    requeued_ms: int = 0  # it lost its place in line then
    reclaimed: dict[str, int] = field(default_factory=dict)  # pods given back; never falls while admitted
    taken: dict[str, int] = field(default_factory=dict)  # pods that were taken back
    shown: str = ""  # its DynamicWorkload, once that was asked for
    failed_ms: int = 0  # of Spark in client mode: when an executor failed that nobody has replaced
    job: JobRecord = field(default_factory=JobRecord)
    #: It lost pods when the cell's `grounds` stood there: it pushes nobody out until they rise.
    barred: int = -1

    @property
    def title(self) -> str:
        """What its pods call it; nothing else in its namespace has this title."""
        return self.name if self.facts.kind == BY_HAND else f"{self.facts.kind}/{self.name}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Where its application is found."""
        return self.cluster, self.namespace, self.title

    @property
    def in_line_ms(self) -> int:
        """Since when it stands in line."""
        return max(self.facts.created_ms, self.requeued_ms)

    @property
    def listed_as(self) -> str:
        return listed_as(self.facts.kind)


@dataclass(slots=True, kw_only=True)
class Promise(Entity):
    """A claim that was granted what its victims are about to leave."""

    kind: ClassVar[str] = "promise"
    claim: str  # the key of the pod or workload
    seq: int  # of its last eviction: promises are kept in this order
    queue: str
    pools: tuple[str, ...]  # of each part of the claim
    cost: tuple[tuple[str, str, str, int], ...]  # cluster, pool, resource, amount
    until_ms: int

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.claim}"


@dataclass(slots=True, kw_only=True)
class History(Entity):
    """What a queue has used, weighed by how long ago: only policies that look back keep one."""

    kind: ClassVar[str] = "history"
    queue: str
    time_ms: int
    used: dict[str, int]  # `cluster/pool/resource` → decayed amount

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.queue}"


#: Over so many minutes a queue's drain is measured.
DRAIN_MINUTES: Final = 10


@dataclass(slots=True, kw_only=True)
class Drain(Entity):
    """How fast pods of a queue have ended lately, by minute of the cell's time."""

    kind: ClassVar[str] = "drain"
    queue: str
    since_ms: int = 0  # the end from which the others are counted
    ends: dict[str, int] = field(default_factory=dict)

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.queue}"

    def count(self, now_ms: int) -> None:
        minute = now_ms // 60_000
        self.ends = {at: ends for at, ends in self.ends.items() if int(at) > minute - DRAIN_MINUTES}
        if self.ends:
            self.ends[str(minute)] = self.ends.get(str(minute), 0) + 1
        else:
            self.since_ms, self.ends = now_ms, {str(minute): 0}

    def pace(self, now_ms: int) -> tuple[int, int]:
        """So many ends in so many milliseconds."""
        first = now_ms // 60_000 - DRAIN_MINUTES + 1
        ends = sum(ends for at, ends in self.ends.items() if int(at) >= first)
        return ends, now_ms - max(self.since_ms, first * 60_000)


@dataclass(slots=True, kw_only=True)
class Node(TrackedObject):
    kind: ClassVar[str] = "node"
    facts: NodeFacts


@dataclass(slots=True, kw_only=True)
class Namespace(TrackedObject):
    kind: ClassVar[str] = "namespace"
    managed: bool
    queue: str
    labels: dict[str, str]
    labelling: str = ""  # the binding that a decision under way writes
    labelling_seq: int = 0
    noticed: str = ""  # the problem that was last told


@dataclass(slots=True, kw_only=True)
class PriorityClass(TrackedObject):
    kind: ClassVar[str] = "priorityclass"
    value: int
    global_default: bool = False


@dataclass(slots=True, kw_only=True)
class Queue(TrackedObject):
    kind: ClassVar[str] = "queue"
    facts: QueueFacts


@dataclass(slots=True, kw_only=True)
class Pool(TrackedObject):
    kind: ClassVar[str] = "resourcepool"
    facts: PoolFacts


@dataclass(slots=True, kw_only=True)
class Unmanaged(Entity):
    """What pods outside Sluice's hands hold of one cluster's pool."""

    kind: ClassVar[str] = "unmanaged"
    cluster: str
    pool: str
    pods: int
    requests: Resources

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.cluster}/{self.pool}"


@dataclass(slots=True, kw_only=True)
class Tombstone(Entity):
    """A deleted object, until the next SYNC of its kind ends: late news of it must not bring it back."""

    kind: ClassVar[str] = "tombstone"
    cluster: str
    object_kind: str
    uid: str
    resource_version: int
    time_ms: int

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.cluster}/{self.object_kind}/{self.uid}"


@dataclass(slots=True, kw_only=True)
class Cluster(Entity):
    """How far a cluster's part of a rebuild has come, and which re-lists are under way."""

    kind: ClassVar[str] = "cluster"
    name: str
    fence: int  # seq of its FENCE
    resync: int = 0  # seq of its RESYNC; 0 until the fence was answered
    synced: tuple[str, ...] = ()  # kinds whose requested SYNC has ended
    open_syncs: dict[str, str] = field(default_factory=dict)  # kind → id of the SYNC that has begun
    live: bool = False  # decisions may be made about it

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"


@dataclass(slots=True, kw_only=True)
class Report(Entity):
    """The last status written for an object, to write only what has changed."""

    kind: ClassVar[str] = "report"
    about: str  # `queue/<name>`, `resourcepool/<name>`, or the key of a workload
    seq: int
    figures: dict[str, Any]
    conditions: tuple[Condition, ...]
    retry: bool = False  # the write failed

    def says(self, figures: dict[str, Any], conditions: tuple[Condition, ...]) -> bool:
        """Whether a status stands as it was last written: then it is not written again."""
        return not self.retry and self.figures == figures and self.conditions == conditions

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.about}"


@dataclass(slots=True, kw_only=True)
class Cell(Entity):
    """The cell itself."""

    kind: ClassVar[str] = "cell"
    config: CellConfig
    next_seq: int
    time_ms: int = 0
    rules_due: bool = False  # Queues or pools have changed, and what hangs on them was not redone yet
    grounds: int = 0  # rises when capacity was added or a queue edited: who lost pods may try again

    @property
    def key(self) -> str:
        return self.kind


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
    Workload,
    Pod,
)

E = TypeVar("E", bound=Entity)


class Table(Generic[E]):
    """Entities of one kind by key; knows which changed."""

    def __init__(self, changes: dict[str, Entity | None]) -> None:
        self._rows: dict[str, E] = {}
        self._changes = changes

    def __iter__(self) -> Iterator[E]:
        return iter(self._rows.values())

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: str) -> bool:
        return key in self._rows

    def get(self, key: str) -> E | None:
        return self._rows.get(key)

    def put(self, entity: E) -> str:
        """Add an entity, or say that one has changed; its key."""
        key = entity.key
        self._rows[key] = entity
        self._changes[key] = entity
        return key

    def drop(self, key: str) -> None:
        del self._rows[key]
        self._changes[key] = None

    def clear(self) -> None:
        for key in self._rows:
            self._changes[key] = None
        self._rows.clear()

    def discard(self, key: str) -> None:
        if key in self._rows:
            self.drop(key)

    def restore(self, entity: E) -> None:
        """Put back what was committed before."""
        self._rows[entity.key] = entity
