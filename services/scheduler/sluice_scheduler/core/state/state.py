"""All that `step` reads and writes: the entities of one cell, and what is derived from them.

Entities are committed to the ledger as they change. The forest and the applications are not: they are
recomputed from the entities by `State.derive`, so they can never disagree with what was committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, Final

from sluice.decisions import Admit

from sluice_scheduler.core.fairness.claims import Spot, part_of, pod_cost
from sluice_scheduler.core.fairness.deserved import by_kind, stored_name
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.derived import Derived
from sluice_scheduler.core.state.members import application_by_claim, is_out, stands_in_no_line
from sluice_scheduler.core.state.offers import offer
from sluice_scheduler.core.state.promises import break_promise, enter_promise
from sluice_scheduler.core.state.rules import find_places, grow_tree
from sluice_scheduler.core.state.turns import restore_rooms
from sluice_scheduler.core.state.units import Units, entry_of
from sluice_scheduler.core.state.validate import validate
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Deserved, Entity, Namespace
from sluice_scheduler.core.stored.names import Names

#: Rises whenever equal events could give other decisions than before.
CORE_VERSION: Final = 21


class State(Derived):
    def __init__(
        self, policies: Mapping[str, Policy], entities: Iterable[Entity] = (), *, derives: bool = True
    ) -> None:
        """`derives`: whether `derive` is called at once; somebody must, before anything is stepped."""
        super().__init__(entities)
        self.derived = False
        self.policies = policies
        #: Whether statuses are told. Nothing is decided by them.
        self.tells = True
        #: Something happened since the last pass that a pass could act upon.
        self.pass_due = True
        #: Something that a status shows may have changed.
        self.report_due = True
        #: Capacity has changed, so past use may be another part of it.
        self.past_due = True
        self._name_anew()
        if derives:
            self.derive()

    def clear(self) -> None:
        """Forget everything, as at the beginning of a ledger."""
        super().clear()
        self._name_anew()

    def _name_anew(self) -> None:
        self.namespace_by_name = Names(lambda each: (each.cluster, each.name), self.namespaces)
        self.workload_by_title = Names(lambda each: each.place, self.workloads)

    # ---- what stands under a key or name

    def namespace_of(self, cluster: str, name: str) -> Namespace | None:
        return self.namespace_by_name.get((cluster, name))

    def application_of_claim(self, claim: str) -> Application:
        app = application_by_claim(self, claim)
        assert app is not None, f"{claim} is a unit, but no application"
        return app

    # ---- accounts: a pod waits in one line, or holds of one pool, or neither
    #
    # Books and lines change with an account only by these: `changing`, `assume`, `replace_pod` and `remove_pod`.
    # Any other change must leave alone what books and lines go by; `validate` finds it if it does not.

    @contextmanager
    def changing(self, pod: Pod) -> Iterator[None]:
        """Change an account: it leaves books and lines as it was, and enters them as it is."""
        self._leave(pod)
        yield
        self.pods.put(pod)
        self._enter(pod)

    def replace_pod(self, before: Pod | None, after: Pod) -> None:
        """Put a later view of an account in the place of the one before, if there was one."""
        if before is not None:
            self._leave(before)
        self.pods.put(after)
        self._enter(after)

    def replace_alike(self, before: Pod, after: Pod) -> None:
        """The same, of one that stands the same in books and lines."""
        if after.phase != "Assumed":
            self.assumed.pop(before.seq, None)
        self.residents.remove(before)
        if after.holds:
            self.residents.add(after)
        self.pods.put(after)

    def remove_pod(self, pod: Pod) -> None:
        self._leave(pod)
        self.pods.drop(pod.key)
        self.forget_choice(pod)

    def _enter(self, pod: Pod) -> None:
        """Bring a pod's account into the books and lines, as its phase says."""
        self.report_due = self.pass_due = True
        key = pod.key
        app = self.application_of(pod) if pod.application else None
        if app is not None:
            app.enter(pod, self)
            self.unsettled[app.key] = app
        if pod.evicting and pod.phase != "Withdrawn":
            self.evicting.setdefault(pod.evicting, set()).add(key)
        if pod.holds:
            if pod.bypassed:
                self.bypassed.add(key)
            if pod.phase == "Assumed":
                self.assumed[pod.seq] = key
            self.holders[pod.queue].add(key)
            self.endings.add(pod)
            self.residents.add(pod)
            if pod.pool:
                self._charge(pod, 1)
                if app is None and not pod.evicting:
                    self.units_of(pod.queue).add(entry_of(pod, pod.facts.priority), growth=True)
            if pod.retry_ms:
                self.retries[key] = pod.retry_ms
        elif pod.phase == "Waiting":
            self.waiting[pod.queue] += 1
            self._await(pod, app)

    def _await(self, pod: Pod, app: Application | None) -> None:
        if pod.problem:
            self.misdirected.add(pod.key)
        elif not pod.waits or stands_in_no_line(self, pod):
            return
        elif pod.retry_ms:
            self.retries[pod.key] = pod.retry_ms
        elif app is None or app.offered:
            offer(self, pod)

    def _leave(self, pod: Pod) -> None:
        """The opposite of `_enter`, before anything of the account changes."""
        self.report_due = self.pass_due = True
        key = pod.key
        app = self.application_of(pod) if pod.application else None
        if app is not None:
            app.leave(pod, self)
            self.unsettled[app.key] = app
        if pod.evicting and pod.phase != "Withdrawn":
            self._forget_eviction(pod)
        self.retries.pop(key, None)
        if pod.holds:
            self.bypassed.discard(key)
            self.assumed.pop(pod.seq, None)
            self.holders[pod.queue].discard(key)
            self.endings.remove(pod)
            self.residents.remove(pod)
            if pod.pool:
                self._charge(pod, -1)
                if app is None and not pod.evicting:
                    self.units_of(pod.queue).remove(entry_of(pod, pod.facts.priority), growth=True)
        else:
            self.waiting[pod.queue] -= pod.phase == "Waiting"
            self.forest.leave(key)
            self.misdirected.discard(key)
            if len(self.promises):
                break_promise(self, key)

    def _charge(self, pod: Pod, sign: int) -> None:
        self.forest.charge(pod.queue, pod_cost(pod), sign, leaving=bool(pod.evicting), part=part_of(pod))

    def _forget_eviction(self, pod: Pod) -> None:
        leaving = self.evicting[pod.evicting]
        leaving.discard(pod.key)
        if not leaving:
            del self.evicting[pod.evicting]

    def assume(self, pod: Pod, decision: Admit, spot: Spot | None = None) -> None:
        """Count a waiting pod as admitted from this moment on, as was decided.

        The same as `changing` it, without what can't concern a pod that belongs to no application: this is
        what an admission costs.
        """
        if pod.application:
            with self.changing(pod):
                self._admit(pod, decision)
            return
        self._admit(pod, decision)
        self.waiting[pod.queue] -= 1
        key = self.pods.put(pod)
        self.report_due = self.pass_due = True
        if self.retries:
            self.retries.pop(key, None)
        if len(self.promises):
            break_promise(self, key)
        self.assumed[decision.seq] = key
        self.holders[pod.queue].add(key)
        if pod.facts.ends_in_ms:
            self.endings.add(pod)
        if pod.facts.node or not pod.pool:
            self.residents.add(pod)
        if spot is not None:
            self.forest.admit(key, spot)
        else:
            self.forest.leave(key)
            self._charge(pod, 1)
        self.units_of(pod.queue).add(entry_of(pod, pod.facts.priority, key), growth=True)

    @staticmethod
    def _admit(pod: Pod, decision: Admit) -> None:
        pod.phase, pod.pool, pod.seq, pod.retry_ms = "Assumed", decision.pool, decision.seq, 0
        pod.admitted_ms = decision.time_ms

    def units_of(self, queue: str) -> Units:
        units = self.units.get(queue)
        if units is None:
            units = self.units[queue] = Units()
        return units

    def capacity_changed(self) -> None:
        self.forest.capacity_changed()
        self.pass_due = self.report_due = self.past_due = True

    # ---- applications: several pods that are admitted together, or belong to one workload

    def application_of(self, pod: Pod) -> Application | None:
        """None if the pod is stuck, or its application is set aside: such pods stand for themselves, in no line."""
        if not pod.application or self.is_stuck(pod.key):
            return None
        return self._application((pod.cluster, pod.namespace, pod.application))

    def _application(self, place: tuple[str, str, str]) -> Application | None:
        if is_out(self, place):
            return None
        app = self.applications.get(place)
        if app is None:
            app = self.applications[place] = Application(place)
        if app.workload is None:
            app.stand_for(self.workload_by_title.get(place), self)
        return app

    def workload_changed(self, workload: Workload) -> None:
        """Something of a workload's account has changed that its claims, reservation or status go by."""
        self.workloads.put(workload)
        self.touch(workload)

    def touch(self, workload: Workload) -> None:
        """Something that a workload's claims, reservation or status go by may have changed."""
        place = workload.place
        app = self._application(place)
        if app is None:
            self.status_due[workload.key] = None
            return
        app.stand_for(self.workload_by_title.get(place), self)
        self.unsettled[app.key] = app
        self.uncompared[workload.key] = None
        self.pass_due = self.report_due = True

    def name_queue(self, account: Pod | Workload) -> None:
        """Remember that an account names its queue itself."""
        there = self.choosy.setdefault((account.cluster, account.namespace), {})
        there.setdefault(account.facts.queue, {})[account.key] = None

    def forget_choice(self, account: Pod | Workload) -> None:
        """An account is gone that may have named a queue, or one after another."""
        place = (account.cluster, account.namespace)
        there = self.choosy.get(place, {})
        for queue in [queue for queue, keys in there.items() if account.key in keys]:
            del there[queue][account.key]
            if not there[queue]:
                del there[queue]
        if not there:
            self.choosy.pop(place, None)

    def forget_workload(self, workload: Workload) -> None:
        """Its pods stay what they are: those that hold go on holding, those that wait belong to nobody."""
        place = workload.place
        self.forest.leave(workload.key)
        self.pauses.pop(workload.key, None)
        self.resting.pop(workload.key, None)
        self.workload_by_title.remove(workload)
        app = self.applications.get(place)
        if app is not None and app.workload is workload:
            app.stand_for(self.workload_by_title.get(place), self)
            self.unsettled[app.key] = app
        self.pass_due = self.report_due = True

    def settle_applications(self) -> None:
        """Bring reservations, units and gang claims in step with accounts."""
        while self.unsettled:
            unsettled = dict(self.unsettled)
            self.unsettled.clear()
            for key in sorted(unsettled):
                self.settle_application(unsettled[key])

    def settle_application(self, app: Application) -> None:
        key = app.key
        self.unsettled.pop(key, None)
        self.report_due = True
        self.forest.version += 1  # its units may be others now
        app.settle(self)
        if app.is_gone and key not in self.unsettled:
            del self.applications[key]
            return
        self.may_open[key] = self.settled[key] = app
        if app.admitted and app.gang is not None:
            self.gangs[key] = None
        if app.workload is not None:
            self.status_due[app.workload.key] = None
            self.uncompared[app.workload.key] = None  # its pods may show that it runs
            self.unmeasured[key] = app
            if app.workload.facts.job is not None:
                self.jobs[key] = app
        if app.free:
            self.free[key] = app

    # ---- what is derived

    def validate(self) -> list[str]:
        """Sentences about each derived thing that differs from what the accounts say."""
        return validate(self)

    def derive(self) -> None:
        """Recompute everything that is not an entity. Rare: at a start, and when Queues or pools change."""
        self.derived = True
        self.begin_anew()
        self.places: Places = find_places(self)
        if self.begun:
            self._fill()

    def _fill(self) -> None:
        self.tree = grow_tree(self)
        self.forest = Forest(
            self.tree, self.policies, self.config.policy, places=self.places, is_live=self.is_live
        )
        for promise in sorted(self.promises, key=attrgetter("made")):
            enter_promise(self, promise)
        for workload in self.workloads:
            if workload.seq:
                self.releasing[workload.seq] = workload.key
            if workload.retry_ms:
                self.pauses[workload.key] = workload.retry_ms
            self.touch(workload)
        for pod in self.pods:
            self._enter(pod)
        self.settle_applications()
        self.recall_deserved()
        restore_rooms(self)

    def change_queues(self) -> None:
        """Queues were edited: the branches take their new shape, and keep what they hold."""
        tree = grow_tree(self)
        came = tree.keys() - self.forest.leaves.keys()
        queues_held = {promise.queue for promise in self.promises} | {
            book.queue for app in self.applications.values() for book in app.books.values() if book.reserved
        }
        if any(self.holders.get(name) or name in queues_held for name in came):
            self.derive()  # what they hold was nobody's until now
            return
        self.tree = tree
        self._forget_queues()
        self.forest.grow(tree, self.policies)
        self.recall_deserved()
        restore_rooms(self)
        for app in self.applications.values():
            if app.waits_for_queue:
                self.unsettled[app.key] = app
        self.pass_due = self.report_due = self.past_due = True

    def _forget_queues(self) -> None:
        """Of queues that are gone, once nothing of theirs is left."""
        by_queue: tuple[dict[str, Any], ...] = (self.holders, self.waiting, self.units)
        for index in by_queue:
            for name in [name for name, there in index.items() if name not in self.tree and not there]:
                del index[name]

    def change_pools(self) -> None:
        """Pools were edited: nodes may belong to others now, and pods to other supplies."""
        before, self.places = self.places.supplies, find_places(self)
        named = before.keys() | {dim[1] for dim in (*self.forest.root.usage, *self.forest.root.leaving)}
        if any(before.get(pool, "") != self.places.supplies.get(pool, "") for pool in named):
            self.derive()
            return
        self.forest.pools_changed(self.places)
        self.pass_due = self.report_due = self.past_due = True

    def recall_deserved(self) -> None:
        """Tell the branches what they deserve, as it was worked out last."""
        known = self.deserved.get(Deserved.kind)
        amounts = known.amounts if known is not None else {}
        branches = self.forest.all_branches()
        self.forest.set_deserved({each: by_kind(amounts.get(stored_name(each), {})) for each in branches})
