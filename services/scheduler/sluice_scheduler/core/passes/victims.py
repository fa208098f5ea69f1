"""What can be taken back, in order: growth before gangs, lower priority before higher, newest first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim, pod_cost
from sluice_scheduler.core.state.application import Application, minimum_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that go together, with what is reserved for others of their gang."""

    leaf: Branch
    pods: list[Pod]
    cost: Cost
    priority: int
    admitted_ms: int
    application: Application | None = None
    growth: bool = False

    @property
    def order(self) -> tuple[bool, int, int, int, str]:
        newest = max((pod.seq for pod in self.pods), default=0)
        first = self.pods[0].uid if self.pods else ""
        return (not self.growth, self.priority, -self.admitted_ms, -newest, first)

    @property
    def is_whole(self) -> bool:
        """A gang that goes whole, or not at all."""
        return self.application is not None and not self.growth

    @property
    def pauses(self) -> bool:
        """Whether a pod of it could not be evicted just now."""
        return any(pod.retry_ms for pod in self.pods)

    def touches(self, dims: tuple[Dim, ...]) -> bool:
        return any(dim in dims for dim, _ in self.cost)


def units_of(state: State, leaf: Branch) -> list[Unit]:
    """What a leaf's pods can be taken back as, in order."""
    units: list[Unit] = []
    applications: dict[str, Application] = {}
    for key in sorted(state.holders.get(leaf.name, ())):
        pod = state.pod(key)
        if pod.evicting or not pod.pool or not state.is_live(pod.cluster):
            continue
        app = state.application_of(pod)
        if app is None or not app.admitted:
            units.append(Unit(leaf, [pod], pod_cost(pod), pod.facts.priority, pod.admitted_ms))
        else:
            applications[app.claim_key] = app
    for app in state.reserving.get(leaf.name, {}).values():
        applications[app.claim_key] = app
    for _, app in sorted(applications.items()):
        units += _of_application(state, leaf, app)
    return sorted((unit for unit in units if not unit.pauses), key=lambda unit: unit.order)


def _of_application(state: State, leaf: Branch, app: Application) -> list[Unit]:
    units: list[Unit] = []
    everybody: list[Pod] = []
    costs: list[Cost] = []
    workload = app.workload
    minima = {each.name: minimum_of(workload, each) for each in workload.facts.pod_sets} if workload else {}
    for name in _drivers_last(app):
        book = app.books[name]
        pods = sorted(map(state.pod, book.holding), key=lambda pod: (pod.admitted_ms, pod.seq, pod.uid))
        everybody += pods
        costs += [pod_cost(pod) for pod in pods]
        costs += [book.cost] * book.reserved
        minimum = minima.get(name, 0) if workload else app.group_size
        size = app.replica_size(name)
        for first in range(minimum, len(pods), size):
            replica = pods[first : first + size]
            priority = workload.priority if workload else replica[0].facts.priority
            cost = _total(pod_cost(pod) for pod in replica)
            units.append(Unit(leaf, replica, cost, priority, replica[-1].admitted_ms, app, growth=True))
    growth = sum(len(unit.pods) for unit in units)
    if growth < len(everybody) or any(book.reserved for book in app.books.values()):
        priority = workload.priority if workload else max(pod.facts.priority for pod in everybody)
        admitted_ms = workload.admitted_ms if workload else max(pod.admitted_ms for pod in everybody)
        units.append(Unit(leaf, everybody, _total(costs), priority, admitted_ms, app))
    return units


def _total(costs: Iterable[Cost]) -> Cost:
    total: dict[Dim, int] = {}
    add(total, chain.from_iterable(costs))
    return tuple(total.items())


def whole_of(state: State, app: Application, queue: str) -> Unit | None:
    """All that an application holds, as one unit."""
    leaf = state.forest.leaves.get(queue)
    units = _of_application(state, leaf, app) if leaf is not None else []
    return next((unit for unit in units if unit.is_whole), None)


def _drivers_last(app: Application) -> list[str]:
    """Its pod sets; a driver or head, of which there can be only one, outlives those that need it."""
    single = (
        {each.name for each in app.workload.facts.pod_sets if each.max_count == 1} if app.workload else ()
    )
    return sorted(app.books, key=lambda name: (name in single, name))
