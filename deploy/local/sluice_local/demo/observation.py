"""What the cluster shows: an account kept from one watch on the pods, independent of Sluice's own.

One watch delivers changes in the order in which they happened, so each state in between was real: if more was
ever open at a time than the nodes have, it is seen here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sluice_local.demo.api import Api
from sluice_local.demo.scenario import CAPACITY, LABEL, TENANTS, Tenant

GATE: Final = "sluice.dev/admission"
#: Shares are averaged from so long after all tenants have begun to wait: what ran before has then finished.
_SETTLED_AFTER_S: Final = 5.0


@dataclass(slots=True, kw_only=True)
class PodSeen:
    tenant: Tenant
    waiting: bool
    holds: bool  # without gate, and not finished


@dataclass(slots=True)
class Sums:
    """One tenant's pods."""

    waiting: int = 0
    running: int = 0
    finished: int = 0
    share_seconds: float = 0.0  # of the time when all tenants waited


@dataclass(slots=True)
class Observation:
    tenants: Mapping[str, Sums] = field(default_factory=lambda: {tenant.name: Sums() for tenant in TENANTS})
    peak: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CAPACITY, 0))
    excesses: list[str] = field(default_factory=list)
    ungated: list[str] = field(default_factory=list)  # pods that were never behind the gate
    lost: list[str] = field(default_factory=list)  # pods that went without having finished
    contended_s: float = 0.0
    waits_s: dict[str, list[float]] = field(default_factory=lambda: {tenant.name: [] for tenant in TENANTS})
    _pods: dict[str, PodSeen] = field(default_factory=dict)
    _created: dict[str, float] = field(default_factory=dict)
    _all_wait_since: float | None = None
    _now: float = 0.0

    def created(self, name: str, now: float) -> None:
        self._created[name] = now

    def see(self, change: str, pod: Mapping[str, Any], now: float) -> None:
        """Take one change; `now` in seconds of any clock that only rises."""
        self._pass_time(now)
        name = pod["metadata"]["name"]
        tenant = _tenant_of(pod)
        before = self._pods.get(name)
        after = _seen(tenant, pod)
        if before is None and after.holds and change == "ADDED":
            self.ungated.append(name)
        if before and before.waiting and after.holds:
            self.waits_s[tenant.name].append(now - self._created.get(name, now))
        self._count(before, -1)
        if change == "DELETED":
            self._pods.pop(name, None)
            if before and (before.waiting or before.holds):
                self.lost.append(name)
        else:
            self._pods[name] = after
            self._count(after, 1)
        self._check()

    @property
    def finished(self) -> int:
        return sum(sums.finished for sums in self.tenants.values())

    def held(self, resource: str) -> int:
        return sum(self.tenants[t.name].running * t.requests[resource] for t in TENANTS)

    def share(self, tenant: Tenant) -> float:
        """Its dominant share, as it is, not divided by weight."""
        return (
            self.tenants[tenant.name].running * tenant.requests[tenant.dominant] / CAPACITY[tenant.dominant]
        )

    def mean_share(self, tenant: Tenant) -> float | None:
        """Over the time when all tenants waited; None if there was none."""
        return self.tenants[tenant.name].share_seconds / self.contended_s if self.contended_s else None

    def _pass_time(self, now: float) -> None:
        since = self._all_wait_since
        if since is not None and now - since > _SETTLED_AFTER_S:
            passed = now - max(self._now, since + _SETTLED_AFTER_S)
            self.contended_s += passed
            for tenant in TENANTS:
                self.tenants[tenant.name].share_seconds += passed * self.share(tenant)
        self._now = now

    def _count(self, pod: PodSeen | None, sign: int) -> None:
        if pod is not None:
            sums = self.tenants[pod.tenant.name]
            sums.waiting += sign * pod.waiting
            sums.running += sign * pod.holds
            sums.finished += sign * (not pod.waiting and not pod.holds)
        all_wait = all(sums.waiting for sums in self.tenants.values())
        self._all_wait_since = (self._all_wait_since or self._now) if all_wait else None

    def _check(self) -> None:
        for resource, capacity in CAPACITY.items():
            held = self.held(resource)
            self.peak[resource] = max(self.peak[resource], held)
            if held > capacity:
                self.excesses.append(f"{held} of {capacity} {resource}")


class Observer(threading.Thread):
    """Feeds an observation from the cluster, under a lock that readers hold too."""

    def __init__(self, api: Api, observation: Observation, lock: threading.Lock) -> None:
        super().__init__(name="observer", daemon=True)
        self._api = api
        self._observation = observation
        self._lock = lock
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            for change, pod in self._api.watch("/api/v1/pods", LABEL):
                with self._lock:
                    self._observation.see(change, pod, time.monotonic())
        except Exception as error:
            self.error = error


def percentile(values: Sequence[float], fraction: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))] if ordered else 0.0


def _tenant_of(pod: Mapping[str, Any]) -> Tenant:
    return next(t for t in TENANTS if t.namespace == pod["metadata"]["namespace"])


def _seen(tenant: Tenant, pod: Mapping[str, Any]) -> PodSeen:
    gated = any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ()))
    finished = pod["status"].get("phase") in ("Succeeded", "Failed")
    return PodSeen(tenant=tenant, waiting=gated, holds=not gated and not finished)
