"""What a picture of a simulation is drawn from: who held, deserved and asked for how much, and when."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """One queue's, as fractions that can be compared with each other. None: not known."""

    held: float
    deserved: float | None = None
    asked: float | None = None

    @property
    def lack(self) -> float | None:
        """What it asked for, and deserved if that is known, and did not hold."""
        if self.asked is None:
            return None
        due = self.asked if self.deserved is None else min(self.asked, self.deserved)
        return max(0.0, due - self.held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How things stand from `at_ms` on, until the next sample."""

    at_ms: int
    contended: bool  # some pod waits
    portions: Mapping[str, Portion]  # by queue


class Interval(NamedTuple):
    start_ms: int
    end_ms: int


def contended_times(samples: Sequence[Sample]) -> list[Interval]:
    """Intervals that touch are one."""
    found: list[Interval] = []
    for sample, after in pairwise(samples):
        if sample.contended:
            start = found.pop().start_ms if found and found[-1].end_ms == sample.at_ms else sample.at_ms
            found.append(Interval(start, after.at_ms))
    return found


def most_contended(samples: Sequence[Sample], most: int) -> list[str]:
    """So many queues, in their order: those that lacked most while some pod waited. Where nobody says what
    they asked for, those that held most then."""
    lacked: dict[str, float] = {}
    held: dict[str, float] = {}
    for sample, after in pairwise(samples):
        for queue, portion in sample.portions.items():
            elapsed = (after.at_ms - sample.at_ms) * sample.contended
            lacked[queue] = lacked.get(queue, 0.0) + (portion.lack or 0.0) * elapsed
            held[queue] = held.get(queue, 0.0) + portion.held * elapsed
    queues = list(dict.fromkeys(queue for sample in samples for queue in sample.portions))
    ranked = sorted(queues, key=lambda queue: (-lacked.get(queue, 0.0), -held.get(queue, 0.0)))
    chosen = set(ranked[:most])
    return [queue for queue in queues if queue in chosen]


def play(
    scenario: Scenario, *, policy: str = "", policies: Mapping[str, Policy] | None = None
) -> tuple[Simulation, list[Sample]]:
    """Run a scenario, and remember when some pod waited."""
    contended: dict[int, bool] = {}

    def note(_: SimulatedCell) -> None:
        contended[simulation.world.now_ms] = simulation.world.waiting > 0  # the last word of a time counts

    chosen = dict(policies) if policies is not None else None
    simulation = Simulation(scenario, policy=policy, policies=chosen, after_feed=note)
    series = simulation.run().series
    samples = list(_samples(series, contended, leaves(scenario)))
    if simulation.world.now_ms > samples[-1].at_ms:  # nothing happens any more until the scenario's end
        samples.append(replace(samples[-1], at_ms=simulation.world.now_ms))
    return simulation, samples


def leaves(scenario: Scenario) -> list[str]:
    parents = {queue.parent for queue in scenario.queues}
    return [queue.name for queue in scenario.queues if queue.name not in parents]


def _samples(
    series: Iterable[tuple[int, Mapping[str, float]]], contended: Mapping[int, bool], queues: Sequence[str]
) -> Iterator[Sample]:
    """A sample a time; where nothing was fed, pods wait as before."""
    waits = False
    for at_ms, shares in dict(series).items():
        waits = contended.get(at_ms, waits)
        portions = {queue: Portion(held=shares[queue]) for queue in queues}
        yield Sample(at_ms=at_ms, contended=waits, portions=portions)
