"""Queue and ResourcePool: who shares what."""

# ruff: noqa: RUF012  (pydantic copies mutable defaults)

from typing import Annotated, Final, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sluice.crds.values import (
    LABEL_PATTERN,
    Amounts,
    Cell,
    LabelSelector,
    Model,
    Rule,
    Seconds,
    Shown,
    Status,
    WorkSeconds,
    rules,
)
from sluice.quantities import is_percent, parse_quantity
from sluice.vocabulary import DEFAULT_CELL

POOLS_MAX: Final = 64

_CEL_LIMIT_COVERS_GUARANTEE: Final = (
    "!has(self.limit) || !has(self.guaranteed) || self.guaranteed.all(r, !(r in self.limit)"
    " || string(self.guaranteed[r]).endsWith('%') != string(self.limit[r]).endsWith('%')"
    " || !isQuantity(string(self.guaranteed[r]).replace('%', ''))"
    " || !isQuantity(string(self.limit[r]).replace('%', ''))"
    " || quantity(string(self.guaranteed[r]).replace('%', ''))"
    ".compareTo(quantity(string(self.limit[r]).replace('%', ''))) <= 0)"
)
_LIMIT_COVERS_GUARANTEE: Final = Rule(
    rule=_CEL_LIMIT_COVERS_GUARANTEE,
    message="limit must be at least guaranteed in every resource: raise limit or lower guaranteed",
)


class Bounds(Model):
    """What is guaranteed and what is the most. Percentages are of what a pool has now."""

    model_config = ConfigDict(json_schema_extra=rules(_LIMIT_COVERS_GUARANTEE))

    guaranteed: Amounts = {}
    """What the queue gets before any other gets more than its own guarantee, as far as it asks for it.
    Resource to quantity or percentage. Children's guarantees may not exceed their parent's; a queue that
    names no guarantee of a resource is guaranteed what its children are together."""
    limit: Amounts = {}
    """The most that the queue and all below it may hold at a time. Resource to quantity or percentage; a
    resource not named is not limited."""

    @model_validator(mode="after")
    def _limit_covers_guarantee(self) -> Self:
        for resource in sorted(self.guaranteed.keys() & self.limit.keys()):
            guaranteed, limit = self.guaranteed[resource], self.limit[resource]
            if is_percent(guaranteed) != is_percent(limit):
                continue  # comparable only against a pool's capacity
            if parse_quantity(guaranteed.rstrip("%")) > parse_quantity(limit.rstrip("%")):
                raise ValueError(
                    f"guaranteed {resource} {guaranteed} is more than its limit {limit}: "
                    "raise limit or lower guaranteed"
                )
        return self


class NamespaceBinding(Model):
    """Namespaces whose pods may be charged to this queue or one below it: those named and those selected."""

    names: Annotated[list[Annotated[str, Field(max_length=63)]], Field(max_length=1024)] = []
    """Namespaces by name."""
    selector: LabelSelector | None = None
    """Namespaces by their labels."""


class AccessList(Model):
    """Who may use the queue; with nobody listed, whoever may create pods in its namespaces."""

    users: Annotated[list[str], Field(max_length=1024)] = []
    """User names, service accounts among them (system:serviceaccount:NAMESPACE:NAME)."""
    groups: Annotated[list[str], Field(max_length=1024)] = []
    """Groups of users."""


class Reclaim(Model):
    """How pods of this queue are taken back when what they hold is owed to other queues."""

    enabled: bool = True
    """Whether they may be taken back at all; true if absent."""
    grace_seconds: Seconds = 0
    """How long an asked-for eviction may be held up, by a disruption budget for example, before the pod is
    deleted."""
    minimum_run_time_seconds: Seconds = 0
    """A pod that has run for less is not taken back."""
    lost_work_per_hour_seconds: WorkSeconds | None = None
    """How much running time others may take from the queue within an hour: each pod that is taken back counts
    for as long as it has run, or since it last saved its work (annotation sluice.dev/saved-at). Absent: as
    much as it comes to. What exceeds capacity or a limit is taken back in any case, and counts too; what the
    queue loses by its own priorities and deadlines does not."""


class Reservation(Model):
    """What is kept for a claim of this queue that has waited for long, so that large ones start too."""

    enabled: bool = True
    """Whether anything is kept for its claims at all; true if absent."""
    patience_seconds: Seconds | None = None
    """When the turn of a claim has come and it has not fitted for so long, whatever becomes free is kept for
    it until it fits. Absent: the cell's, five minutes unless an administrator has set another."""


_CELL_ON_ROOTS: Final = "cell stands on root queues only: remove cell (it is the root's) or parent"


