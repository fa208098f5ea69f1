"""What the cluster shows: an account kept from one watch on the pods, independent of Sluice's own.

One watch delivers changes in the order in which they happened, so each state in between was real: if more was
ever open at a time than the nodes have, it is seen here. A second one shows DynamicWorkloads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_local.demo.api import Api
from sluice_local.demo.scenario import CAST, LABEL, Cast, Tenant

GATE: Final = "sluice.dev/admission"
#: Shares are averaged from so long after all tenants have begun to wait: what is too much is then taken.
_SETTLED_AFTER_S: Final = 2.0
_UNITS: Final = {"m": 1, "Mi": 2**20, "Gi": 2**30}


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSeen:
    tenant: Tenant
    waiting: bool
    holds: bool  # without gate, and not finished
    requests: Mapping[str, int]
    since: float


@dataclass(slots=True)
class Sums:
    """One tenant's pods."""

    held: dict[str, int]
    waiting: int = 0
    running: int = 0
    most: int = 0  # that ran at a time
    most_held: dict[str, int] = field(default_factory=dict)
    ended: int = 0  # finished, or deleted while they ran
    share_seconds: float = 0.0  # of the time when all tenants waited


@dataclass(slots=True)
class Observation:
    cast: Cast = CAST
    tenants: Mapping[str, Sums] = field(init=False)
    workloads: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # by tenant; of what is gone too
    gone: set[str] = field(default_factory=set)  # tenants whose application was deleted
    peak: dict[str, int] = field(init=False)
    excesses: list[str] = field(default_factory=list)
    ungated: list[str] = field(default_factory=list)  # pods that were never behind the gate
    created: int = 0
    contended_s: float = 0.0
    waits_s: dict[str, list[float]] = field(init=False)
    _pods: dict[str, PodSeen] = field(default_factory=dict)
    _all_wait_since: float | None = None
    _now: float = 0.0

    def __post_init__(self) -> None:
        names = [tenant.name for tenant in self.cast.tenants]
        self.tenants = {name: Sums(held=self._nothing()) for name in names}
        self.peak = self._nothing()
        self.waits_s = {name: [] for name in names}

    def _nothing(self) -> dict[str, int]:
        return dict.fromkeys(self.cast.capacity, 0)

    def see(self, change: str, pod: Mapping[str, Any], now: float) -> None:
        """Take one change; `now` in seconds of any clock that only rises."""
        tenant = self.cast.tenant_in(pod["metadata"]["namespace"])
        if tenant is None:
            return
        self._pass_time(now)
        uid = pod["metadata"]["uid"]
        before = self._pods.get(uid)
        after = _seen(tenant, pod, before.since if before else now)
        if before is None:
            self.created += 1
            if after.holds and change == "ADDED":
                self.ungated.append(pod["metadata"]["name"])
        if before and before.waiting and after.holds:
            self.waits_s[tenant.name].append(now - before.since)
        self._count(before, -1)
        if change == "DELETED":
            self._pods.pop(uid, None)
            self.tenants[tenant.name].ended += bool(before and before.holds)
        else:
            self._pods[uid] = after
            self.tenants[tenant.name].ended += bool(
                before and before.holds and not after.holds and not after.waiting
            )
            self._count(after, 1)
        self._check()

    def see_workload(self, change: str, workload: Mapping[str, Any]) -> None:
        tenant = self.cast.tenant_in(workload["metadata"]["namespace"])
        if tenant is not None and workload["spec"]["application"]["name"] == tenant.name:
            self.workloads[tenant.name] = workload
            (self.gone.add if change == "DELETED" else self.gone.discard)(tenant.name)

    @property
    def ended(self) -> int:
        return sum(sums.ended for sums in self.tenants.values())

    @property
    def is_quiet(self) -> bool:
        """Nothing waits, and nothing is held."""
        return not any(sums.waiting or sums.running for sums in self.tenants.values())

    def held(self, resource: str) -> int:
        return sum(sums.held[resource] for sums in self.tenants.values())

    def status(self, tenant: Tenant) -> Mapping[str, Any]:
        """Of its application's DynamicWorkload."""
        status: Mapping[str, Any] = self.workloads.get(tenant.name, {}).get("status", {})
        return status

    def phase(self, tenant: Tenant) -> str:
        return "gone" if tenant.name in self.gone else self.status(tenant).get("phase", "")

    def share(self, tenant: Tenant) -> float:
        """Its dominant share, as it is, not divided by weight."""
        return self.tenants[tenant.name].held[tenant.dominant] / self.cast.capacity[tenant.dominant]

    def mean_share(self, tenant: Tenant) -> float | None:
        """Over the time when all tenants waited; None if there was none."""
        return self.tenants[tenant.name].share_seconds / self.contended_s if self.contended_s else None

    def _pass_time(self, now: float) -> None:
        since = self._all_wait_since
        if since is not None and now - since > _SETTLED_AFTER_S:
            passed = now - max(self._now, since + _SETTLED_AFTER_S)
            self.contended_s += passed
            for tenant in self.cast.tenants:
                self.tenants[tenant.name].share_seconds += passed * self.share(tenant)
        self._now = now

    def _count(self, pod: PodSeen | None, sign: int) -> None:
        if pod is not None:
            sums = self.tenants[pod.tenant.name]
            sums.waiting += sign * pod.waiting
            if pod.holds:
                sums.running += sign
                sums.most = max(sums.most, sums.running)
                for resource, amount in pod.requests.items():
                    sums.held[resource] += sign * amount
                    sums.most_held[resource] = max(sums.most_held.get(resource, 0), sums.held[resource])
        all_wait = all(sums.waiting for sums in self.tenants.values())
        self._all_wait_since = (self._all_wait_since or self._now) if all_wait else None

    def _check(self) -> None:
        for resource, capacity in self.cast.capacity.items():
            held = self.held(resource)
            self.peak[resource] = max(self.peak[resource], held)
            if held > capacity:
                self.excesses.append(f"{held} of {capacity} {resource}")


