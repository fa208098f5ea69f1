"""Which of what a sibling asks for rises first: what is bound to the least crowded of sections, or to none.

If all rose together, in proportion to its size, who binds much to a neighbour's section would take the neighbour's room
though he could rise elsewhere, and would get more than an equal share. So what is bound to a section of a kind waits
for what else of that sibling needs this kind and can still rise where there is more for each. How much there is for
each is told by the share up to which all who are bound to a section could rise in it: to ask for much more than
others does not move that, nor does a crowd that asks for little.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Final, TypeAlias

from sluice_scheduler.core.fairness.claims import Kind

Amounts: TypeAlias = dict[Kind, float]
#: Shares are told apart by so many digits, or roundings would say who rises first among equals.
_DIGITS: Final = 9
#: Who comes first: by the share up to which all could rise in the most crowded of its sections, the largest first; of
#: two that are the same, the one that stands in fewer.
_Rank: TypeAlias = tuple[float, int]
_FIRST: Final[_Rank] = (-inf, 0)
_LAST: Final[_Rank] = (inf, 0)


class Flow:
    """What a sibling asks for that stops together: `done` of `total` is given, along one of its supplies."""

    __slots__ = ("bound", "done", "rank", "speed", "supplies", "total")

    def __init__(self, supplies: list[Amounts], speed: float, done: float) -> None:
        self.supplies = supplies  # the same in each supply that it may use, the preferred one last
        self.total = supplies.pop()
        self.speed = speed  # of `total`, beside the sibling's other flows
        self.done = done
        self.rank = _FIRST
        self.bound: list[Kind] = []  # what it is bound to crowded sections of

    @property
    def end(self) -> float:
        """How far it goes from here."""
        return (1 - self.done) / self.speed


class Crowding:
    """How much there is for each of the siblings in crowded sections, and which of their flows wait for others."""

    def __init__(self, sections: Mapping[Kind, Kind]) -> None:
        self.sections = sections  # those of which there is not enough, and what they are sections of
        self._levels: dict[Kind, float] = {}

    def measure(
        self,
        siblings: list[tuple[int, list[Flow]]],
        given: Mapping[Kind, float],
        capacity: Mapping[Kind, int],
    ) -> None:
        """`siblings`: their weights, and what they ask for."""
        asked: dict[Kind, list[tuple[float, int]]] = {}
        sections = self.sections
        for weight, flows in siblings:
            sums: Amounts = {}
            for flow in flows:
                for kind, amount in flow.total.items():
                    if kind in sections:
                        sums[kind] = sums.get(kind, 0.0) + amount
            for kind, amount in sums.items():
                asked.setdefault(kind, []).append((amount / weight, weight))
        for kind, amounts in asked.items():
            self._levels[kind] = round(_level(amounts, given.get(kind, 0.0)) / capacity[kind], _DIGITS)
        for _, flows in siblings:
            for flow in flows:
                self.place(flow)

    def place(self, flow: Flow) -> None:
        """Where it stands now."""
        inside = [kind for kind in flow.total if self._levels.get(kind, inf) < inf]
        flow.bound = [self.sections[kind] for kind in inside]
        flow.rank = (-min((self._levels[kind] for kind in inside), default=inf), len(inside))

    def who_rises(self, flows: list[Flow]) -> tuple[list[Flow], float]:
        """Those of a sibling's that wait for none of the others, and how far they go before another may begin."""
        if not any(flow.bound for flow in flows):
            return flows, inf
        first = _first(flows)
        rising, missed = [], set()
        for flow in flows:
            behind = [kind for kind in flow.bound if first[kind] < flow.rank]
            missed.update(behind)
            if not behind:
                rising.append(flow)
        if not missed:
            return flows, inf
        ends: dict[Kind, float] = {}
        for flow in rising:
            for kind in flow.total:
                if kind in missed and flow.rank == first[kind]:
                    ends[kind] = max(ends.get(kind, 0.0), flow.end)
        return rising, min(ends.values())


def _first(flows: list[Flow]) -> dict[Kind, _Rank]:
    """Of each kind: the first rank that needs it."""
    first: dict[Kind, _Rank] = {}
    for flow in flows:
        for kind in flow.total:
            if flow.rank < first.get(kind, _LAST):
                first[kind] = flow.rank
    return first


def _level(asked: list[tuple[float, int]], there: float) -> float:
    """Up to where all could rise, each to no more than it asks for. `asked`: by weight, and the weight."""
    weights = sum(weight for _, weight in asked)
    for amount, weight in sorted(asked):
        if amount * weights > there:
            return there / weights
        there -= amount * weight
        weights -= weight
    return inf


def add_times(target: Amounts, amounts: Mapping[Kind, float], times: float = 1.0) -> None:
    for kind, amount in amounts.items():
        target[kind] = target.get(kind, 0.0) + amount * times
