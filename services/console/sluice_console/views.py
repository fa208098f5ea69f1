"""What the ledger says of queues, in the shape in which people ask for it. Pure: entities in, views out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sluice.values import Resources
from sluice.vocabulary import DEFAULT_CELL

from sluice_console.redis_reader import Entity, Snapshot

#: What `queue_views` reads of a ledger.
KINDS: Final = ("cell", "queue", "report", "resourcepool")
#: And what shows a queue's namespaces, and what is wrong with their bindings.
NAMESPACES: Final = "namespace"

_AS_EXPECTED: Final = "AsExpected"
#: What the cell's settings say where a Queue does not.
TENURE: Final = "tenure_ms"
PATIENCE: Final = "patience_ms"
START_DEADLINE: Final = "start_deadline_ms"
#: What the reports of Queues and ResourcePools are about.
_ADMINISTERED: Final = ("queue/", "resourcepool/")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionView:
    type: str
    status: str
    reason: str
    message: str
    since_ms: int

    @property
    def matters(self) -> bool:
        return self.reason != _AS_EXPECTED

    @property
    def word(self) -> str:
        return self.type if self.status == "True" else f"not {self.type}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A queue's status as the scheduler last reported it. Amounts are in base units: usage by `pool/resource`,
    the others by `resource` or `supply/resource`."""

    usage: Resources
    demand: Resources
    fair_share: Resources
    dominant_share: str  # weighted
    dominant_resource: str
    pending: int  # pods
    running: int
    pending_workloads: int
    admitted_workloads: int
    lost_work_ms: int
    lost_work_hour_ms: int
    conditions: tuple[ConditionView, ...]

    @property
    def has_applications(self) -> bool:
        return bool(self.pending_workloads or self.admitted_workloads)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    name: str
    cell: str
    facts: Mapping[str, Any]  # the spec, after validation
    config: Mapping[str, Any]  # its cell's settings
    figures: Figures | None  # None: not reported yet

    @property
    def parent(self) -> str:
        return str(self.facts["parent"])

    @property
    def weight(self) -> int:
        return int(self.facts["weight"])

    def says(self, time: str) -> bool:
        return self.facts[time] is not None

    def seconds(self, time: str) -> int:
        """That which is in force: the Queue's own, or else its cell's."""
        return int(self.facts[time] if self.says(time) else self.config[time]) // 1000

    @property
    def concerns(self) -> tuple[ConditionView, ...]:
        """Conditions that somebody should look at."""
        return tuple(c for c in self.figures.conditions if c.matters) if self.figures else ()


def queue_views(snapshots: Sequence[Snapshot]) -> list[QueueView]:
    """Every Queue once, in its own cell, by name. Each cell's ledger knows the Queues of all."""
    found: dict[str, QueueView] = {}
    for snapshot in snapshots:
        queues = {q["name"]: q for q in snapshot.of("queue") if q["cluster"] == snapshot.home}
        reports = {report["about"]: report for report in snapshot.of("report")}
        for name, queue in queues.items():
            report = reports.get(f"queue/{name}")
            own_cell = _cell_of(name, queues)
            if report or own_cell == snapshot.cell or name not in found:
                found[name] = QueueView(
                    name=name,
                    cell=own_cell,
                    facts=queue["facts"],
                    config=snapshot.about["config"],
                    figures=_figures(report) if report else None,
                )
    return [found[name] for name in sorted(found)]


def roots_first(views: Sequence[QueueView]) -> Iterator[tuple[int, QueueView]]:
    """Each queue after the one above it, with its depth. What stands under nobody known is a root."""
    by_parent: dict[str, list[QueueView]] = {}
    names = {view.name for view in views}
    for view in views:
        by_parent.setdefault(view.parent if view.parent in names else "", []).append(view)
    shown: set[str] = set()

    def walk(children: Iterable[QueueView], depth: int) -> Iterator[tuple[int, QueueView]]:
        for view in children:
            if view.name not in shown:
                shown.add(view.name)
                yield depth, view
                yield from walk(by_parent.get(view.name, ()), depth + 1)

    yield from walk(by_parent.get("", ()), 0)
    yield from walk(views, 0)  # those that run in a circle reach no root


def namespaces_of(queue: str, snapshots: Iterable[Snapshot]) -> list[str]:
    """The namespaces that are bound to a queue, by cluster where it is not the cell's home."""
    return sorted(
        {
            ("" if n["cluster"] == snapshot.home else f"{n['cluster']}/")
            + n["name"]
            + ("" if n["managed"] else " (not managed)")
            for snapshot in snapshots
            for n in snapshot.of(NAMESPACES)
            if n["queue"] == queue
        }
    )


