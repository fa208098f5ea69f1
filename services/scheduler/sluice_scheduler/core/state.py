"""All that `step` reads and writes: the entities of one cell, and what is derived from them.

Entities are committed to the ledger as they change. The forest and the applications are not: they are
recomputed from the entities by `State.derive`, so they can never disagree with what was committed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from sluice.decisions import Admit, Decision
from sluice.events import CellConfig

from sluice_scheduler.core.applications import Application
from sluice_scheduler.core.claims import Claim, Cost, Part, cost_of, part
from sluice_scheduler.core.entities import (
    Cell,
    Cluster,
    Drain,
    Entity,
    History,
    Namespace,
    Node,
    Pod,
    Pool,
    PriorityClass,
    Promise,
    Queue,
    Report,
    Table,
    Tombstone,
    Unmanaged,
    Workload,
)
from sluice_scheduler.core.forest import Forest
from sluice_scheduler.core.kinship import Kinship
from sluice_scheduler.core.places import Places
from sluice_scheduler.core.policies import Policy
from sluice_scheduler.core.tree import QueueNode, build_tree

#: Rises whenever equal events could give other decisions than before.
CORE_VERSION: Final = 8

D = TypeVar("D", bound=Decision)


class State:
    def __init__(self, policies: Mapping[str, Policy], entities: Iterable[Entity] = ()) -> None:
        self.policies = policies
        self.changes: dict[str, Entity | None] = {}
        self.decided: list[Decision] = []

        self.cells: Table[Cell] = Table(self.changes)
        self.clusters: Table[Cluster] = Table(self.changes)
        self.namespaces: Table[Namespace] = Table(self.changes)
        self.priority_classes: Table[PriorityClass] = Table(self.changes)
        self.queues: Table[Queue] = Table(self.changes)
        self.pools: Table[Pool] = Table(self.changes)
        self.nodes: Table[Node] = Table(self.changes)
        self.unmanaged: Table[Unmanaged] = Table(self.changes)
        self.tombstones: Table[Tombstone] = Table(self.changes)
        self.reports: Table[Report] = Table(self.changes)
        self.promises: Table[Promise] = Table(self.changes)
        self.histories: Table[History] = Table(self.changes)
        self.drains: Table[Drain] = Table(self.changes)
        self.workloads: Table[Workload] = Table(self.changes)
        self.pods: Table[Pod] = Table(self.changes)
        tables: tuple[tuple[type[Entity], Table[Any]], ...] = (
            (Cell, self.cells),
            (Cluster, self.clusters),
            (Namespace, self.namespaces),
            (PriorityClass, self.priority_classes),
            (Queue, self.queues),
            (Pool, self.pools),
            (Node, self.nodes),
            (Unmanaged, self.unmanaged),
            (Tombstone, self.tombstones),
            (Report, self.reports),
            (Promise, self.promises),
            (History, self.histories),
            (Drain, self.drains),
            (Workload, self.workloads),
            (Pod, self.pods),
        )
        self._tables: dict[str, Table[Any]] = {entity.kind: table for entity, table in tables}
        for entity in entities:
            self._tables[entity.kind].restore(entity)

        #: Something happened since the last pass that a pass could act upon.
        self.pass_due = True
        #: Something that a status shows may have changed.
        self.report_due = True
        #: What branches have used in the past may be another part of what there is.
        self.past_due = True
        self.namespace_by_name = {(n.cluster, n.name): n for n in self.namespaces}
        self.workload_by_title = {w.place: w for w in self.workloads}
        self.derive()

    def clear(self) -> None:
        """Forget everything, as at the beginning of a ledger."""
        for table in self._tables.values():
            table.clear()
        self.namespace_by_name = {}
        self.workload_by_title = {}

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
        self.derive()

    def new_grounds(self) -> None:
        """Capacity was added or a queue edited: who lost pods may push others out again."""
        cell = self.cell
        cell.grounds += 1
        self.cells.put(cell)

    def advance_time(self, time_ms: int) -> None:
        """A cell's time is the largest seen."""
        cell = self.cell
        cell.time_ms = max(time_ms, cell.time_ms)
        self.cells.put(cell)

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
        self.changes[Cell.kind] = cell
        self.decided.append(decision)
        return decision

    def decide_about(self, make: Callable[..., D], account: Pod | Workload, **fields: Any) -> D:
        """A decision about a pod or an application; it names it, unless `fields` say otherwise."""
        named = {"namespace": account.namespace, "name": account.name, "uid": account.uid, **fields}
        return self.decide(make, cluster=account.cluster, **named)

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

    def pod(self, key: str) -> Pod:
        found = self.pods.get(key)
        assert found is not None, f"{key} is in a book or line, but has no account"
        return found

    def namespace_of(self, cluster: str, name: str) -> Namespace | None:
        return self.namespace_by_name.get((cluster, name))

    # ---- accounts: a pod waits in one line, or holds of one pool, or neither

    def enter(self, pod: Pod) -> None:
        """Bring a pod's account into the books and lines, as its phase says."""
        self.report_due = self.pass_due = True
        key = pod.key
        app = self.application_of(pod) if pod.application else None
        if app is not None:
            app.enter(pod)
            self.unsettled[app.key] = app
        if pod.evicting and pod.phase != "Withdrawn":
            self.evicting.setdefault(pod.evicting, set()).add(key)
        if pod.holds:
            if pod.bypassed:
                self.bypassed.add(key)
            if pod.phase == "Assumed":
                self.assumed[pod.seq] = key
            self.holders[pod.queue].add(key)
            if pod.pool:
                self.forest.charge(pod.queue, pod_cost(pod), 1, leaving=bool(pod.evicting))
        elif pod.phase == "Waiting":
            self._await(pod, app)

    def _await(self, pod: Pod, app: Application | None) -> None:
        if pod.problem:
            self.misdirected.add(pod.key)
        elif not pod.waits:
            return
        elif pod.retry_ms > self.cell.time_ms:
            self._retries[pod.key] = pod.retry_ms
        elif app is None or app.offered:
            self.offer(pod)

    def withdraw(self, pod: Pod) -> None:
        """The opposite of `enter`: call it before changing anything of the account."""
        self.report_due = self.pass_due = True
        key = pod.key
        app = self.application_of(pod) if pod.application else None
        if app is not None:
            app.leave(pod)
            self.unsettled[app.key] = app
        if pod.evicting and pod.phase != "Withdrawn":
            self._forget_eviction(pod)
        if pod.holds:
            self.bypassed.discard(key)
            self.assumed.pop(pod.seq, None)
            self.holders[pod.queue].discard(key)
            if pod.pool:
                self.forest.charge(pod.queue, pod_cost(pod), -1, leaving=bool(pod.evicting))
        else:
            self.forest.leave(key)
            self._retries.pop(key, None)
            self.misdirected.discard(key)
            if len(self.promises):
                self.break_promise(key)

    def _forget_eviction(self, pod: Pod) -> None:
        leaving = self.evicting[pod.evicting]
        leaving.discard(pod.key)
        if not leaving:
            del self.evicting[pod.evicting]

    def assume(self, pod: Pod, decision: Admit, cost: Cost | None = None) -> None:
        """Count a waiting pod as admitted from this moment on, as was decided.

        The same as `withdraw`, the change and `enter`, without what can't concern a pod that belongs to no
        application: this is what an admission costs.
        """
        plain = not pod.application
        if not plain:
            self.withdraw(pod)
        pod.phase, pod.pool, pod.seq, pod.retry_ms = "Assumed", decision.pool, decision.seq, 0
        pod.admitted_ms = decision.time_ms
        key = self.pods.put(pod)
        if not plain:
            self.enter(pod)
            return
        self.report_due = self.pass_due = True
        self.forest.leave(key)
        if self._retries:
            self._retries.pop(key, None)
        if len(self.promises):
            self.break_promise(key)
        self.assumed[decision.seq] = key
        self.holders[pod.queue].add(key)
        self.forest.charge(pod.queue, cost or pod_cost(pod), 1)

    def drained(self, pod: Pod) -> None:
        """A pod has ended by itself: that much its queue drains."""
        drain = self.drains.get(f"{Drain.kind}/{pod.queue}") or Drain(queue=pod.queue)
        drain.count(self.cell.time_ms)
        self.drains.put(drain)

    def replace_pod(self, before: Pod, after: Pod) -> None:
        """Put a later view of an account in the place of one that stands the same in books and lines."""
        if after.phase != "Assumed":
            self.assumed.pop(before.seq, None)
        self.pods.put(after)

    def offer(self, pod: Pod) -> None:
        """Put a pod in line. Pods of a workload stand where it does; those of a replica, only together."""
        key, facts = pod.key, pod.facts
        if key in self.forest.claims or pod.queue not in self.forest.leaves:
            return
        if len(self.promises) and self.promise_for(key) is not None:
            return
        workload = None
        if pod.application:
            workload = self.workload_by_title.get((pod.cluster, pod.namespace, pod.application))
            app = self.application_of(pod)
            if app is not None and pod.pod_set in app.replicated:
                return
        names: tuple[int | str, ...] = (pod.namespace, pod.uid)
        priority, created_ms = facts.priority, facts.created_ms
        if workload is not None:
            names = (pod.namespace, workload.uid, facts.created_ms, pod.uid)
            priority, created_ms = workload.priority, workload.in_line_ms
        shape = self.forest.shape((self.part_of(pod),))
        self.forest.join(
            Claim(
                key=key,
                line=pod.queue,
                priority=priority,
                created_ms=created_ms,
                names=names,
                shape=shape,
                gang=False,
            )
        )

    def capacity_changed(self) -> None:
        self.new_grounds()
        self.forest.capacity_changed()
        self.pass_due = self.report_due = self.past_due = True

    def offer_retries(self) -> None:
        """What could not be admitted comes back to its line when its pause is over."""
        for key in [key for key, retry_ms in self._pauses.items() if retry_ms <= self.cell.time_ms]:
            del self._pauses[key]
            workload = self.workloads.get(key)
            if workload is not None:
                self.touch(workload)
        for key in [key for key, retry_ms in self._retries.items() if retry_ms <= self.cell.time_ms]:
            pod = self.pod(key)
            self.withdraw(pod)
            self.enter(pod)

    @property
    def paused(self) -> Iterable[str]:
        """The keys of pods that are offered again later, because their admission failed."""
        return self._retries.keys()

    # ---- applications: several pods that are admitted together, or belong to one workload

    def application_of(self, pod: Pod) -> Application | None:
        if not pod.application:
            return None
        place = (pod.cluster, pod.namespace, pod.application)
        app = self.applications.get(place)
        if app is None:
            app = self.applications[place] = Application(place)
        if app.workload is None:
            app.workload = self.workload_by_title.get(place)
        return app

    def touch(self, workload: Workload) -> None:
        """Something of a workload's own account has changed."""
        place = workload.place
        app = self.applications.get(place)
        if app is None:
            app = self.applications[place] = Application(place)
        app.workload = self.workload_by_title.get(place)
        self.unsettled[app.key] = app
        self.unheeded[workload.key] = None
        self.pass_due = self.report_due = True

    def pause(self, workload: Workload, until_ms: int) -> None:
        """It waits a little before it may have its turn again."""
        workload.retry_ms = self._pauses[workload.key] = until_ms
        self.workloads.put(workload)
        self.touch(workload)

    def members_of(self, workload: Workload) -> list[str]:
        """The keys of its pods that hold or wait."""
        app = self.applications.get(workload.place)
        books = app.books.values() if app else ()
        return sorted(key for book in books for key in (*book.holding, *book.waiting))

    def holding_of(self, workload: Workload) -> list[Pod]:
        """Its pods that hold and are not being taken back."""
        app = self.applications.get(workload.place)
        books = app.books.values() if app else ()
        return [self.pod(key) for key in sorted(key for book in books for key in book.holding)]

    def forget_workload(self, workload: Workload) -> None:
        """Its pods stay what they are: those that hold go on holding, those that wait belong to nobody."""
        place = workload.place
        self.forest.leave(workload.key)
        if self.workload_by_title.get(place) is workload:  # and no later one of the same name
            del self.workload_by_title[place]
        app = self.applications.get(place)
        if app is not None and app.workload is workload:
            app.workload = None
            self.unsettled[app.key] = app
        self.pass_due = self.report_due = True

    def waits_for_time(self) -> bool:
        """Whether the mere passing of time may change what a pass decides.

        Use in the past decays, but that moves turns alone, and while nothing fits nobody's turn counts.
        """
        if len(self.promises):
            return True
        return bool(self.forest.claims) and any(q.facts.minimum_run_ms for q in self.tree.values())

    def settle_applications(self) -> None:
        """Bring reservations and gang claims in step with accounts."""
        while self.unsettled:
            unsettled = dict(self.unsettled)
            self.unsettled.clear()
            for key in sorted(unsettled):
                app = unsettled[key]
                app.settle(self)
                self.due[key] = app
                if app.admitted and app.gang is not None:
                    self.gangs[key] = None
                if app.workload is not None:
                    self.untold[app.workload.key] = None
                if app.free:
                    self.free[key] = app

    def application_by_claim(self, claim: str) -> Application | None:
        workload = self.workloads.get(claim)
        if workload is not None:
            return self.applications.get(workload.place)
        kind, _, place = claim.partition("/")
        if kind == "replica":
            _, _, place = place.partition("/")
        elif kind != "group":
            return None
        cluster, namespace, name = place.split("/", 2)
        return self.applications.get((cluster, namespace, name))

    def workload_of(self, claim: str) -> Workload | None:
        """The workload that a claim is of."""
        workload = self.workloads.get(claim)
        pod = self.pods.get(claim)
        if workload is None and pod is not None and pod.application:
            return self.workload_by_title.get((pod.cluster, pod.namespace, pod.application))
        app = self.application_by_claim(claim) if workload is None and pod is None else None
        return app.workload if app is not None else workload

    def admitted_in(self, queue: str) -> list[Application]:
        """The applications with something reserved in a queue."""
        return list(self.reserving.get(queue, {}).values())

    def group(self, claim: str) -> list[Pod]:
        """The pods of a pod group, or of a replica, that wait to be admitted together."""
        app = self.application_by_claim(claim)
        kind, pod_set, *_ = claim.split("/", 2)
        if app is not None and kind == "replica":
            return app.replica(self, pod_set)
        keys = [key for book in app.books.values() for key in sorted(book.waiting)] if app else []
        return [pod for pod in map(self.pod, keys) if pod.retry_ms <= self.cell.time_ms]

    def part_of(self, pod: Pod) -> Part:
        return part(pod.cluster, 1, pod.facts.requests, pod.facts.node_selector)

    # ---- promises

    def promise_for(self, claim: str) -> Promise | None:
        return self.promises.get(f"{Promise.kind}/{claim}")

    def promise(self, promise: Promise) -> None:
        self.promises.put(promise)
        self._charge_promise(promise, 1)
        self.pass_due = True

    def break_promise(self, claim: str) -> Promise | None:
        """Give up what is held for a claim; its owner puts it back in line, or admits it."""
        promise = self.promise_for(claim)
        if promise is not None:
            self._charge_promise(promise, -1)
            self.promises.drop(promise.key)
            self.pass_due = True
        return promise

    def give_up(self, promise: Promise) -> None:
        """Victims did not leave in time, or somebody goes before: the claim stands in line again."""
        self.break_promise(promise.claim)
        pod = self.pods.get(promise.claim)
        app = self.application_by_claim(promise.claim)
        if pod is not None:
            self.offer(pod)
        elif app is not None:
            app.settle(self)

    def give_up_claim(self, claim: str) -> None:
        promise = self.promise_for(claim)
        if promise is not None:
            self.give_up(promise)

    def priority_of(self, claim: str) -> int:
        workload = self.workload_of(claim)
        if workload is not None:
            return workload.priority
        pods = [self.pod(claim)] if claim in self.pods else self.group(claim)
        return max((pod.facts.priority for pod in pods), default=0)

    def _charge_promise(self, promise: Promise, sign: int) -> None:
        cost = self.promised_cost(promise)
        self.forest.charge(promise.queue, cost, sign)
        self.forest.charge(promise.queue, cost, -sign, leaving=True)

    def promised_cost(self, promise: Promise) -> Cost:
        return tuple(((cluster, pool, resource), amount) for cluster, pool, resource, amount in promise.cost)

    # ---- what is derived

    def derive(self) -> None:
        """Recompute everything that is not an entity. Rare: at a start, and when Queues or pools change."""
        self.places = Places(pool for pool in self.pools if self.begun and pool.cluster == self.home)
        self.tree: dict[str, QueueNode] = {}
        self.bypassed: set[str] = set()  # keys of open pods that nobody admitted
        self.misdirected: set[str] = set()  # keys of gated pods that can wait in no line
        self.assumed: dict[int, str] = {}  # the decision that admitted a pod → the pod's key
        self.evicting: dict[int, set[str]] = {}  # the decision that evicts pods → their keys
        self.releasing: dict[int, str] = {}  # the last decision about a workload's release → its key
        self.kinship = Kinship((*self.workloads, *self.pods))
        #: Applications that may run without having been admitted, and those whose status may have changed.
        self.unheeded: dict[str, None] = {}
        self.untold: dict[str, None] = {}
        #: Applications that are being suspended, and those in which executors have failed.
        self.suspending: dict[str, None] = {w.key: None for w in self.workloads if w.deadline_ms}
        #: Those whose minimum must run by some time: applications, and pod groups by their first name.
        self.gangs: dict[tuple[str, str, str], None] = {}
        self.making: dict[int, str] = {  # the decision to make a pod → the job's key
            seq: workload.key for workload in self.workloads for _, seq in workload.job.asked_for.values()
        }
        self.resting: dict[str, int] = {}  # jobs that make no pod until some time
        self.promptly: dict[str, None] = {}  # those whose admission shows in their status alone
        self.failing: dict[str, None] = {w.key: None for w in self.workloads if w.failed_ms}
        self.holders: dict[str, set[str]] = defaultdict(set)  # a queue → the keys of its pods that hold
        self.applications: dict[tuple[str, str, str], Application] = {}
        self.reserving: dict[str, dict[tuple[str, str, str], Application]] = {}  # by queue
        self.unsettled: dict[tuple[str, str, str], Application] = {}
        #: Applications that may have pods to open against a reservation, and those that wait for nothing.
        self.due: dict[tuple[str, str, str], Application] = {}
        self.free: dict[tuple[str, str, str], Application] = {}
        self._retries: dict[str, int] = {}  # a pod's key → not offered again before
        self._pauses: dict[str, int] = {}  # the same of workloads
        self.pass_due = self.report_due = self.past_due = True
        if not self.begun:
            return
        self.tree = build_tree((q for q in self.queues if q.cluster == self.home), self.config.cell)
        self.forest = Forest(
            self.tree, self.policies, self.config.policy, places=self.places, is_live=self.is_live
        )
        for node in self.nodes:
            self.places.add(node)
        for held in self.unmanaged:
            self.places.hold(held, 1)
        for promise in self.promises:
            self._charge_promise(promise, 1)
        for workload in self.workloads:
            if workload.seq:
                self.releasing[workload.seq] = workload.key
            if workload.retry_ms:
                self._pauses[workload.key] = workload.retry_ms
            self.touch(workload)
        for pod in self.pods:
            self.enter(pod)
        self.settle_applications()
        self.forest.settle()


def pod_cost(pod: Pod) -> Cost:
    return cost_of(pod.cluster, pod.pool, tuple(pod.facts.requests.items()))
