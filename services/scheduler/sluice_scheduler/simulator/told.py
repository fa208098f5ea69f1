"""What is told of a simulation as it goes: a line for what happens at once to pods of one pod set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluice.decisions import Admit, Decision, Evict, EvictWorkload
from sluice.events import Event, QueueEvent, WorkloadEvent

from sluice_scheduler.core import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.simulator.cell import CLUSTER
from sluice_scheduler.simulator.world import SimPod, SimWorkload, World


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