def capacity_of(snapshots: Iterable[Snapshot]) -> Resources:
    """What the pools of all cells can hold, by `pool/resource`."""
    return {
        f"{report['about'].partition('/')[2]}/{resource}": amount
        for snapshot in snapshots
        for report in snapshot.of("report")
        if report["about"].startswith("resourcepool/")
        for resource, amount in report["figures"]["capacity"].items()
    }


def supplies_of(snapshots: Iterable[Snapshot]) -> dict[str, str]:
    """Pool → the supply that it is part of; empty: the one of all pools that name none."""
    return {
        pool["name"]: pool["facts"].get("supply", "")
        for snapshot in snapshots
        for pool in snapshot.of("resourcepool")
        if pool["cluster"] == snapshot.home
    }


def by_supply(by_pool: Resources, supplies: Mapping[str, str]) -> Resources:
    """Amounts by `pool/resource`, summed as shares are measured: by `resource` or `supply/resource`."""
    sums: Resources = {}
    for key, amount in by_pool.items():
        pool, _, resource = key.partition("/")
        supply = supplies.get(pool, "")
        kind = f"{supply}/{resource}" if supply else resource
        sums[kind] = sums.get(kind, 0) + amount
    return sums


def complaints_of(snapshot: Snapshot) -> Iterator[str]:
    """What is wrong with Queues, ResourcePools and namespaces' bindings, a sentence each.

    What an application waits for, or lacks, is its author's business; its DynamicWorkload says it.
    """
    for report in snapshot.of("report"):
        if not report["about"].startswith(_ADMINISTERED):
            continue
        for condition in _conditions(report):
            if condition.matters:
                yield f"{report['about'].replace('/', ' ', 1)}: {condition.word}: {condition.message}"
    for namespace in snapshot.of(NAMESPACES):
        if namespace["noticed"]:
            place = "" if namespace["cluster"] == snapshot.home else f"cluster {namespace['cluster']}: "
            yield place + namespace["noticed"]


def as_json(view: QueueView) -> dict[str, Any]:
    """With the names that a Queue's status has, but amounts as numbers in base units."""
    shown: dict[str, Any] = {
        "name": view.name,
        "cell": view.cell,
        "parent": view.parent,
        "weight": view.weight,
        "reported": view.figures is not None,
    }
    if figures := view.figures:
        shown |= {
            "dominantShare": figures.dominant_share,
            "dominantResource": figures.dominant_resource,
            "usage": figures.usage,
            "demand": figures.demand,
            "fairShare": figures.fair_share,
            "pending": figures.pending,
            "running": figures.running,
            "pendingWorkloads": figures.pending_workloads,
            "admittedWorkloads": figures.admitted_workloads,
            "lostWorkSeconds": figures.lost_work_ms // 1000,
            "lostWorkLastHourSeconds": figures.lost_work_hour_ms // 1000,
            "conditions": [
                {
                    "type": c.type,
                    "status": c.status,
                    "reason": c.reason,
                    "message": c.message,
                    "sinceMs": c.since_ms,
                }
                for c in figures.conditions
            ],
        }
    return shown


def in_force(view: QueueView) -> dict[str, int]:
    """With the names that they have in a Queue's spec, whether they stand there or not."""
    return {
        "tenureSeconds": view.seconds(TENURE),
        "patienceSeconds": view.seconds(PATIENCE),
        "startDeadlineSeconds": view.seconds(START_DEADLINE),
    }


def _figures(report: Entity) -> Figures:
    figures = report["figures"]
    return Figures(
        usage=figures["usage"],
        demand=figures["demand"],
        fair_share=figures["fair_share"],
        dominant_share=figures["dominant_share"],
        dominant_resource=figures["dominant_resource"],
        pending=figures["pending"],
        running=figures["running"],
        # Earlier versions did not report these.
        pending_workloads=figures.get("pending_workloads", 0),
        admitted_workloads=figures.get("admitted_workloads", 0),
        lost_work_ms=figures.get("lost_work_ms", 0),
        lost_work_hour_ms=figures.get("lost_work_hour_ms", 0),
        conditions=_conditions(report),
    )


def _conditions(report: Entity) -> tuple[ConditionView, ...]:
    return tuple(ConditionView(**condition) for condition in report["conditions"])


def _cell_of(name: str, queues: Mapping[str, Entity]) -> str:
    """The cell of the root above; queues that run in a circle have none, and count with the default."""
    above: set[str] = set()
    while name in queues and name not in above:
        above.add(name)
        facts = queues[name]["facts"]
        if not facts["parent"]:
            return str(facts["cell"] or DEFAULT_CELL)
        name = facts["parent"]
    return DEFAULT_CELL