class Observer(threading.Thread):
    """Feeds an observation from one watch, under a lock that readers hold too."""

    def __init__(self, api: Api, observation: Observation, lock: threading.Lock, *, pods: bool) -> None:
        super().__init__(name="observer of pods" if pods else "observer of workloads", daemon=True)
        self._api = api
        self._observation = observation
        self._lock = lock
        self._pods = pods
        self.error: Exception | None = None

    def run(self) -> None:
        path = "/api/v1/pods" if self._pods else "/apis/sluice.dev/v1alpha1/dynamicworkloads"
        try:
            for change, seen in self._api.watch(path, LABEL if self._pods else ""):
                with self._lock:
                    if self._pods:
                        self._observation.see(change, seen, time.monotonic())
                    else:
                        self._observation.see_workload(change, seen)
        except Exception as error:
            self.error = error


def percentile(values: Sequence[float], fraction: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0.0


def quantity(resource: str, text: str) -> int:
    """As far as the demo's applications write them: in thousandths of a cpu, and bytes."""
    for unit, scale in _UNITS.items():
        if text.endswith(unit):
            return int(text.removesuffix(unit)) * scale
    return int(text) * (1000 if resource == "cpu" else 1)


def _seen(tenant: Tenant, pod: Mapping[str, Any], since: float) -> PodSeen:
    gated = any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))
    finished = pod["status"].get("phase") in ("Succeeded", "Failed")
    requests = {"cpu": 0, "memory": 0, "pods": 1}
    for container in pod["spec"]["containers"]:
        for resource, text in container["resources"]["requests"].items():
            if resource in requests:
                requests[resource] += quantity(resource, text)
    holds = not gated and not finished
    return PodSeen(tenant=tenant, waiting=gated, holds=holds, requests=requests, since=since)
