"""The input log, `sluice.events.v1`: everything that the scheduler may react to, and nothing else.

Object changes come from the watchers, outcomes from the actuators, ticks from the watchers' clocks, and
CONFIG and REBUILD from the scheduler's shell. Each record carries its time, so the core needs no clock.

A scheduling pass follows each record, except one marked `more`: its producer knew that another record of the
same moment comes right behind it (several changes read at once, the body of a SYNC).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from sluice.applications import BY_HAND, listed_as
from sluice.chain import BEGINNING
from sluice.values import NamespaceSelector, Resources

Change: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]
Result: TypeAlias = Literal[
    "Applied", "AlreadyApplied", "Superseded", "Conflict", "Gone", "Rejected", "Failed"
]
#: Resource → amount as its author wrote it ("8", "64Gi", "50%").
Amounts: TypeAlias = dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    type: ClassVar[str]

    time_ms: int
    cluster: str
    more: bool = False

    @property
    def id(self) -> str:
        raise NotImplementedError

    @property
    def subject(self) -> str:
        """The object that the record is about, for people: `pod/ns/name`."""
        return self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent(Event):
    """A Kubernetes object as it was at `resource_version`."""

    change: Change
    uid: str
    name: str
    namespace: str = ""
    resource_version: int

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.uid}/{self.resource_version}/{self.change}"

    @property
    def subject(self) -> str:
        return "/".join(part for part in (self.type, self.namespace, self.name) if part)

    @property
    def listed_as(self) -> str:
        """What a SYNC calls this kind."""
        return self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """What becomes of a minimum that was admitted and does not come up in time."""

    deadline_ms: int  # after its admission
    hard: bool = True  # it is put back into its queue; else it goes on with what runs


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """What counts of a managed pod."""

    requests: Resources
    created_ms: int
    queue: str = ""  # the pod's own queue label; empty: its namespace's binding
    priority: int = 0
    gated: bool = False  # Sluice's gate is still on
    decision: str = ""  # `<epoch>.<seq>` of the decision that opened it
    node: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    phase: str = "Pending"
    deleting: bool = False
    owner: str = ""  # uid of its controller, if an application may stand behind that
    workload: str = ""  # where no controller leads to one: the application or pod group that its labels name
    pod_set: str = ""  # which of the application's pod sets
    group_size: int = 0  # of a pod group: so many pods are admitted together
    gang: Gang | None = None  # of a pod group
    saved_ms: int = 0  # when it last saved its work, as it says itself; 0: it does not say
    ends_in_ms: int = 0  # it ends so long after its start at the latest; 0: it does not say
    claims_devices: bool = False  # by DRA's resourceClaims, which are not counted

    @property
    def finished(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PodEvent(ObjectEvent):
    """A pod of a bound namespace. A pod that changes cells ends as DELETED in its former one."""

    type: ClassVar[str] = "pod"
    pod: PodFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSetFacts:
    """Pods of one application that are alike."""

    name: str
    count: int
    min_count: int  # admitted together with the other pod sets' minima, or not at all
    max_count: int | None = None
    completions: int | None = None  # pods that must succeed; absent: no finished pod is replaced
    succeeded: int = 0  # pods that have, as far as the application counts them itself
    requests: Resources = field(default_factory=dict)
    node_selector: dict[str, str] = field(default_factory=dict)
    replica_size: int = 1  # so many pods are one replica: none of them is of use without the others


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFacts:
    """When a QueueJob's failures are too many, and how long it waits after one."""

    restart_limit: int | None  # of one pod; None: no bound of its own
    backoff_limit: int  # of all
    backoff_ms: int  # doubles with each failure in a row


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """What counts of an application, or of a DynamicWorkload that stands for one of another kind."""

    pod_sets: tuple[PodSetFacts, ...]
    created_ms: int
    queue: str = ""  # its own queue label; empty: its namespace's binding
    priority: int = 0
    finished: bool = False  # its application has ended: it holds and wants nothing
    failed: bool = False  # and so it ended
    generation: int = 0
    problem: str = ""
    kind: str = BY_HAND
    priority_class: str = ""  # whose value goes before `priority`
    released: bool = False  # nothing holds it back but its pods' gates
    suspendable: bool = False  # by a field of its own; else it says in an annotation that it was released
    decision: str = ""  # `<epoch>.<seq>` of the decision that released or suspended it
    controller: str = ""  # uid of the application that controls it: its pods are charged to that one
    as_pod_set: str = ""  # which of the controller's pod sets its pods are; empty: what they say themselves
    gang: Gang | None = None
    job: JobFacts | None = None  # of a QueueJob, whose pods Sluice makes itself
    replaces_failed: bool = False  # a failed pod keeps its share for the one that replaces it
    application_spec: dict[str, Any] = field(default_factory=dict)  # what of its spec all this was read from


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadEvent(ObjectEvent):
    """An application. Each kind is listed on its own: a SYNC of one says nothing about the others."""

    type: ClassVar[str] = "workload"
    workload: WorkloadFacts

    @property
    def listed_as(self) -> str:
        return listed_as(self.workload.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    allocatable: Resources
    labels: dict[str, str] = field(default_factory=dict)
    schedulable: bool = True  # ready and not cordoned


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeEvent(ObjectEvent):
    type: ClassVar[str] = "node"
    node: NodeFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class NamespaceEvent(ObjectEvent):
    type: ClassVar[str] = "namespace"
    managed: bool
    queue: str = ""  # the binding, as labelled
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityClassEvent(ObjectEvent):
    type: ClassVar[str] = "priorityclass"
    value: int
    global_default: bool = False  # of applications that name none


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFacts:
    """A Queue's spec after validation; `problem` says in a sentence why a spec could not be read."""

    cell: str = ""  # named on roots only
    parent: str = ""
    weight: int = 1
    guaranteed: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    guaranteed_by_pool: dict[str, Amounts] = field(default_factory=dict)
    limit_by_pool: dict[str, Amounts] = field(default_factory=dict)
    namespaces: NamespaceSelector = field(default_factory=NamespaceSelector)
    ordering: Literal["strictFifo", "bestEffortFifo"] = "bestEffortFifo"
    preemption: Literal["never", "lowerPriority"] = "never"
    reclaim: bool = True
    grace_ms: int = 0
    minimum_run_ms: int = 0
    lost_work_per_hour_ms: int | None = None  # so much running time may be taken from it in an hour
    tenure_ms: int | None = None  # absent, here and below: the cell's
    patience_ms: int | None = None
    reserves: bool = True  # whether anything is kept for a claim of it that has waited for long
    start_deadline_ms: int | None = None
    oversubscription: Literal["allowed", "never"] = "allowed"
    policy: str = ""
    created_ms: int = 0  # breaks ties between queues: the one created first is served first
    generation: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEvent(ObjectEvent):
    type: ClassVar[str] = "queue"
    queue: QueueFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolFacts:
    cell: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    supply: str = ""  # pools of one supply are one for shares
    generation: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolEvent(ObjectEvent):
    type: ClassVar[str] = "resourcepool"
    pool: PoolFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class UnmanagedEvent(Event):
    """What pods that Sluice does not manage hold of a pool, as a sum."""

    type: ClassVar[str] = "unmanaged"
    pool: str
    pods: int
    requests: Resources

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.pool}/{self.time_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncEvent(Event):
    """Marks a re-list. At its END the objects of the kind that were not seen are gone."""

    type: ClassVar[str] = "sync"
    phase: Literal["BEGIN", "END"]
    kind: str  # what the object events in between are listed as
    sync: str  # the same on BEGIN and END
    resource_version: int  # the list's own
    request: int = 0  # seq of the RESYNC decision that asked for it, if one did

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.kind}/{self.sync}/{self.phase}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TickEvent(Event):
    type: ClassVar[str] = "tick"

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.time_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeEvent(Event):
    """What really happened to a decision. The core takes the first for each seq. A status has one only if it
    could not be written."""

    type: ClassVar[str] = "outcome"
    seq: int  # 0 of a status
    epoch: str
    decision: str  # the decision's type
    result: Result
    message: str = ""
    uid: str = ""  # of the object that the decision was about

    @property
    def id(self) -> str:
        about = self.seq or f"{self.uid}/{self.decision}/{self.time_ms}"
        return f"{self.cluster}/{self.type}/{self.epoch}.{about}/{self.result}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellConfig:
    """What decisions depend on besides objects. It enters as records, so that a replay decides the same."""

    cell: str
    clusters: tuple[str, ...]
    kinds: tuple[str, ...]  # object kinds whose SYNC must end before anything is decided about a cluster
    policy: str
    core_version: int
    half_life_ms: int = 3_600_000  # of past use, where a policy looks back
    tenure_ms: int = 3_600_000  # so long a unit may stand above what its queue deserves
    patience_ms: int = 300_000  # after so long what becomes free is kept for whose turn it is
    reclaim_after_ms: int = 1_000  # a claim pushes nobody out before it has waited so long
    start_deadline_ms: int = 600_000  # what nobody has come for by then is given to others
    cells: tuple[str, ...] = ()  # all that the settings name; empty: this one alone

    @property
    def all_cells(self) -> tuple[str, ...]:
        return self.cells or (self.cell,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEvent(Event):
    type: ClassVar[str] = "config"
    config: CellConfig

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.config.cell}/{self.time_ms}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildEvent(Event):
    """The ledger begins here: state is empty; nothing is admitted until fences and re-lists are through."""

    type: ClassVar[str] = "rebuild"
    config: CellConfig
    next_seq: int
    reason: str
    previous: str = BEGINNING  # the hash of the last decision before it that counts

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.config.cell}/{self.next_seq}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAsideEvent(Event):
    """Work on something raised an exception at a record: from just before that record on it is set aside.

    The owner that met the exception writes this behind all that is there. Who steps the record later looks for
    these first; at their own place in the log they say nothing.
    """

    type: ClassVar[str] = "setaside"
    offset: int  # of the record
    what: str  # the key of a pod, an application, a queue…; or a status, the pass behind the record, or that
    reason: str

    @property
    def id(self) -> str:
        return f"{self.cluster}/{self.type}/{self.offset}/{self.what}"


EVENT_TYPES: tuple[type[Event], ...] = (
    PodEvent,
    WorkloadEvent,
    NodeEvent,
    NamespaceEvent,
    PriorityClassEvent,
    QueueEvent,
    PoolEvent,
    UnmanagedEvent,
    SyncEvent,
    TickEvent,
    OutcomeEvent,
    ConfigEvent,
    RebuildEvent,
    SetAsideEvent,
)
