"""What is derived from the entities: indexes of accounts, and applications. The forest stands beside them."""

from __future__ import annotations

from collections import Counter, defaultdict, deque

from sluice_scheduler.core.fairness.tree import QueueNode
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.cell import Barren, CellTables
from sluice_scheduler.core.state.endings import Endings
from sluice_scheduler.core.state.kinship import Kinship
from sluice_scheduler.core.state.members import by_named_queue
from sluice_scheduler.core.state.residents import Residents
from sluice_scheduler.core.state.units import Units
from sluice_scheduler.core.stored.entities import Pool, Promise, Queue


class Derived(CellTables):
    """Empty indexes; `State` fills them from the accounts, and keeps them in step."""

    def begin_anew(self) -> None:
        self.tree: dict[str, QueueNode] = {}
        #: By namespace and the queue that accounts name (empty: none): the queue and problem that they were brought to.
        self.bound: dict[str, dict[str, tuple[str, str]]] = {}
        self.choosy = by_named_queue(self)
        #: Kinds of rules that have changed and were not followed yet.
        self.edited: set[str] = {Queue.kind, Pool.kind}
        self.graves = deque(sorted((grave.time_ms, grave.key) for grave in self.tombstones))
        self.bypassed: set[str] = set()  # keys of open pods that nobody admitted
        self.misdirected: set[str] = set()  # keys of gated pods that can wait in no line
        self.assumed: dict[int, str] = {}  # the decision that admitted a pod → the pod's key
        self.evicting: dict[int, set[str]] = {}  # the decision that evicts pods → their keys
        self.releasing: dict[int, str] = {}  # the last decision about a workload's release → its key
        self.kinship = Kinship((*self.workloads, *self.pods))
        #: Applications whose object was not yet compared with the account, and those whose status may have changed.
        self.uncompared: dict[str, None] = {}
        self.status_due: dict[str, None] = {}
        #: Applications that are being suspended, and those in which executors have failed.
        self.suspending: dict[str, None] = {w.key: None for w in self.workloads if w.deadline_ms}
        #: Applications and pod groups whose minimum must run by some time.
        self.gangs: dict[tuple[str, str, str], None] = {}
        self.making: dict[int, str] = {  # the decision to make a pod → the job's key
            seq: workload.key for workload in self.workloads for _, seq in workload.job.asked_for.values()
        }
        #: Jobs that make no pod until some time.
        self.resting: dict[str, int] = {w.key: w.job.resume_ms for w in self.workloads if w.job.resume_ms}
        #: Applications written by hand that were admitted or put back: only a status says so, and at once.
        self.status_at_once: dict[str, None] = {}
        self.failing: dict[str, None] = {w.key: None for w in self.workloads if w.failed_ms}
        #: Promises by what they are promised, each in its order.
        self.promised: dict[tuple[object, ...], dict[str, Promise]] = {}
        self.waiting: Counter[str] = Counter()  # pods behind their gates, by queue
        self.holders: dict[str, set[str]] = defaultdict(set)  # a queue → the keys of its pods that hold
        self.units: dict[str, Units] = {}  # a queue → what its pods can be taken back as
        self.endings = Endings()
        self.residents = Residents()
        self._forget_applications()
        self.retries: dict[str, int] = {}  # a pod's key → not offered, and not evicted, again before
        self.pauses: dict[str, int] = {}  # the same of workloads
        #: When a search for victims last found none: it is not repeated before something relevant has changed.
        self.barren: Barren | None = None
        self.pass_due = self.report_due = self.past_due = True

    def _forget_applications(self) -> None:
        self.applications: dict[tuple[str, str, str], Application] = {}
        self.unsettled: dict[tuple[str, str, str], Application] = {}
        #: Applications that were settled since what they do not reserve any more was given back.
        self.settled: dict[tuple[str, str, str], Application] = {}
        #: Applications that may have pods to open against a reservation, and those that start without a claim.
        self.may_open: dict[tuple[str, str, str], Application] = {}
        self.free: dict[tuple[str, str, str], Application] = {}
        self.jobs: dict[tuple[str, str, str], Application] = {}  # QueueJobs that may want pods made
        #: Applications whose reservation may have changed, and when those are given up that nobody comes for.
        self.unmeasured: dict[tuple[str, str, str], Application] = {}
        self.starting: dict[tuple[str, str, str], int] = {}