class QueueSpec(Bounds):
    """A node of the tenant tree: its share, and whose pods are charged to it. Quantities in `guaranteed` and
    `limit` are sums over the cell's pools, percentages hold in each pool."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            _LIMIT_COVERS_GUARANTEE,
            Rule(
                rule="!has(self.cell) || !has(self.parent)",
                message=_CELL_ON_ROOTS,
                reason="FieldValueForbidden",
            ),
            Rule(
                rule=f"(has(self.cell) ? self.cell : '{DEFAULT_CELL}') == "
                f"(has(oldSelf.cell) ? oldSelf.cell : '{DEFAULT_CELL}')",
                message="cell cannot be changed: create another queue in that cell and move the namespaces",
                reason="FieldValueForbidden",
            ),
        )
    )

    cell: Cell | None = None
    """The fair-share domain of the tree below this root queue; `default` if absent. Immutable, and only on
    root queues."""
    parent: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """The queue above; absent on a root queue. Queues may stand on 32 levels; one that stands deeper can't be
    used."""
    weight: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    """Entitles to a share in proportion to the siblings' weights; 1 if absent. Whole numbers, so that shares
    are exact."""
    pools: Annotated[dict[str, Bounds], Field(max_length=POOLS_MAX)] = {}
    """Bounds by ResourcePool. A percentage here replaces the general one in that pool; a quantity here holds
    beside the general one."""
    namespaces: NamespaceBinding = NamespaceBinding()
    """Namespaces bound to this queue. The actuator labels them; an administrator's label counts only for what
    is selected here or by a queue above."""
    acl: AccessList = AccessList()
    """Who may use the queue and those below it. Kept for later: nobody is refused by it yet."""
    policy: Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)] | None = None
    """The policy that orders what waits in and below this queue: drf, fifo, priority, usage-drf or the name
    of a plug-in. Absent: the parent's, at a root the cell's."""
    ordering: Literal["strictFifo", "bestEffortFifo"] = "bestEffortFifo"
    """Whether a claim that does not fit holds up those behind it (strictFifo) or is passed by them
    (bestEffortFifo, also if absent)."""
    reclaim: Reclaim = Reclaim()
    """How pods are taken back from this queue for others."""
    tenure_seconds: Seconds | None = None
    """How long a pod, or a gang, that lifts this queue above what it deserves is left in place while others
    who deserve the room wait for it. Absent: the cell's, an hour unless an administrator has set another."""
    reservation: Reservation = Reservation()
    """Whether and when room is kept for what this queue waits for."""
    start_deadline_seconds: Seconds | None = None
    """What an application of this queue was granted and none of its pods has come for in so long goes to
    others, and the application back into its queue. 0: never. Absent: the cell's, ten minutes unless an
    administrator has set another."""
    preemption: Literal["never", "lowerPriority"] = "never"
    """Whether a claim may push out pods of strictly lower priority inside this queue; never if absent."""
    oversubscription: Literal["allowed", "never"] = "allowed"
    """Whether the queue may use what others leave idle: allowed if absent. With never, it gets what is
    guaranteed to it and no more: a resource without a guarantee it does not get at all."""

    @model_validator(mode="after")
    def _cell_stands_on_roots(self) -> Self:
        if self.cell is not None and self.parent is not None:
            raise ValueError(_CELL_ON_ROOTS)
        return self


class QueueStatus(Status):
    """What the queue holds, asks for and deserves. What it holds is keyed by `pool/resource`. What it asks for
    and deserves is keyed by `resource`, or by `supply/resource` where the pools name a supply."""

    usage: Shown = {}
    """What its pods and those of the queues below hold."""
    demand: Shown = {}
    """Usage and what is waited for. What may go to several supplies is shown in the largest of them."""
    fair_share: Shown = {}
    """What it deserves: what it would hold if the dominant shares of all queues rose together, by weight and
    level by level, from their guarantees upward and within their limits, until they have what they ask for or
    nothing is left. Decisions go by the same figures."""
    dominant_share: str | None = None
    """The largest, over supplies and resources, of usage by capacity, divided by its weight, as a decimal."""
    dominant_resource: str | None = None
    """The `resource` or `supply/resource` where that is."""
    pending: int = 0
    """Pods that wait behind the gate."""
    running: int = 0
    """Pods admitted and not finished."""
    pending_workloads: int = 0
    """Applications that wait to be admitted; none of their pods need exist."""
    admitted_workloads: int = 0
    """Applications that were admitted and have not ended."""
    lost_work_seconds: int = 0
    """Running time that was lost so far because pods of this queue were taken back: of each as long as it had
    run, or since it last saved its work."""
    lost_work_last_hour_seconds: int = 0
    """What of it others took within the last hour, which reclaim.lostWorkPerHourSeconds bounds."""


class ResourcePoolSpec(Model):
    """Nodes that are shared as one supply. Pools must not overlap."""

    cell: Annotated[
        Cell,
        Field(
            json_schema_extra=rules(
                Rule(
                    rule="self == oldSelf",
                    message="cell cannot be changed: create another ResourcePool in that cell",
                    reason="FieldValueForbidden",
                )
            )
        ),
    ] = DEFAULT_CELL
    """The fair-share domain that the pool's nodes belong to. Immutable."""
    node_selector: Annotated[dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)] = {}
    """Labels that a node must have to belong to the pool; empty: every node."""
    supply: Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)] | None = None
    """What the pool is part of when shares are measured. Pools that name the same supply count as one; those
    that name none are one supply too. Name one where a resource of this pool cannot take the place of the
    same resource elsewhere, such as GPUs of another type. What fits is judged by each pool in any case."""


class ResourcePoolStatus(Status):
    """What the pool's nodes offer."""

    nodes: int = 0
    """Nodes in the pool that can take pods."""
    capacity: Shown = {}
    """What they can allocate, less what unmanaged pods use."""
    reserved: Shown = {}
    """What admitted pods hold."""
    unmanaged: Shown = {}
    """What pods that Sluice does not gate use there."""


class Queue(Model):
    """A node of the tenant tree, whose pods share the cell's pools with its siblings' by Dominant Resource
    Fairness."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule="self.metadata.name.size() <= 63",
                message="a queue's name must have at most 63 characters: it is written into labels",
            ),
            Rule(
                rule="!has(self.spec.parent) || self.spec.parent != self.metadata.name",
                message="a queue cannot be its own parent: name the queue above, or none",
                fieldPath=".spec.parent",
            ),
        )
    )

    spec: QueueSpec
    status: QueueStatus | None = None


class ResourcePool(Model):
    """Nodes chosen by label, whose capacity is summed live from what they can allocate."""

    spec: ResourcePoolSpec
    status: ResourcePoolStatus | None = None
