"""Applications of one cell, whose objects and pods do at once what is decided about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from one_cell import OneCell
from sluice.decisions import (
    Admit,
    AdmitWorkload,
    CreatePod,
    Decision,
    Delete,
    Evict,
    EvictWorkload,
    ReportWorkload,
)
from sluice.events import PodEvent, PodFacts, PodSetFacts, WorkloadEvent, WorkloadFacts


def pod_set(
    name: str, count: int, least: int, most: int | None = None, *, cpu: int = 1000, **facts: Any
) -> Any:
    return PodSetFacts(
        name=name, count=count, min_count=least, max_count=most, requests={"cpu": cpu}, **facts
    )


class Applications(OneCell):
    """Room for 10 cpu, and a queue with a namespace of the same name for each tenant."""

    def __init__(self, *tenants: str, cpu: int = 10_000) -> None:
        super().__init__()
        self.pool(cpu=cpu)
        for tenant in tenants or ("team",):
            self.queue(tenant)
            self.namespace(tenant)
        self._tenants = tenants or ("team",)
        self._cpu = cpu
        self.evicted_pods_fail = False  # they do, where their nodes are slow to delete them
        self.nodes_are_slow = False  # then they take no evicted pod away
        self.carry_out_nothing = False
        self.operators_sleep = False  # then those that are suspended keep their pods
        self._applications: dict[str, tuple[str, WorkloadFacts]] = {}
        self._pods: dict[str, tuple[str, PodFacts]] = {}
        self._carried_out = len(self.decisions)

    # ---- what the world does

    def application(self, name: str, *pod_sets: PodSetFacts, tenant: str = "team", **facts: Any) -> None:
        """Create an application, or change it."""
        _, before = self._applications.get(
            name,
            (
                "",
                WorkloadFacts(
                    pod_sets=(), created_ms=len(self._applications), kind="RayCluster", suspendable=True
                ),
            ),
        )
        after = replace(before, pod_sets=pod_sets or before.pod_sets, **facts)
        self._applications[name] = tenant, after
        self._tell_application(name)
        self.carry_out()

    def delete_application(self, name: str) -> None:
        tenant, facts = self._applications.pop(name)
        self.tell(WorkloadEvent, name, change="DELETED", namespace=tenant, workload=facts)
        self.carry_out()

    def pods(self, *names: str, of: str = "", pod_set: str = "", tenant: str = "team", **facts: Any) -> None:
        """Its operator creates pods, all at once; they are controlled by the application `of`."""
        for name in names:
            pod = PodFacts(
                **{
                    "requests": {"cpu": 1000},
                    "created_ms": len(self._pods),
                    "gated": True,
                    "owner": f"workload-{of}" if of else "",
                    "pod_set": pod_set,
                    **facts,
                }
            )
            self._pods[name] = tenant, pod
            self._tell_pod(name)
        self.carry_out()

    def become(self, phase: str, *names: str) -> None:
        for name in names:
            self._change_pod(name, phase=phase)
        self.carry_out()

    def delete_pods(self, *names: str) -> None:
        for name in names:
            tenant, facts = self._pods.pop(name)
            self.tell(PodEvent, name, change="DELETED", namespace=tenant, pod=facts)
        self.carry_out()

    def pass_seconds(self, seconds: int) -> None:
        for _ in range(seconds):
            self.tick()
            self.carry_out()

    def list_everything(self, *, pods_first: bool = False) -> None:
        """As the watcher does in answer to a rebuild; each kind comes when the API server answers."""
        self.pool(cpu=self._cpu)
        for tenant in self._tenants:
            self.queue(tenant)
            self.namespace(tenant)
        for name in self._pods if pods_first else ():
            self._tell_pod(name)
        for name in self._applications:
            self._tell_application(name)
        for name in () if pods_first else self._pods:
            self._tell_pod(name)

    # ---- what becomes of decisions

    def carry_out(self) -> None:
        while self._carried_out < len(self.decisions) and not self.carry_out_nothing:
            decision = self.decisions[self._carried_out]
            self._carried_out += 1
            self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        by = {"decision": f"1-1.{decision.seq}"}
        match decision:
            case Admit() if decision.name in self._pods:
                narrowed = self._pods[decision.name][1].node_selector | decision.node_selector
                opened = {"gated": False, "phase": "Running", "node_selector": narrowed}
                self._change_pod(decision.name, **opened, **by)
            case CreatePod():
                self.pods(decision.name, of=decision.job, pod_set="main", tenant=decision.namespace)
            case Evict() if self.evicted_pods_fail:
                self._change_pod(decision.name, phase="Failed")
            case Evict() if self.nodes_are_slow:
                pass
            case Evict() | Delete() if decision.name in self._pods:
                self.delete_pods(decision.name)
            case AdmitWorkload() if decision.name in self._applications:
                self._release(decision.name, released=True, **by)
            case EvictWorkload() if decision.name in self._applications:
                self._release(decision.name, released=False, **by)
                if decision.suspendable and not self.operators_sleep:
                    owner = f"workload-{decision.name}"
                    self.delete_pods(*(name for name, (_, pod) in self._pods.items() if pod.owner == owner))

    def _release(self, name: str, **facts: Any) -> None:
        tenant, before = self._applications[name]
        self._applications[name] = tenant, replace(before, **facts)
        self._tell_application(name)

    def _change_pod(self, name: str, **facts: Any) -> None:
        tenant, before = self._pods[name]
        self._pods[name] = tenant, replace(before, **facts)
        self._tell_pod(name)

    def _tell_application(self, name: str) -> None:
        tenant, facts = self._applications[name]
        self.tell(WorkloadEvent, name, namespace=tenant, workload=facts)

    def _tell_pod(self, name: str) -> None:
        tenant, facts = self._pods[name]
        self.tell(PodEvent, name, namespace=tenant, pod=facts)

    # ---- what is to be seen

    @property
    def open(self) -> set[str]:
        return {name for name, (_, pod) in self._pods.items() if not pod.gated and not pod.finished}

    @property
    def there(self) -> set[str]:
        return set(self._pods)

    def is_released(self, name: str) -> bool:
        return self._applications[name][1].released

    def held(self, queue: str = "team") -> int:
        """cpu that the books say is held, reservations included."""
        return int(self.figures(queue)["usage"].get("default/cpu", 0))

    def shown(self, name: str, *, of: str = "") -> ReportWorkload:
        """The last status of its DynamicWorkload; `of` is its application's uid where it is no object."""
        self.pass_seconds(1)
        uid = of or f"workload-{name}"
        return next(
            decision
            for decision in reversed(self.decisions)
            if isinstance(decision, ReportWorkload) and decision.uid == uid
        )
