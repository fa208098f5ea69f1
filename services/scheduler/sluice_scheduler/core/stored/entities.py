"""Entities: what the ledger stores, each under a key of its own such as `node/<cluster>/<uid>`.

Those of pods and workloads, the accounts, are in accounts.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from sluice.decisions import Condition
from sluice.events import (
    CellConfig,
    NodeFacts,
    ObjectEvent,
    PoolFacts,
    QueueFacts,
)
from sluice.values import Resources


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


@dataclass(slots=True, kw_only=True)
class QueueEntity(Entity):
    """One of its kind for each queue."""

    queue: str

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.queue}"


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
class Promise(Entity):
    """A claim that was granted what its victims are about to leave."""

    kind: ClassVar[str] = "promise"
    claim: str  # the key of the pod or workload
    seq: int  # of its last eviction; those without victims may share a number
    queue: str
    pools: tuple[str, ...]  # of each part of the claim
    cost: tuple[tuple[str, str, str, int], ...]  # cluster, pool, resource, amount
    until_ms: int

    @property
    def made(self) -> tuple[int, str]:
        """Promises are kept in this order, and given up from its end."""
        return (self.seq, self.claim)

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.claim}"


@dataclass(slots=True, kw_only=True)
class History(QueueEntity):
    """What a queue has used, weighed by how long ago: only policies that look back keep one."""

    kind: ClassVar[str] = "history"
    time_ms: int
    used: dict[str, int]  # `cluster/pool/resource` → decayed amount


#: Before a key: the status of the thing, and not the thing itself. Alone: all statuses.
STATUS: Final = "status/"
#: A record by its offset, where nothing less can be blamed; and the pass behind a record.
RECORD: Final = "record/"
PASS: Final = "pass/"


@dataclass(slots=True, kw_only=True)
class Aside(Entity):
    """Something that is not worked on because that raised an exception; another core takes it up again."""

    kind: ClassVar[str] = "aside"
    what: str  # the key of a pod, an application, a queue…; or a status, a record, or the pass behind one
    name: str  # as people know it; empty: nobody does
    reason: str
    core_version: int
    since_ms: int
    stuck: bool = False  # it raised again even so

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.what}"


@dataclass(slots=True, kw_only=True)
class Deserved(Entity):
    """What each branch deserves, as it was worked out last: decisions go by it until the next time."""

    kind: ClassVar[str] = "deserved"
    #: By queue (an inner queue's own pods stand under its name and a slash) and `supply/resource`, in parts of a
    #: unit.
    amounts: dict[str, dict[str, int]]

    @property
    def key(self) -> str:
        return self.kind


@dataclass(slots=True, kw_only=True)
class Turn(Entity):
    """A claim whose turn has come and that did not fit. After its patience room is kept for it."""

    kind: ClassVar[str] = "turn"
    claim: str
    since_ms: int
    queue: str = ""  # the claim's
    pools: tuple[str, ...] = ()  # where room is kept for it; empty: nowhere yet
    cost: tuple[tuple[str, str, str, int], ...] = ()  # cluster, pool, resource, amount
    #: Whether its queues' limits let it in: before that the pools keep nothing for it.
    within: bool = False
    #: When it starts, by those who say when they end. It never rises: nobody's word puts the claim off. 0: unknown.
    start_ms: int = 0
    kept_ms: int = 0  # since when room is kept
    is_late: bool = False  # for it has waited for so long, and not because it comes first
    in_vain: int = 0  # how often room was kept until it was given up
    #: After room was given up, the pools keep room for nobody until then; behind a limit, its queue keeps none.
    rests_ms: int = 0
    served_ms: int = 0  # when it was let in out of turn
    #: After that no claim of its queue is late until then: by then the queue has had no more than it deserves.
    even_ms: int = 0

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.claim}"


@dataclass(slots=True, kw_only=True)
class LostWork(QueueEntity):
    """How much running time of a queue was lost: in all, and what others took in the last hour, by minute."""

    kind: ClassVar[str] = "lostwork"
    total_ms: int = 0
    recent: dict[str, int] = field(default_factory=dict)

    def add(self, now_ms: int, work_ms: int, *, by_others: bool) -> None:
        self.total_ms += work_ms
        if not by_others:
            return
        minute = now_ms // 60_000
        self.recent = {at: lost for at, lost in self.recent.items() if int(at) > minute - 60}
        self.recent[str(minute)] = self.recent.get(str(minute), 0) + work_ms

    def forget_old(self, now_ms: int) -> bool:
        """Leave out what is older than an hour; whether anything was."""
        minute = now_ms // 60_000
        kept = {at: lost for at, lost in self.recent.items() if int(at) > minute - 60}
        is_less = len(kept) < len(self.recent)
        self.recent = kept
        return is_less

    def last_hour_ms(self, now_ms: int) -> int:
        minute = now_ms // 60_000
        return sum(lost for at, lost in self.recent.items() if int(at) > minute - 60)


#: Over so many minutes a queue's drain is measured.
DRAIN_MINUTES: Final = 10


@dataclass(slots=True, kw_only=True)
class Drain(QueueEntity):
    """How fast pods of a queue have ended lately, by minute of the cell's time."""

    kind: ClassVar[str] = "drain"
    since_ms: int = 0  # the end from which the others are counted
    ends: dict[str, int] = field(default_factory=dict)

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
    labelling: str = ""  # the binding that a decision writes, until it shows
    labelling_seq: int = 0  # of that decision, until it is answered
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
    asked_ms: int = 0  # when that was decided, or a list that answers it began
    answering: bool = False  # one has begun
    synced: tuple[str, ...] = ()  # kinds whose requested SYNC has ended
    open_syncs: dict[str, str] = field(default_factory=dict)  # kind → id of the SYNC that has begun
    live: bool = False  # decisions may be made about it

    @property
    def key(self) -> str:
        return f"{self.kind}/{self.name}"


#: After the key of a QueueJob: the report of the job itself, beside that of its DynamicWorkload.
JOB_REPORT: Final = "/job"


@dataclass(slots=True, kw_only=True)
class Report(Entity):
    """The last status written for an object, to write only what has changed."""

    kind: ClassVar[str] = "report"
    about: str  # `queue/<name>`, `resourcepool/<name>`, or the key of a workload
    told_ms: int
    figures: dict[str, Any]
    conditions: tuple[Condition, ...]
    retry: bool = False  # it could not be written, or may have been lost

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
    #: What the last pass left to be done beyond its budget: "" (nothing), "serve" or "reclaim".
    unfinished: str = ""
    #: So many claimants, in their order, an unfinished search for victims has tried in vain: it goes on behind them.
    in_vain: int = 0
    #: So often all claimants were tried in vain, but not with each claim at each place: others are tried next.
    rounds: int = 0

    @property
    def goes_on(self) -> bool:
        """Whether the last pass has left something to be done, or to be tried."""
        return bool(self.unfinished or self.in_vain)

    @property
    def key(self) -> str:
        return self.kind
