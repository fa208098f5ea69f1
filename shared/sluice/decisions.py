"""The decision log, `sluice.decisions.v1`: everything that the scheduler decides, and nothing else.

`seq` has no holes within a cell. The epoch of the writer is a header and no part of the record, so that a
replay under another epoch gives the same bytes. Statuses stand between the decisions and have no place in their
sequence (seq 0): they may be told again, and in other words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from sluice.applications import BY_HAND
from sluice.values import Resources

WorkloadPhase: TypeAlias = Literal["Pending", "Running", "Growing", "Reclaiming", "Finished", "Failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    type: ClassVar[str]

    seq: int  # 0 of a status
    cell: str
    cluster: str
    time_ms: int
    reason: str  # a code, CamelCase, for machines
    sentence: str  # for people

    @property
    def id(self) -> str:
        return f"{self.cell}/{self.seq or f'{self.subject}/{self.time_ms}/{self.reason}'}"

    @property
    def subject(self) -> str:
        return self.type


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectDecision(Decision):
    """A decision about one Kubernetes object, and only about the one with this uid."""

    name: str
    uid: str
    namespace: str = ""

    @property
    def subject(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)

    @property
    def kind(self) -> str:
        return "pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status(ObjectDecision):
    """What people are shown of an object. Nothing is decided by it, so it has no seq; of the statuses of one
    object the last one under the latest epoch counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admit(ObjectDecision):
    """Take the gate off a pod and narrow it to its pool's nodes."""

    type: ClassVar[str] = "admit"
    queue: str
    pool: str
    node_selector: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(ObjectDecision):
    """Take a pod's share back: by the eviction API until `deadline_ms`, then by deletion."""

    type: ClassVar[str] = "evict"
    queue: str
    deadline_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmitWorkload(ObjectDecision):
    """Let an application start: its pod sets' minima are reserved, whether or not their pods exist yet."""

    type: ClassVar[str] = "admitworkload"
    queue: str
    pools: dict[str, str]  # by pod set
    reserved: dict[str, int]  # pods by pod set
    application: str = BY_HAND  # its kind
    suspendable: bool = False  # by its own field; else an annotation says that it is released

    @property
    def kind(self) -> str:
        return "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictWorkload(ObjectDecision):
    """An application goes back to its queue as a whole. If nothing suspends it, or its operator takes longer
    than until `deadline_ms`, its pods are evicted by decisions of their own."""

    type: ClassVar[str] = "evictworkload"
    queue: str
    deadline_ms: int
    application: str = BY_HAND
    suspendable: bool = False

    @property
    def kind(self) -> str:
        return "workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPodSet:
    """A pod set as its DynamicWorkload shows it."""

    name: str
    count: int
    min_count: int
    max_count: int | None
    requests: Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateWorkload(Status):
    """Make the DynamicWorkload that shows what is known of an application; `name` is its own."""

    type: ClassVar[str] = "createworkload"
    application: str  # the application's kind; `uid` is the application's too
    application_name: str
    queue: str
    priority: int
    priority_class: str
    pod_sets: tuple[ShownPodSet, ...]
    application_spec: dict[str, Any] = field(default_factory=dict)  # what of its spec that was read from

    @property
    def kind(self) -> str:
        return "dynamicworkload"


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedPods:
    """How far a pod set is."""

    name: str
    desired: int
    admitted: int  # open, or still to come with room kept for them
    running: int
    taken: int  # back from it


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatePod(ObjectDecision):
    """Make a pod of a QueueJob from its template; `name` is the pod's, `uid` the job's."""

    type: ClassVar[str] = "createpod"
    job: str
    queue: str
    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(ObjectDecision):
    """Clean up what nobody is left to use: a pod behind its gate, or a DynamicWorkload whose application had
    no object (then `uid` is what the application was called by)."""

    type: ClassVar[str] = "delete"
    about: Literal["pod", "dynamicworkload"]

    @property
    def kind(self) -> str:
        return self.about


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNamespace(ObjectDecision):
    """Bind a namespace to the queue that selects it; an empty `queue` takes the label off."""

    type: ClassVar[str] = "labelnamespace"
    queue: str

    @property
    def kind(self) -> str:
        return "namespace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """As in Kubernetes; `since_ms` becomes lastTransitionTime."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQueue(Status):
    """A Queue's status. Amounts are in base units: what is used by `pool/resource`, what is asked for and
    deserved by `resource`, or `supply/resource` where the pools name a supply."""

    type: ClassVar[str] = "reportqueue"
    generation: int
    usage: Resources
    demand: Resources
    fair_share: Resources
    dominant_share: str  # weighted, four decimals
    dominant_resource: str  # `resource` or `supply/resource`, empty while nothing is used
    pending: int  # pods, as are those that run
    running: int
    conditions: tuple[Condition, ...]
    pending_workloads: int = 0  # applications, as are those that were admitted
    admitted_workloads: int = 0
    lost_work_ms: int = 0  # running time that was taken from it by taking pods back, ever
    lost_work_hour_ms: int = 0  # and within the last hour

    @property
    def kind(self) -> str:
        return "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPool(Status):
    """A ResourcePool's status."""

    type: ClassVar[str] = "reportpool"
    generation: int
    nodes: int
    capacity: Resources  # what may be reserved: allocatable of its nodes, less what unmanaged pods hold
    reserved: Resources
    unmanaged: Resources
    conditions: tuple[Condition, ...]

    @property
    def kind(self) -> str:
        return "resourcepool"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportWorkload(Status):
    """A DynamicWorkload's status; `uid` is that of its application."""

    type: ClassVar[str] = "reportworkload"
    generation: int
    resource_version: int = 0  # at which it was last seen, which saves reading it first; 0: unknown
    phase: WorkloadPhase
    pod_sets: tuple[GrantedPods, ...]
    reclaimed: dict[str, int]  # pods by pod set that have succeeded and will not be replaced
    why: str  # it waits, or was taken back; empty: neither
    conditions: tuple[Condition, ...]
    position: int | None = None  # in its queue, from 1; None: nothing of it stands in line
    eta_ms: int | None = None  # when it is expected to be served; None: nothing to go by

    @property
    def kind(self) -> str:
        return "dynamicworkload"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportJob(Status):
    """A QueueJob's status."""

    type: ClassVar[str] = "reportjob"
    generation: int
    phase: WorkloadPhase
    active: int
    running: int
    succeeded: int
    failed: int
    start_ms: int  # 0: not yet
    end_ms: int
    conditions: tuple[Condition, ...]

    @property
    def kind(self) -> str:
        return "queuejob"


#: What is written for people to see.
Report: TypeAlias = ReportQueue | ReportPool | ReportWorkload | ReportJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice(ObjectDecision):
    """Tell the people who look at an object (as a Kubernetes Event) what is wrong and what to do."""

    type: ClassVar[str] = "notice"
    about: str  # the object's kind: pod, namespace

    @property
    def kind(self) -> str:
        return self.about


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(Decision):
    """Answer once nothing older is in flight; from then on drop whatever carries an older epoch."""

    type: ClassVar[str] = "fence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resync(Decision):
    """Ask a cluster's watcher to list every kind again, for this cell."""

    type: ClassVar[str] = "resync"


DECISION_TYPES: tuple[type[Decision], ...] = (
    Admit,
    Evict,
    AdmitWorkload,
    EvictWorkload,
    CreateWorkload,
    ReportWorkload,
    ReportJob,
    CreatePod,
    Delete,
    LabelNamespace,
    ReportQueue,
    ReportPool,
    Notice,
    Fence,
    Resync,
)
