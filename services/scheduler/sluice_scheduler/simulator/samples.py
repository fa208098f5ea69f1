"""What a picture of a simulation is drawn from: who held, deserved and asked for how much, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from sluice_scheduler.core.fairness.claims import Kind
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.shares import SHARE_ONE, dominant_share
from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Portion:
    """One queue's dominant shares, by weight, so that queues can be compared with each other. None: not known."""

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


def window(everybody: Sequence[Sequence[Sample]]) -> Interval:
    """What is worth drawing: all of the time, or that around all contention if that is less than half of it.
    Something of a run that is over in no time is drawn too."""
    end_ms = max(1, *(samples[-1].at_ms for samples in everybody))
    contended = [interval for samples in everybody for interval in contended_times(samples)]
    if not contended:
        return Interval(0, end_ms)
    first_ms, last_ms = min(each.start_ms for each in contended), max(each.end_ms for each in contended)
    margin_ms = (last_ms - first_ms) // 10
    found = Interval(max(0, first_ms - margin_ms), min(end_ms, last_ms + margin_ms))
    return found if found.end_ms - found.start_ms < end_ms / 2 else Interval(0, end_ms)


def averaged(samples: Sequence[Sample], within: Interval, most: int) -> list[Sample]:
    """So many samples at most: where there are more, means over equal times."""
    inside = [
        (sample, max(sample.at_ms, within.start_ms), min(after.at_ms, within.end_ms))
        for sample, after in pairwise(samples)
        if after.at_ms > within.start_ms and sample.at_ms < within.end_ms
    ]
    if len(inside) <= most:
        return list(samples)
    span_ms = within.end_ms - within.start_ms
    pieces: list[list[tuple[Sample, int]]] = [[] for _ in range(most)]
    for sample, start_ms, end_ms in inside:
        first, last = ((at - within.start_ms) * most // span_ms for at in (start_ms, end_ms - 1))
        for bucket in range(first, last + 1):
            begins, ends = (within.start_ms + span_ms * at // most for at in (bucket, bucket + 1))
            pieces[bucket].append((sample, min(end_ms, ends) - max(start_ms, begins)))
    found = [
        _mean(within.start_ms + span_ms * bucket // most, piece)
        for bucket, piece in enumerate(pieces)
        if any(elapsed > 0 for _, elapsed in piece)
    ]
    return [*found, replace(found[-1], at_ms=within.end_ms)]


def _mean(at_ms: int, pieces: Sequence[tuple[Sample, int]]) -> Sample:
    def mean(queue: str, of: Callable[[Portion], float | None]) -> float | None:
        known = [(figure, time) for each, time in pieces if (figure := of(each.portions[queue])) is not None]
        whole = sum(time for _, time in known)
        return sum(figure * time for figure, time in known) / whole if whole else None

    portions = {
        queue: Portion(
            held=mean(queue, lambda each: each.held) or 0.0,
            deserved=mean(queue, lambda each: each.deserved),
            asked=mean(queue, lambda each: each.asked),
        )
        for queue in pieces[0][0].portions
    }
    return Sample(at_ms=at_ms, contended=any(each.contended for each, _ in pieces), portions=portions)


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
    """Run a scenario, and remember when some pod waited, and what queues deserved and asked for then."""
    claims: dict[int, Claimed] = {}
    queues = leaves(scenario)
    meter = Meter()

    def note(cell: SimulatedCell) -> None:
        claims[simulation.world.now_ms] = Claimed(  # the last word of a time counts
            contended=simulation.world.waiting > 0,
            by_queue={queue: meter.read(cell, queue) for queue in queues},
        )

    chosen = dict(policies) if policies is not None else None
    simulation = Simulation(scenario, policy=policy, policies=chosen, after_feed=note)
    series = simulation.run().series
    samples = list(_samples(series, claims, queues))
    if simulation.world.now_ms > samples[-1].at_ms:  # nothing happens any more until the scenario's end
        samples.append(replace(samples[-1], at_ms=simulation.world.now_ms))
    return simulation, samples


def leaves(scenario: Scenario) -> list[str]:
    parents = {queue.parent for queue in scenario.queues}
    return [queue.name for queue in scenario.queues if queue.name not in parents]


class Claimed(NamedTuple):
    """What is noted of one time beside what is held."""

    contended: bool
    by_queue: Mapping[str, tuple[float, float]]  # what each deserves, and what it asks for


class Meter:
    """Reads off the core what queues deserve and ask for; what a queue deserves changes less often than it is read."""

    def __init__(self) -> None:
        self._deserved: dict[str, tuple[Mapping[Kind, int], Mapping[Kind, int], float]] = {}

    def read(self, cell: SimulatedCell, queue: str) -> tuple[float, float]:
        forest = cell.state.forest
        leaf = forest.leaves[queue]
        known = self._deserved.get(queue)
        if known is None or known[0] is not leaf.deserved or known[1] is not forest.whole:
            share = leaf.deserved_share(forest.whole) / SHARE_ONE
            known = self._deserved[queue] = (leaf.deserved, forest.whole, share)
        return known[2], dominant_share(leaf.demand(), forest.whole, leaf.weight) / SHARE_ONE


def _samples(
    series: Iterable[tuple[int, Mapping[str, float]]], claims: Mapping[int, Claimed], queues: Sequence[str]
) -> Iterator[Sample]:
    """A sample a time; where nothing was fed, all is as before."""
    now = Claimed(contended=False, by_queue={})
    shares_at = dict(series)
    shares: Mapping[str, float] = {}
    for at_ms in sorted(shares_at.keys() | claims.keys()):
        shares, now = shares_at.get(at_ms, shares), claims.get(at_ms, now)
        portions = {}
        for queue in queues:
            deserved, asked = now.by_queue.get(queue, (None, None))
            portions[queue] = Portion(held=shares.get(queue, 0.0), deserved=deserved, asked=asked)
        yield Sample(at_ms=at_ms, contended=now.contended, portions=portions)
