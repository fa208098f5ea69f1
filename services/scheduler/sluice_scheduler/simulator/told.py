"""What is told of a simulation: a line for what happens at once to pods of one pod set, and a summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from sluice.decisions import Admit, Decision, Evict, EvictWorkload
from sluice.events import Event, QueueEvent, WorkloadEvent

from sluice_scheduler.core import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.simulator.cell import CLUSTER
from sluice_scheduler.simulator.world import SimPod, SimWorkload, World

#: A summary of no more workloads than this names them all.
WORKLOADS_MAX: Final = 100
#: One of more names so many of those that wait.
NAMED_MAX: Final = 20


class Told:
    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []
        self._rejected: set[str] = set()  # workloads of which that was told

    def decided(self, world: World, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            why = {"reason": decision.reason, "sentence": decision.sentence}
            pod = world.pods.get(getattr(decision, "uid", ""))
            if isinstance(decision, Admit | Evict) and pod is not None:
                kind = "admit" if isinstance(decision, Admit) else "reclaim"
                self._line(world, kind, pod.workload, pod.pod_set, count=1, **why)
            elif isinstance(decision, EvictWorkload):
                self._whole(world, "requeue", world.workloads[decision.name], **why)

    def finished(self, world: World, pods: Iterable[SimPod]) -> None:
        """These have succeeded; the last of a pod set is told."""
        ended = {(pod.workload.name, pod.pod_set): pod.workload for pod in pods}
        for (_, pod_set), workload in ended.items():
            if not workload.of(pod_set):
                self._line(
                    world,
                    "finish",
                    workload,
                    pod_set,
                    count=workload.succeeded[pod_set],
                    reason="Succeeded",
                    sentence="its last pod has ended",
                )

    def rejected(self, world: World, state: State, news: list[Event]) -> None:
        """Workloads that can wait in no queue, because theirs can't be used: once, as long as that lasts."""
        rules_changed = any(isinstance(event, QueueEvent) for event in news)
        named = (event.name for event in news if isinstance(event, WorkloadEvent))
        for name in world.workloads if rules_changed else named:
            workload = world.workloads[name]
            account = state.workloads.get(f"{Workload.kind}/{CLUSTER}/{workload.uid}")
            problem = account.problem if account is not None else ""
            if problem and name not in self._rejected:
                self._rejected.add(name)
                self._whole(world, "reject", workload, reason="Problem", sentence=problem)
            elif not problem:
                self._rejected.discard(name)

    def _whole(self, world: World, kind: str, workload: SimWorkload, **why: str) -> None:
        for pod_set in workload.facts.pod_sets:
            self._line(world, kind, workload, pod_set.name, count=pod_set.count, **why)

    def _line(
        self,
        world: World,
        kind: str,
        workload: SimWorkload,
        pod_set: str,
        *,
        count: int,
        reason: str,
        sentence: str,
    ) -> None:
        """The same again is counted on the same line."""
        line = {
            "at": world.now_ms / 1000,
            "type": kind,
            "workload": workload.name,
            "podSet": pod_set,
            "count": count,
            "reason": reason,
            "sentence": sentence,
        }
        last = self.lines[-1] if self.lines else {}
        if all(last.get(field) == line[field] for field in ("at", "type", "workload", "podSet", "reason")):
            last["count"] += count
        else:
            self.lines.append(line)


def summarised(summary: dict[str, Any], world: World, *, details: bool) -> dict[str, Any]:
    """The summary, for a person to read: of many workloads only the first that wait are named, and all are
    counted by queue."""
    counts = {"admitted": summary["admitted"], "pending": summary["pending"]}
    there = counts["pending"]  # all that have pods, and so has `admitted`
    if details or len(there) <= WORKLOADS_MAX:
        return summary
    waiting = [name for name, sets in counts["pending"].items() if any(sets.values())]
    named = waiting[:NAMED_MAX]
    return {
        **summary,
        **{kind: {name: sets_of[name] for name in named} for kind, sets_of in counts.items()},
        "totals": _totals(counts, world),
        "omitted": {"workloads": len(there) - len(named), "hint": "--details names all of them"},
    }


def _totals(counts: dict[str, dict[str, dict[str, int]]], world: World) -> dict[str, dict[str, int]]:
    """By queue: workloads that have pods, and pods that run and that wait."""
    totals = {queue: Counter(workloads=0, admitted=0, pending=0) for queue in world.queues}
    for kind, sets_of in counts.items():
        for name, sets in sets_of.items():
            totals[world.workloads[name].queue][kind] += sum(sets.values())
    for name in counts["pending"]:
        totals[world.workloads[name].queue]["workloads"] += 1
    return {queue: dict(figures) for queue, figures in totals.items()}
