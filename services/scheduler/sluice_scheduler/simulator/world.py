"""The world that a scenario plays in: queues, nodes, applications and their pods, who obey at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sluice.crds.facts import queue_facts
from sluice.decisions import Admit, Decision, Evict
from sluice.events import (
    Change,
    Event,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    PodEvent,
    PodFacts,
    PodSetFacts,
    PoolEvent,
    PoolFacts,
    PriorityClassEvent,
    QueueEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.quantities import to_base_units
from sluice.values import NamespaceSelector, Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.simulator.cell import CLUSTER
from sluice_scheduler.simulator.scenario import Ending, Pool, Queue, Resize, Submit

POOL_LABEL = "pool"


@dataclass(slots=True)
class SimPod:
    uid: str
    name: str
    workload: SimWorkload
    pod_set: str
    facts: PodFacts
    created_ms: int
    admitted_ms: int = -1
    pool: str = ""

    @property
    def runs(self) -> bool:
        return self.admitted_ms >= 0


@dataclass(slots=True)
class SimWorkload:
    name: str
    uid: str
    queue: str
    runtime_ms: int | None
    facts: WorkloadFacts
    ends_in_ms: int = 0
    pods: dict[str, SimPod] = field(default_factory=dict)
    succeeded: dict[str, int] = field(default_factory=dict)
    created: int = 0  # pods ever
    ended: bool = False

    def of(self, pod_set: str) -> list[SimPod]:
        return [pod for pod in self.pods.values() if pod.pod_set == pod_set]


class World:
    """Actions on it put records on `news`; `take_news` hands them to the scheduler."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.workloads: dict[str, SimWorkload] = {}
        self.pods: dict[str, SimPod] = {}
        self.capacity: dict[str, Resources] = {}  # by pool
        self.held: dict[tuple[str, str], int] = {}  # by pool and resource, of running pods
        self.queues: dict[str, Queue] = {}
        self.waiting = 0  # pods
        self.asked: dict[str, Resources] = {}  # by queue, of running and waiting pods
        self.running: dict[str, Resources] = {}  # by queue
        self._queues: dict[str, tuple[int, dict[str, Any]]] = {}
        self._nodes: dict[str, list[str]] = {}
        self._pools: dict[str, Pool] = {}
        self._classes: set[str] = set()
        self.version = 0  # rises with each record
        self._news: list[Event] = []

    def take_news(self) -> list[Event]:
        news, self._news = self._news, []
        return news

    # ---- what rules

    def add_queue(self, queue: Queue) -> None:
        spec = queue.model_dump(by_alias=True, exclude_unset=True)
        self._queues[queue.name] = (len(self._queues), spec)
        self.queues[queue.name], self.asked[queue.name], self.running[queue.name] = queue, {}, {}
        self._tell_queue(queue.name)
        self._tell(
            NamespaceEvent,
            uid=f"namespace-{queue.name}",
            name=queue.name,
            managed=True,
            queue=queue.name,
        )

    def set_queue(self, change: dict[str, Any]) -> None:
        number, spec = self._queues[change["name"]]
        changed = self.queues[change["name"]] = Queue.model_validate({**spec, **change})
        self._queues[change["name"]] = (number, changed.model_dump(by_alias=True))
        self._tell_queue(change["name"])

    def _tell_queue(self, name: str) -> None:
        number, spec = self._queues[name]
        facts = queue_facts(Queue.model_validate(spec), generation=1, created_ms=number)
        facts = replace(facts, namespaces=NamespaceSelector(names=(name,)))
        self._tell(QueueEvent, uid=f"queue-{name}", name=name, queue=facts)

    def add_pool(self, pool: Pool) -> None:
        self._pools[pool.name] = pool
        self._nodes[pool.name] = []
        facts = PoolFacts(node_selector={POOL_LABEL: pool.name}, supply=pool.supply)
        self._tell(PoolEvent, uid=f"pool-{pool.name}", name=pool.name, pool=facts)
        self.set_pool(pool.name, pool.nodes, None)

    def set_pool(self, name: str, nodes: int | None, capacity: dict[str, str] | None) -> None:
        pool = self._pools[name]
        if capacity is not None:
            pool = self._pools[name] = pool.model_copy(update={"capacity": capacity})
        allocatable = {resource: to_base_units(resource, text) for resource, text in pool.capacity.items()}
        standing = self._nodes[name]
        wanted = len(standing) if nodes is None else nodes
        facts = NodeFacts(allocatable=allocatable, labels={POOL_LABEL: name})
        for gone in standing[wanted:]:
            self._tell(NodeEvent, uid=gone, name=gone, change="DELETED", node=facts)
        kept = standing[:wanted]
        for node in kept if capacity is not None else ():
            self._tell(NodeEvent, uid=node, name=node, node=facts)
        while len(kept) < wanted:
            kept.append(f"{name}-{len(kept)}")
            self._tell(NodeEvent, uid=kept[-1], name=kept[-1], change="ADDED", node=facts)
        self._nodes[name] = kept
        self.capacity[name] = {resource: amount * wanted for resource, amount in allocatable.items()}

    # ---- applications

    def submit(self, submit: Submit, name: str) -> None:
        sets = tuple(
            PodSetFacts(
                name=each.name,
                count=each.count,
                min_count=each.count if each.min_count is None else each.min_count,
                requests={r: to_base_units(r, text) for r, text in each.requests.items()},
                node_selector=each.node_selector,
            )
            for each in submit.pod_sets
        )
        facts = WorkloadFacts(
            pod_sets=sets,
            created_ms=self.now_ms,
            priority=submit.priority,
            priority_class=self._class_of(submit.priority),
        )
        uid = f"{len(self.workloads):08}"
        workload = SimWorkload(name, uid, submit.queue, submit.runtime, facts, submit.ends_in)
        self.workloads[name] = workload
        self._tell_workload(workload, "ADDED")
        for each in sets:
            for _ in range(each.count):
                self._create_pod(workload, each)

    def _class_of(self, priority: int) -> str:
        """The PriorityClass of this value, made when it is first used; who has none has 0."""
        name = f"priority-{priority}" if priority else ""
        if name and name not in self._classes:
            self._classes.add(name)
            self._tell(PriorityClassEvent, uid=name, name=name, change="ADDED", value=priority)
        return name

    def grow(self, change: Resize) -> None:
        workload = self.workloads[change.workload]
        grown = self._resize(workload, change.pod_set, change.by)
        for _ in range(change.by):
            self._create_pod(workload, grown)

    def shrink(self, change: Resize) -> None:
        """Waiting pods go first, then the newest."""
        workload = self.workloads[change.workload]
        pods = sorted(workload.of(change.pod_set), key=lambda pod: (not pod.runs, pod.admitted_ms, pod.uid))
        gone = pods[max(0, len(pods) - change.by) :]
        self._resize(workload, change.pod_set, -len(gone))
        for pod in gone:
            self._delete_pod(pod)

    def cancel(self, name: str) -> None:
        workload = self.workloads[name]
        for pod in list(workload.pods.values()):
            self._delete_pod(pod)
        self._end_workload(workload)

    def succeed(self, ending: Ending) -> list[SimPod]:
        return self._end(ending, self.finish_pod)

    def fail(self, ending: Ending) -> list[SimPod]:
        return self._end(ending, self._fail_pod)

    def _end(self, ending: Ending, end: Any) -> list[SimPod]:
        """The oldest running pods end."""
        running = [pod for pod in self.workloads[ending.workload].of(ending.pod_set) if pod.runs]
        ended = sorted(running, key=lambda pod: (pod.admitted_ms, pod.uid))[: ending.count]
        for pod in ended:
            end(pod)
        return ended

    def finish_pod(self, pod: SimPod) -> None:
        workload = pod.workload
        workload.succeeded[pod.pod_set] = workload.succeeded.get(pod.pod_set, 0) + 1
        self._change_pod(pod, phase="Succeeded")
        self._delete_pod(pod)
        if not workload.pods:
            self._end_workload(workload)

    def _end_workload(self, workload: SimWorkload) -> None:
        workload.ended = True
        self._tell_workload(workload, "DELETED")

    def _fail_pod(self, pod: SimPod) -> None:
        self._change_pod(pod, phase="Failed")
        self._replace_pod(pod)

    # ---- what the scheduler decides

    def obey(self, decision: Decision) -> SimPod | None:
        """Carry a decision out; the pod that it was about."""
        if not isinstance(decision, Admit | Evict):
            return None
        pod = self.pods.get(decision.uid)
        if pod is None:
            return None
        if isinstance(decision, Admit):
            pod.admitted_ms, pod.pool = self.now_ms, decision.pool
            self.waiting -= 1
            self._hold(pod, 1)
            self._change_pod(
                pod,
                gated=False,
                phase="Running",
                decision=f"1-1.{decision.seq}",
                node_selector=pod.facts.node_selector | decision.node_selector,
            )
        return pod

    def leave(self, pod: SimPod) -> None:
        """An evicted pod goes, and its owner creates another in its place."""
        if pod.uid in self.pods:
            self._replace_pod(pod)

    # ---- records

    def _resize(self, workload: SimWorkload, name: str, by: int) -> PodSetFacts:
        sets = []
        for each in workload.facts.pod_sets:
            resized = each
            if each.name == name:
                count = each.count + by
                resized = replace(each, count=count, min_count=min(each.min_count, count))
                changed = resized
            sets.append(resized)
        workload.facts = replace(workload.facts, pod_sets=tuple(sets))
        self._tell_workload(workload, "MODIFIED")
        return changed

    def _create_pod(self, workload: SimWorkload, pod_set: PodSetFacts) -> None:
        uid = f"{workload.uid}-{workload.created:06}"
        selector = pod_set.node_selector
        facts = PodFacts(
            requests=pod_set.requests,
            created_ms=self.now_ms,
            priority=workload.facts.priority,
            gated=True,
            node_selector=selector,
            workload=workload.name,
            pod_set=pod_set.name,
            ends_in_ms=workload.ends_in_ms,
        )
        name = f"{workload.name}-{pod_set.name}-{workload.created}"
        workload.created += 1
        pod = SimPod(uid, name, workload, pod_set.name, facts, self.now_ms)
        workload.pods[uid] = self.pods[uid] = pod
        self.waiting += 1
        add(self.asked[workload.queue], facts.requests.items(), 1)
        self._tell_pod(pod, "ADDED")

    def _replace_pod(self, pod: SimPod) -> None:
        self._delete_pod(pod)
        (pod_set,) = (each for each in pod.workload.facts.pod_sets if each.name == pod.pod_set)
        self._create_pod(pod.workload, pod_set)

    def _delete_pod(self, pod: SimPod) -> None:
        del self.pods[pod.uid], pod.workload.pods[pod.uid]
        add(self.asked[pod.workload.queue], pod.facts.requests.items(), -1)
        if pod.runs:
            self._hold(pod, -1)
        else:
            self.waiting -= 1
        self._tell_pod(pod, "DELETED")

    def _change_pod(self, pod: SimPod, **changes: Any) -> None:
        pod.facts = replace(pod.facts, **changes)
        self._tell_pod(pod, "MODIFIED")

    def _tell_pod(self, pod: SimPod, change: Change) -> None:
        self._tell(
            PodEvent,
            uid=pod.uid,
            name=pod.name,
            namespace=pod.workload.queue,
            change=change,
            pod=pod.facts,
        )

    def _tell_workload(self, workload: SimWorkload, change: Change) -> None:
        self._tell(
            WorkloadEvent,
            uid=workload.uid,
            name=workload.name,
            namespace=workload.queue,
            change=change,
            workload=workload.facts,
        )

    def _tell(self, make: Any, *, change: Change = "MODIFIED", **fields: Any) -> None:
        self.version += 1
        self._news.append(
            make(
                time_ms=self.now_ms,
                cluster=CLUSTER,
                change=change,
                resource_version=self.version,
                **fields,
            )
        )

    def _hold(self, pod: SimPod, sign: int) -> None:
        add(self.running[pod.workload.queue], pod.facts.requests.items(), sign)
        add(self.held, (((pod.pool, r), amount) for r, amount in pod.facts.requests.items()), sign)

    # ---- for comparisons

    def parts(self, amounts: Mapping[str, Resources]) -> dict[str, dict[str, float]]:
        """By queue: of all that there is, over all pools; what there is none of counts as all of it."""
        whole: Resources = {}
        for capacity in self.capacity.values():
            add(whole, capacity.items())
        return {
            queue: {
                resource: amount / whole[resource] if whole.get(resource) else float(amount > 0)
                for resource, amount in found.items()
            }
            for queue, found in amounts.items()
        }
