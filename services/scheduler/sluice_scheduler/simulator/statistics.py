"""What a simulation measures: waits, utilisation, and how evenly it all went."""

from __future__ import annotations

from collections.abc import Iterable
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


class Statistics:
    def __init__(self, queues: list[str]) -> None:
        self.reclaims = 0
        self._waits: dict[str, list[int]] = {queue: [] for queue in queues}
        self._now_ms = 0
        self._held: dict[tuple[str, str], float] = {}  # amount × ms
        self._offered: dict[tuple[str, str], float] = {}

    def admitted(self, pod: SimPod, now_ms: int) -> None:
        self._waits[pod.workload.queue].append(now_ms - pod.created_ms)

    def advance(self, now_ms: int, world: World) -> None:
        """Count the time since the last call with what was held during it."""
        elapsed = now_ms - self._now_ms
        if elapsed <= 0:
            return
        self._now_ms = now_ms
        for (pool, resource), amount in world.held.items():
            key = (pool, resource)
            self._held[key] = self._held.get(key, 0.0) + amount * elapsed
        for pool, capacity in world.capacity.items():
            for resource, amount in capacity.items():
                key = (pool, resource)
                self._offered[key] = self._offered.get(key, 0.0) + amount * elapsed

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

    def utilisation(self) -> dict[str, float]:
        return {
            f"{pool}/{resource}": round(self._held.get((pool, resource), 0.0) / offered, 6)
            if offered
            else 0.0
            for (pool, resource), offered in sorted(self._offered.items())
        }
