"""What a simulation measures: waits, utilisation, and how evenly it all went."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from sluice.quantities import CPU

if TYPE_CHECKING:
    from sluice_scheduler.simulator.world import SimPod, World


def whole(resource: str, amount: int) -> float:
    """An amount in base units as scenarios tell it: cores and bytes."""
    return amount / 1000 if resource == CPU else amount


def percentile(values: list[int], part: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else 0


def jain(values: Iterable[float]) -> float:
    """Jain's index: 1 when all are equal, 1/n when one has everything."""
    shares = list(values)
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else 1.0


def _mean(values: list[int]) -> float:
    return sum(values) / len(values) if values else 0.0


class Use:
    """What was held of what there was, over some time."""

    def __init__(self) -> None:
        self._held: dict[tuple[str, str], float] = {}  # amount × ms, by pool and resource
        self._offered: dict[tuple[str, str], float] = {}

    def add(self, elapsed_ms: int, world: World) -> None:
        for key, amount in world.held.items():
            self._held[key] = self._held.get(key, 0.0) + amount * elapsed_ms
        for pool, capacity in world.capacity.items():
            for resource, amount in capacity.items():
                key = (pool, resource)
                self._offered[key] = self._offered.get(key, 0.0) + amount * elapsed_ms

    def mean(self) -> dict[str, float]:
        return {
            f"{pool}/{resource}": round(self._held.get((pool, resource), 0.0) / offered, 6)
            if offered
            else 0.0
            for (pool, resource), offered in sorted(self._offered.items())
        }


class Statistics:
    def __init__(self, queues: list[str]) -> None:
        self.reclaims = 0
        self.use = Use()
        #: The same of the time in which some pod waited; and how long that was.
        self.contended_use = Use()
        self.contended_ms = 0
        self._waits: dict[str, list[int]] = {queue: [] for queue in queues}
        self.still_waiting = dict.fromkeys(queues, 0)  # pods, at the end
        self._now_ms = 0
        self._shares = dict.fromkeys(queues, 0.0)  # × ms of contention
        self._evenness = 0.0

    def waited(self, pod: SimPod, now_ms: int) -> None:
        self._waits[pod.workload.queue].append(now_ms - pod.created_ms)

    def over(self, pods: Iterable[SimPod], now_ms: int) -> None:
        """The run is over: who still waits has waited until now, or those who wait longest would not count."""
        for pod in pods:
            if not pod.runs:
                self.waited(pod, now_ms)
                self.still_waiting[pod.workload.queue] += 1

    def advance(self, now_ms: int, world: World, shares: Mapping[str, float], evenness: float) -> None:
        """Count the time since the last call with what was held during it."""
        elapsed = now_ms - self._now_ms
        if elapsed <= 0:
            return
        self._now_ms = now_ms
        self.use.add(elapsed, world)
        if world.waiting:
            self.contended_ms += elapsed
            self.contended_use.add(elapsed, world)
            self._evenness += evenness * elapsed
            for queue, share in shares.items():
                self._shares[queue] += share * elapsed

    def mean_shares(self) -> dict[str, float]:
        """Of the time in which some pod waited."""
        return {queue: total / max(1, self.contended_ms) for queue, total in self._shares.items()}

    def evenness(self) -> float:
        """Of the time in which some pod waited; while none does, everybody has what he asks for."""
        return self._evenness / self.contended_ms if self.contended_ms else 1.0

    def mean_waits(self) -> dict[str, float]:
        return {queue: _mean(waits) for queue, waits in self._waits.items()}

    def mean_wait(self) -> float:
        return _mean(self._all_waits())

    def wait_quantiles(self) -> dict[str, int]:
        waits = self._all_waits()
        return {"p50": percentile(waits, 0.5), "p99": percentile(waits, 0.99)}

    def _all_waits(self) -> list[int]:
        return [wait for waits in self._waits.values() for wait in waits]

    def waits(self) -> dict[str, dict[str, int]]:
        return {
            queue: {"p50": percentile(waits, 0.5), "p99": percentile(waits, 0.99)}
            for queue, waits in self._waits.items()
        }
