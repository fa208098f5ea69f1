"""Edits of what stands already, in any order: a cell that runs on decides what one does that is taken over before
each record. Scenario files know of work that comes and goes; here objects are told of that somebody edits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from random import Random
from typing import Any, Final

from fakes.twins import TwinCell
from histories import SETTINGS
from hypothesis import given
from hypothesis import strategies as st
from sluice.decisions import Admit, AdmitWorkload, CreatePod, Decision, Delete, Evict, EvictWorkload
from sluice.events import (
    Gang,
    JobFacts,
    NamespaceEvent,
    NamespaceSelector,
    NodeEvent,
    NodeFacts,
    ObjectEvent,
    PodEvent,
    PodFacts,
    PodSetFacts,
    PoolEvent,
    PoolFacts,
    PriorityClassEvent,
    QueueEvent,
    QueueFacts,
    TickEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.cell import CLUSTER, CONFIG, outcome

QUEUES: Final = ("a", "b", "c")
APPLICATIONS: Final = {
    "ray": "RayCluster",
    "dask": "DaskCluster",
    "job": "QueueJob",
    "own": "DynamicWorkload",
}
REQUESTS: Final = ({"cpu": 1000}, {"cpu": 2000}, {"cpu": 1000, "gpu": 1}, {"cpu": 1000, "odd": 1})
GANGS: Final = (None, None, Gang(deadline_ms=3000), Gang(deadline_ms=3000, hard=False))


class Edited:
    def __init__(self, policy: str) -> None:
        times = {"tenure_ms": 20_000, "patience_ms": 4000, "reclaim_after_ms": 0, "start_deadline_ms": 5000}
        self.cell = TwinCell(installed_policies(), replace(CONFIG, policy=policy, **times))
        self.now_ms = 0
        self._versions = count(1)
        self._pods: dict[str, tuple[str, PodFacts]] = {}
        self._applications: dict[str, WorkloadFacts] = {}
        self._nodes: dict[str, str] = {}  # the pool of each
        for pool in ("p", "q"):
            self._tell(PoolEvent, pool, pool=PoolFacts(node_selector={"pool": pool}))
            self._node(f"node-{pool}", pool)
        for queue in QUEUES:
            self._tell(NamespaceEvent, queue, managed=True, queue=queue)
            self._queue(queue, "", 1)

    def play(self, action: str, chance: Random) -> None:
        ACTIONS[action](self, chance)

    # ---- what somebody edits

    def edit_queue(self, chance: Random) -> None:
        name, parent = chance.choice(QUEUES), chance.choice(("", "", "a", "b", "missing"))
        if chance.random() < 0.2:
            self._tell(QueueEvent, name, change="DELETED", queue=QueueFacts())
        else:
            self._queue(name, "" if parent == name else parent, chance.randint(1, 3))

    def edit_node(self, chance: Random) -> None:
        name, pool = chance.choice(("node-p", "node-q", "late")), chance.choice(("p", "q"))
        self._node(name, pool, schedulable=chance.random() < 0.8)

    def edit_class(self, chance: Random) -> None:
        self._tell(PriorityClassEvent, "class", value=chance.randint(0, 2))

    def edit_application(self, chance: Random) -> None:
        name = chance.choice(sorted(APPLICATIONS))
        kind, size = APPLICATIONS[name], chance.randint(1, 4)
        least = chance.choice((0, 1, size))
        if chance.random() < 0.2 and name in self._applications:
            facts = self._applications.pop(name)
            self._tell(WorkloadEvent, name, change="DELETED", namespace="a", workload=facts)
            return
        is_job = kind == "QueueJob"
        completions = 2 * size if is_job else None
        known = self._applications.get(name)
        main = PodSetFacts(
            name="main", count=size, min_count=least, completions=completions, requests={"cpu": 1000}
        )
        self._applications[name] = replace(
            known or WorkloadFacts(pod_sets=(), created_ms=self.now_ms, kind=kind),
            pod_sets=(main,),
            suspendable=kind == "RayCluster",
            released=known.released if known else kind != "RayCluster",
            priority_class=chance.choice(("", "class")),
            problem=chance.choice(("", "", "", "unreadable")),
            gang=chance.choice(GANGS),
            job=JobFacts(restart_limit=3, backoff_limit=6, backoff_ms=2000) if is_job else None,
        )
        self._tell_application(name)

    def make_pod(self, chance: Random) -> None:
        """Of an application, a group or nobody; some run already, on a node that may not have been told of."""
        runs = chance.random() < 0.15
        facts = PodFacts(
            requests=chance.choice(REQUESTS),
            created_ms=self.now_ms,
            gated=not runs,
            phase="Running" if runs else "Pending",
            node=chance.choice(("node-p", "late", "")) if runs else "",
            **self._family(chance),
        )
        self._change(f"pod-{next(self._versions)}", chance.choice(QUEUES), facts)

    def edit_pod(self, chance: Random) -> None:
        if not self._pods:
            return
        name = chance.choice(sorted(self._pods))
        namespace, facts = self._pods[name]
        what = chance.choice(("family", "family", "gone", "ended", "deleting"))
        if what == "family":
            self._change(name, namespace, replace(facts, **self._family(chance)))
        elif what == "gone":
            self._delete(name)
        elif what == "deleting":
            self._change(name, namespace, replace(facts, deleting=True))
        elif not facts.gated:
            self._change(name, namespace, replace(facts, phase=chance.choice(("Succeeded", "Failed"))))

    def wait(self, chance: Random) -> None:
        self.now_ms += chance.choice((1000, 1000, 6000, 70_000))
        self._feed(TickEvent(time_ms=self.now_ms, cluster=CLUSTER))

    def _family(self, chance: Random) -> dict[str, Any]:
        name = chance.choice(("", "group", *APPLICATIONS))
        if name == "group":
            return {
                "owner": "",
                "workload": name,
                "group_size": chance.randint(1, 3),
                "gang": chance.choice(GANGS),
            }
        named = {"owner": f"workload-{name}"}
        if name in ("", "own") or chance.random() < 0.5:
            named = {"owner": "", "workload": name if name in ("", "own") else f"{APPLICATIONS[name]}/{name}"}
        return {"pod_set": "main", "workload": "", "group_size": 0, "gang": None, **named}

    # ---- what is told, and what becomes of decisions

    def _queue(self, name: str, parent: str, weight: int) -> None:
        names = NamespaceSelector(names=(name,))
        self._tell(QueueEvent, name, queue=QueueFacts(parent=parent, weight=weight, namespaces=names))

    def _node(self, name: str, pool: str, **facts: Any) -> None:
        there = {"cpu": 4000, "gpu": 1}
        self._nodes[name] = pool
        self._tell(NodeEvent, name, node=NodeFacts(allocatable=there, labels={"pool": pool}, **facts))

    def _change(self, name: str, namespace: str, facts: PodFacts) -> None:
        self._pods[name] = namespace, facts
        self._tell(PodEvent, name, namespace=namespace, pod=facts)

    def _delete(self, name: str) -> None:
        namespace, facts = self._pods.pop(name)
        self._tell(PodEvent, name, change="DELETED", namespace=namespace, pod=facts)

    def _tell_application(self, name: str, **facts: Any) -> None:
        self._applications[name] = replace(self._applications[name], **facts)
        self._tell(WorkloadEvent, name, namespace="a", workload=self._applications[name])

    def _tell(self, event: type[ObjectEvent], name: str, *, change: str = "MODIFIED", **facts: Any) -> None:
        record: Any = event
        version = next(self._versions)
        common = {"time_ms": self.now_ms, "cluster": CLUSTER, "change": change, "resource_version": version}
        self._feed(record(uid=f"{event.type}-{name}", name=name, **common, **facts))

    def _feed(self, event: Any) -> None:
        for decision in self.cell.feed([event]):
            if decision.seq:
                self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        by, name = f"1-1.{decision.seq}", getattr(decision, "name", "")
        self._feed(outcome(decision, self.now_ms))
        match decision:
            case Admit() if name in self._pods:
                namespace, facts = self._pods[name]
                node = next((node for node, pool in self._nodes.items() if pool == decision.pool), "")
                narrowed = facts.node_selector | decision.node_selector
                facts = replace(
                    facts, gated=False, phase="Running", decision=by, node=node, node_selector=narrowed
                )
                self._change(name, namespace, facts)
            case Evict() | Delete() if name in self._pods:
                self._delete(name)
            case CreatePod():
                facts = PodFacts(
                    requests={"cpu": 1000}, created_ms=self.now_ms, gated=True, owner=decision.uid
                )
                self._change(name, decision.namespace, replace(facts, pod_set="main"))
            case AdmitWorkload() | EvictWorkload() if name in self._applications:
                released = isinstance(decision, AdmitWorkload)
                self._tell_application(name, released=released, decision=by)


ACTIONS: Final[dict[str, Callable[[Edited, Random], None]]] = {
    "queue": Edited.edit_queue,
    "node": Edited.edit_node,
    "class": Edited.edit_class,
    "application": Edited.edit_application,
    "make": Edited.make_pod,
    "pod": Edited.edit_pod,
    "wait": Edited.wait,
}
OFTEN: Final = ("application", "make", "make", "make", "pod", "pod", "wait", *ACTIONS)


@SETTINGS
@given(
    st.sampled_from(("drf", "fifo", "priority", "usage-drf")),
    st.lists(st.tuples(st.sampled_from(OFTEN), st.integers(0, 1 << 16)), min_size=10, max_size=50),
)
def test_whoever_takes_over_decides_the_same(policy: str, actions: list[tuple[str, int]]) -> None:
    edited = Edited(policy)
    for action, number in actions:
        edited.play(action, Random(number))
