"""Policies beside each other on the same events: how long queues wait, how evenly they hold, at what cost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from sluice_scheduler.core.policies import Policy
from sluice_scheduler.simulator.run import Result, Simulation
from sluice_scheduler.simulator.scenario import Scenario
from sluice_scheduler.simulator.statistics import jain


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    policy: str
    result: Result
    mean_shares: dict[str, float]  # of leaves, over time
    mean_waits_s: dict[str, float]
    #: Jain's index of the leaves' mean shares, each by what its weights entitle it to.
    evenness: float

    def as_line(self) -> dict[str, Any]:
        summary = self.result.summary
        return {
            "type": "comparison",
            "policy": self.policy,
            "wait_mean_ms": {queue: round(wait * 1000) for queue, wait in self.mean_waits_s.items()},
            "wait_ms": summary["wait_ms"],
            "mean_shares": {queue: round(share, 6) for queue, share in self.mean_shares.items()},
            "jain": round(self.evenness, 4),
            "utilisation": summary["utilisation"],
            "reclaims": summary["reclaims"],
            "decisions": summary["decisions"],
            "at": summary["at"],
        }


def compare(scenario: Scenario, names: list[str], policies: Mapping[str, Policy]) -> list[Outcome]:
    """Each in a process of its own, as many at a time as there are processors."""
    workers = min(len(names), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(_play, scenario, policies), names))


def _play(scenario: Scenario, policies: Mapping[str, Policy], name: str) -> Outcome:
    result = Simulation(scenario, policy=name, policies=dict(policies)).run()
    parents = {queue.parent for queue in scenario.queues}
    leaves = [queue.name for queue in scenario.queues if queue.name not in parents]
    means = _over_time(result, leaves)
    entitled = _entitlements(scenario)
    return Outcome(
        policy=name,
        result=result,
        mean_shares=means,
        mean_waits_s={queue: result.mean_waits_ms[queue] / 1000 for queue in leaves},
        evenness=jain(means[queue] / entitled[queue] for queue in leaves),
    )


def _over_time(result: Result, queues: list[str]) -> dict[str, float]:
    """Dominant shares weighed by how long they were held."""
    sums = dict.fromkeys(queues, 0.0)
    for (at, shares), (until, _) in zip(result.series, result.series[1:], strict=False):
        for queue in queues:
            sums[queue] += shares[queue] * (until - at)
    whole = result.series[-1][0] - result.series[0][0] if result.series else 0
    return {queue: total / whole if whole else 0.0 for queue, total in sums.items()}


def _entitlements(scenario: Scenario) -> dict[str, float]:
    """What a queue's weighted share would be if everybody asked for more than there is.

    A queue's own weight is in its share already, so only the weights above it and its siblings count.
    """
    by_name = {queue.name: queue for queue in scenario.queues}

    def part(name: str) -> float:
        queue = by_name[name]
        siblings = sum(other.weight for other in scenario.queues if other.parent == queue.parent)
        above = part(queue.parent) * by_name[queue.parent].weight if queue.parent else 1.0
        return above / siblings

    return {name: part(name) for name in by_name}


def table(outcomes: list[Outcome]) -> list[str]:
    lines = [f"{'policy':<12} {'wait mean':>10} {'p50':>8} {'p99':>10} {'Jain':>7} {'reclaims':>9}  mean use"]
    for outcome in outcomes:
        summary = outcome.result.summary
        waits = outcome.result.wait_quantiles_ms
        use = ", ".join(f"{name} {part:.1%}" for name, part in summary["utilisation"].items())
        lines.append(
            f"{outcome.policy:<12} {outcome.result.mean_wait_ms / 1000:>9.0f}s {waits['p50'] / 1000:>7.0f}s "
            f"{waits['p99'] / 1000:>9.0f}s {outcome.evenness:>7.3f} {summary['reclaims']:>9}  {use}"
        )
    names = [outcome.policy for outcome in outcomes]
    lines += ["", f"{'mean wait':<24} " + " ".join(f"{name:>12}" for name in names)]
    for queue in outcomes[0].mean_waits_s:
        found = " ".join(f"{outcome.mean_waits_s[queue]:>11.0f}s" for outcome in outcomes)
        lines.append(f"{queue:<24} {found}")
    lines += ["", f"{'mean share, by weight':<24} " + " ".join(f"{name:>12}" for name in names)]
    for queue in outcomes[0].mean_shares:
        found = " ".join(f"{outcome.mean_shares[queue]:>12.4f}" for outcome in outcomes)
        lines.append(f"{queue:<24} {found}")
    return lines
