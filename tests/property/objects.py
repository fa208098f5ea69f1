"""Random histories of objects, told of as a watcher would: whatever Kubernetes lets people do to them, at any moment.

Scenario files tell of a world in order. Here Queues, pools, nodes and namespaces are edited, deleted and made anew
under pods that wait and run, objects are told of twice, too late, or only by a list, and of what is decided some is
done late or not at all. A history is a list of steps, so that it shrinks and can be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final
from zlib import crc32

from fakes.twins import TwinCell
from sluice.decisions import (
    Admit,
    AdmitWorkload,
    CreatePod,
    Decision,
    Delete,
    Evict,
    EvictWorkload,
    LabelNamespace,
    Resync,
)
from sluice.events import (
    Change,
    ConfigEvent,
    Event,
    Gang,
    JobFacts,
    NamespaceEvent,
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
    SetAsideEvent,
    SyncEvent,
    TickEvent,
    UnmanagedEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.values import NamespaceSelector
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.cell import CLUSTER, CONFIG, outcome

#: Events of a kind, and the name and type of the facts that they carry; those of the others are their own fields.
KINDS: Final[dict[str, tuple[type[ObjectEvent], str, Any]]] = {
    "pod": (PodEvent, "pod", PodFacts),
    "workload": (WorkloadEvent, "workload", WorkloadFacts),
    "node": (NodeEvent, "node", NodeFacts),
    "queue": (QueueEvent, "queue", QueueFacts),
    "resourcepool": (PoolEvent, "pool", PoolFacts),
    "namespace": (NamespaceEvent, "", dict),
    "priorityclass": (PriorityClassEvent, "", dict),
}
#: Types of facts within facts.
_WITHIN: Final[dict[str, Any]] = {
    "pod_sets": lambda sets: tuple(PodSetFacts(**each) for each in sets),
    "gang": lambda gang: gang and Gang(**gang),
    "job": lambda job: job and JobFacts(**job),
    "namespaces": lambda names: NamespaceSelector(names=tuple(names)),
}
#: Steps of which all that they tell is read at once.
_AT_ONCE: Final = ("together", "relist")
_FAILED: Final = ("Conflict", "Failed", "Superseded", "Rejected", "Gone")


@dataclass
class Thing:
    """An object as it is now."""

    uid: str
    namespace: str
    facts: Any
    version: int = 0


class Objects:
    """The objects of one cluster. Steps change them, and so does what is decided."""

    def __init__(self, content: dict[str, Any]) -> None:
        config = replace(CONFIG, reclaim_after_ms=0, **content["config"])
        self.cell = TwinCell(installed_policies(), config)
        self.things: dict[tuple[str, str], Thing] = {}
        self.now_ms = 0
        self._version = 1
        self._undone: list[Decision] = []
        self._news: list[Event] = []
        self._last: dict[tuple[str, str], Event] = {}
        self._steps = content["steps"]

    def play(self) -> Iterator[None]:
        """Goes on behind each commit."""
        for step in self._steps:
            for verb, arguments in step.items():
                getattr(self, verb)(**arguments)
                news, self._news = self._news, []
                for events in [news] if verb in _AT_ONCE else [[event] for event in news]:
                    self._undone += [each for each in self.cell.feed(events) if each.seq]
                    yield

    # ---- steps

    def put(self, kind: str, name: str, facts: dict[str, Any], namespace: str = "") -> None:
        """Make an object, or edit it."""
        found = self.things.get((kind, name))
        told = {key: _WITHIN[key](value) if key in _WITHIN else value for key, value in facts.items()}
        if "owner" in told:
            told["owner"] = self._uid(told["owner"])
        if "created_ms" in told:
            told["created_ms"] = found.facts.created_ms if found else self.now_ms + told["created_ms"]
        if found is None:
            _, _, make = KINDS[kind]
            self.things[kind, name] = Thing(f"{kind}-{name}-{self._version}", namespace, make(**told))
        elif isinstance(found.facts, dict):
            found.facts = {**found.facts, **told}
        else:
            found.facts = replace(found.facts, **told)
        self._tell(kind, name)

    def make(self, kind: str, name: str, facts: dict[str, Any], namespace: str) -> None:
        if (kind, name) not in self.things:
            self.put(kind, name, facts, namespace)

    def edit(self, kind: str, name: str, facts: dict[str, Any]) -> None:
        if (kind, name) in self.things:
            self.put(kind, name, facts)

    def delete(self, kind: str, name: str) -> None:
        if (kind, name) in self.things:
            self._tell(kind, name, "DELETED")
            del self.things[kind, name]

    def anew(self, kind: str, name: str, first: bool) -> None:
        """Delete an object and make another one of its name. `first`: it is the first that is told of."""
        found = self.things.get((kind, name))
        if found is None:
            return
        self._version += 1
        found.version = self._version
        gone = self._event(kind, name, "DELETED")
        found.uid = f"{kind}-{name}-{self._version}"
        self._news += [] if first else [gone]
        self._tell(kind, name)
        self._news += [gone] if first else []

    def again(self, kind: str, name: str) -> None:
        """What was told last of an object comes once more."""
        last = self._last.get((kind, name))
        self._news += [replace(last, time_ms=self.now_ms)] if last is not None else []

    def relist(self, listed: str, unseen: list[str]) -> None:
        """A watcher lists a kind. Some objects were deleted while nobody watched."""
        kind = listed.partition("/")[0]
        for name in unseen:
            if self._is(kind, name) and self._event(kind, name).listed_as == listed:
                del self.things[kind, name]
        events = [self._event(of, name) for of, name in sorted(self.things) if of == kind]
        marks: Any = {"kind": listed, "sync": str(self._version), "resource_version": self._version}
        begin, end = (
            SyncEvent(phase=phase, time_ms=self.now_ms, cluster=CLUSTER, **marks)
            for phase in ("BEGIN", "END")
        )
        self._news += [begin, *(event for event in events if event.listed_as == listed), end]

    def unmanaged(self, pool: str, cpu: int) -> None:
        requests = {"cpu": cpu} if cpu else {}
        facts: Any = {"time_ms": self.now_ms, "cluster": CLUSTER, "pool": pool, "pods": bool(cpu)}
        self._news.append(UnmanagedEvent(requests=requests, **facts))

    def aside(self, kind: str, name: str) -> None:
        """An exception was raised while it was worked on."""
        if self._is(kind, name):
            what = f"{kind}/{CLUSTER}/{self.things[kind, name].uid}"
            facts: Any = {"time_ms": self.now_ms, "cluster": CLUSTER, "offset": 0, "reason": "test"}
            self._news.append(SetAsideEvent(what=what, **facts))

    def configure(self, **changed: Any) -> None:
        config = replace(self.cell.state.config, **changed)
        self._news.append(ConfigEvent(time_ms=self.now_ms, cluster=CLUSTER, config=config))

    def apart(self, steps: list[dict[str, Any]]) -> None:
        """Several changes, one behind the other."""
        for step in steps:
            for verb, arguments in step.items():
                getattr(self, verb)(**arguments)

    def together(self, steps: list[dict[str, Any]]) -> None:
        """The same, read at once."""
        self.apart(steps)

    def tick(self, seconds: int, do: int) -> None:
        """Time passes. `do`: of what is undone, so many tenths are done; the rest fails or waits."""
        self.now_ms += seconds * 1000
        undone, self._undone = self._undone, []
        for decision in undone:
            lot = crc32(f"{decision.id} {self.now_ms}".encode())
            if lot % 10 < do:
                self._carry_out(decision, lot)
            elif lot % 3:
                self._undone.append(decision)
            elif not isinstance(decision, Resync):
                failed = replace(outcome(decision, self.now_ms), result=_FAILED[lot % len(_FAILED)])
                self._news.append(failed)
        self._news.append(TickEvent(time_ms=self.now_ms, cluster=CLUSTER))

    # ---- what is decided

    def _carry_out(self, decision: Decision, lot: int) -> None:
        name = getattr(decision, "name", "")
        by = {"decision": f"1-1.{decision.seq}"}
        match decision:
            case Admit() if self._is("pod", name, decision.uid):
                node = self._node_for(decision, lot)
                narrowed = self.things["pod", name].facts.node_selector | decision.node_selector
                opened = {"gated": False, "phase": "Running" if node else "Pending"}
                self.put("pod", name, {**opened, "node_selector": narrowed, **by})
                self.put("pod", name, {"node": node})
            case Evict() | Delete() if self._is("pod", name, decision.uid):
                self._end_pod(name, lot)
            case AdmitWorkload() if self._is("workload", name, decision.uid):
                self.put("workload", name, {"released": True, **by})
                self._make_pods(name, lot)
            case EvictWorkload() if self._is("workload", name, decision.uid):
                self.put("workload", name, {"released": False, **by})
                for pod in [n for (kind, n), each in self.things.items() if kind == "pod"]:
                    if self.things["pod", pod].facts.owner == decision.uid:
                        self._end_pod(pod, lot)
            case CreatePod() if self._is("workload", decision.job):
                self._make_pod(decision.job, name, "main")
            case LabelNamespace() if self._is("namespace", name, decision.uid):
                self.put("namespace", name, {"queue": decision.queue})
        if not isinstance(decision, Resync):
            self._news.append(outcome(decision, self.now_ms))

    def _is(self, kind: str, name: str, uid: str = "") -> bool:
        found = self.things.get((kind, name))
        return found is not None and uid in ("", found.uid)

    def _node_for(self, decision: Admit, lot: int) -> str:
        nodes = sorted(
            name
            for (kind, name), node in self.things.items()
            if kind == "node" and decision.node_selector.items() <= node.facts.labels.items()
        )
        return nodes[lot % len(nodes)] if nodes else ""

    def _end_pod(self, name: str, lot: int) -> None:
        """Pods that are evicted go at once, or fail first, or take their time."""
        if lot % 4 < 2:
            self.delete("pod", name)
        else:
            self.put("pod", name, {"deleting": True} if lot % 4 == 2 else {"phase": "Failed"})

    def _make_pods(self, application: str, lot: int) -> None:
        """Its operator makes the pods, or some of them."""
        for pod_set in self.things["workload", application].facts.pod_sets:
            for number in range(pod_set.count if lot % 3 else pod_set.count // 2):
                self._make_pod(application, f"{application}-{pod_set.name}-{number}", pod_set.name)

    def _make_pod(self, application: str, name: str, pod_set: str) -> None:
        owner = self.things["workload", application]
        requests = next((each.requests for each in owner.facts.pod_sets if each.name == pod_set), {})
        facts = {"requests": requests, "created_ms": 0, "gated": True, "pod_set": pod_set}
        self.make("pod", name, {**facts, "owner": f"workload/{application}"}, owner.namespace)

    # ---- events

    def _uid(self, owner: str) -> str:
        kind, _, name = owner.partition("/")
        found = self.things.get((kind, name))
        return found.uid if found is not None else owner

    def _tell(self, kind: str, name: str, change: Change = "MODIFIED") -> None:
        self._version += 1
        self.things[kind, name].version = self._version
        event = self._last[kind, name] = self._event(kind, name, change)
        self._news.append(event)

    def _event(self, kind: str, name: str, change: Change = "MODIFIED") -> ObjectEvent:
        event, field, _ = KINDS[kind]
        thing = self.things[kind, name]
        record: Any = event
        return record(
            time_ms=self.now_ms,
            cluster=CLUSTER,
            change=change,
            uid=thing.uid,
            name=name,
            namespace=thing.namespace,
            resource_version=thing.version,
            **({field: thing.facts} if field else thing.facts),
        )
