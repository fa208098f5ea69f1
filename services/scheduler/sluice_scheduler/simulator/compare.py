"""Policies beside each other on the same events: how long queues wait, how evenly they hold, at what cost."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from typing import Any

from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.simulator.run import Result
from sluice_scheduler.simulator.samples import Sample, leaves, play
from sluice_scheduler.simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    policy: str
    result: Result
    mean_shares: dict[str, float]  # of leaves, by weight, while some pod waited
    mean_waits_s: dict[str, float]
    samples: Sequence[Sample]  # of leaves too; what pictures are drawn from

    def as_line(self) -> dict[str, Any]:
        summary = self.result.summary
        return {
            "type": "comparison",
            "policy": self.policy,
            "wait_mean_ms": {queue: round(wait * 1000) for queue, wait in self.mean_waits_s.items()},
            "wait_ms": summary["wait_ms"],
            "still_waiting": summary["still_waiting"],
            "contended_ms": self.result.contended_ms,
            "mean_shares": {queue: round(share, 6) for queue, share in self.mean_shares.items()},
            "jain": round(self.result.evenness, 4),
            "contended_utilisation": self.result.contended_use,
            "utilisation": summary["utilisation"],
            "reclaims": summary["reclaims"],
            "lost_work_ms": summary["lost_work_ms"],
            "lost_work_total_ms": summary["lost_work_total_ms"],
            "decisions": summary["decisions"],
            "at": summary["at"],
        }


def compare(scenario: Scenario, names: list[str], policies: Mapping[str, Policy]) -> list[Outcome]:
    """Each in a process of its own, as many at a time as there are processors."""
    workers = min(len(names), os.cpu_count() or 1)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return list(pool.map(partial(_play, scenario, policies), names))


def _play(scenario: Scenario, policies: Mapping[str, Policy], name: str) -> Outcome:
    simulation, samples = play(scenario, policy=name, policies=policies)
    result, queues = simulation.result, leaves(scenario)
    return Outcome(
        policy=name,
        result=result,
        mean_shares={queue: result.mean_shares[queue] for queue in queues},
        mean_waits_s={queue: result.mean_waits_ms[queue] / 1000 for queue in queues},
        samples=samples,
    )


def table(outcomes: list[Outcome]) -> list[str]:
    """Waits of all pods, and how many wait still; all the rest is of the time in which some pod waited."""
    head = f"{'wait mean':>10} {'p50':>8} {'p99':>10} {'waiting':>8} {'contended':>10}"
    head += f" {'Jain':>7} {'reclaims':>9} {'lost work':>10}"
    width = _width(outcomes)
    lines = [f"{'policy':<{width}} {head}"]
    for outcome in outcomes:
        result = outcome.result
        waits = result.wait_quantiles_ms
        lines.append(
            f"{outcome.policy:<{width}} {result.mean_wait_ms / 1000:>9.0f}s {waits['p50'] / 1000:>7.0f}s "
            f"{waits['p99'] / 1000:>9.0f}s {sum(result.summary['still_waiting'].values()):>8} "
            f"{result.contended_ms / 1000:>9.0f}s {result.evenness:>7.3f} "
            f"{result.summary['reclaims']:>9} {result.summary['lost_work_total_ms'] / 1000:>9.0f}s"
        )
    lines += _block("mean wait, seconds", [outcome.mean_waits_s for outcome in outcomes], outcomes, ".0f")
    lines += _block("mean share, by weight", [outcome.mean_shares for outcome in outcomes], outcomes, ".4f")
    lost = [_seconds(outcome.result.summary["lost_work_ms"]) for outcome in outcomes]
    lines += _block("lost work, seconds", lost, outcomes, ".0f")
    uses = [outcome.result.contended_use for outcome in outcomes]
    return lines + _block("mean use while pods wait", uses, outcomes, ".1%")


def _seconds(by_queue: Mapping[str, int]) -> dict[str, float]:
    """Of those that lost anything."""
    return {queue: time_ms / 1000 for queue, time_ms in by_queue.items() if time_ms}


def _width(outcomes: list[Outcome]) -> int:
    """Of a column: a plug-in's name may be long."""
    return max(12, *(len(outcome.policy) for outcome in outcomes))


def _block(title: str, columns: list[dict[str, float]], outcomes: list[Outcome], form: str) -> list[str]:
    if not any(columns):
        return []
    width = _width(outcomes)
    lines = ["", f"{title:<24} " + " ".join(f"{outcome.policy:>{width}}" for outcome in outcomes)]
    for name in dict.fromkeys(name for column in columns for name in column):
        found = " ".join(f"{column.get(name, 0.0):>{width}{form}}" for column in columns)
        lines.append(f"{name:<24} {found}")
    return lines
