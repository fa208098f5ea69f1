"""The potential: what a move must raise, strictly and in this order (ADR 0011).

1. What is held within guarantees, in whole units, in the order in which they were admitted: a unit that lifts its
   branch over its guarantee counts nothing, so a gang can't hide behind a guarantee of one pod. Each resource is
   counted for itself at each level of the tree: none may fall, and the uppermost that changes must rise.
2. What is held within what is deserved: the sum over queues and kinds of the lesser of what is held and what is
   deserved. The unit with which a queue crosses what it deserves counts its part for a tenure, and nothing afterwards.
3. The shares of the tree's levels in ascending order, the level below the root first.
4. The number of pods.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Kind, KindCost
from sluice_scheduler.core.fairness.shares import FRACTION_BITS, part_of_kind, slack
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.covered import Covered
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.state.members import is_growth, priority_of
from sluice_scheduler.core.state.promises import promised_cost
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit, in_order_of_protection, in_victims_order, unit_keys
from sluice_scheduler.core.stored.entities import Promise

#: What branches hold within guarantees, by the supplies and the resource that these name.
_Guaranteed: TypeAlias = dict[tuple[Branch, tuple[Kind, ...]], int]

#: Growth or not, and priority: what is protected least stands highest, and of one rank the newest is.
_Rank: TypeAlias = tuple[bool, int]


class Came(NamedTuple):
    """What would come in, or is promised: of the rank of the unit that it will be, and the newest of that. Once it is
    there, kind and priority say how far it is protected, and not that it came last."""

    rank: _Rank
    cost: Cost


def came_of(state: State, claim: Claim, cost: Cost) -> Came:
    return Came((is_growth(state, claim.key), -claim.priority), cost)


def _rank(unit: Unit) -> _Rank:
    return unit.growth, -unit.priority


class Worth:
    """What queues hold is worth, kept while one pass takes back: victims that were worth nothing change nothing."""

    def __init__(self, state: State, budget: Budget) -> None:
        self._state = state
        self._budget = budget
        self._covered: dict[Branch, Covered] = {}
        self._crossing: dict[Branch, _Crossing] = {}
        self._promised: dict[str, Came] = {}

    def forget(self, units: Collection[Unit], claimant: Branch, promised: Came) -> None:
        """These were taken back for a claim that is promised room: what stands on either is worked out anew."""
        gone = {key for unit in units for key in unit_keys(unit)}
        for branch in dict.fromkeys(branch for unit in units for branch in unit.leaf.path):
            known = self._covered.get(branch)
            if known is not None:
                known.remove(gone)
        for unit in units:
            crossing = self._crossing.get(unit.leaf)
            if crossing is not None and not crossing.stands_without((unit,)):
                del self._crossing[unit.leaf]
        crossing = self._crossing.pop(claimant, None)
        if crossing is None or not crossing.is_crossed or not units or any(u.leaf is claimant for u in units):
            return  # inside a queue, also what was promised to others may be given up
        if self._comes_last(claimant, (promised,)):
            self._crossing[claimant] = self._with_whole_units(claimant, crossing, (promised,))

    # ---- within guarantees

    def rise_of_guaranteed(self, taken: Collection[Unit], covering: Iterable[Branch], cost: Cost) -> int:
        """Whether more is held within guarantees when units go and a claim stands within these branches': 1, or 0 if
        nothing of it changes, or -1. Nobody's GPUs make up for another's CPUs, nor do two levels that guarantee the
        same count twice: the uppermost level at which anything changes decides, and below it nothing may fall."""
        changes = self.loses_guaranteed(taken)
        for branch in covering:
            self._count(changes, branch, [bound.part(cost) for bound in branch.guarantees], 1)
        levels: dict[int, dict[tuple[Kind, ...], int]] = {}
        for (branch, kinds), amount in changes.items():
            if amount:
                add(levels.setdefault(len(branch.path), {}), [(kinds, amount)])
        if not levels:
            return 0
        rises = any(levels[min(levels)].values())
        return 1 if rises and all(min(sums.values()) >= 0 for sums in levels.values()) else -1

    def loses_guaranteed(self, units: Collection[Unit]) -> _Guaranteed:
        """By how much (less than nothing) what branches hold within their guarantees changes when these go. Others may
        then stand where they stood."""
        changes: _Guaranteed = {}
        gone = {key for unit in units for key in unit_keys(unit)}
        for branch in dict.fromkeys(
            branch for unit in units for branch in unit.leaf.path if branch.guarantees
        ):
            steps, lost = self._covered_in(branch).lost_without(gone)
            self._budget.spend(steps // 64)
            if steps:
                self._count(changes, branch, lost, -1)
        return changes

    def _count(self, changes: _Guaranteed, branch: Branch, amounts: Iterable[int], sign: int) -> None:
        """Amounts by a branch's guarantees; those that hold in the same supplies are one."""
        kind_of = self._state.forest.kind_of
        kinds = (tuple(sorted({kind_of(dim) for dim in bound.dims})) for bound in branch.guarantees)
        add(changes, zip(((branch, each) for each in kinds), amounts, strict=True), sign)

    def _covered_in(self, branch: Branch) -> Covered:
        known = self._covered.get(branch)
        if known is None:
            units = chain.from_iterable(map(self._protected, self._leaves_below(branch)))
            known = self._covered[branch] = Covered(branch.guarantees, sorted(units, key=Unit.age))
            self._budget.spend(len(known) // 64)
        return known

    def _leaves_below(self, branch: Branch) -> list[Branch]:
        if branch.is_leaf:
            return [branch]
        return [leaf for child in branch.children for leaf in self._leaves_below(child)]

    def _protected(self, leaf: Branch) -> Iterator[Unit]:
        """A leaf's units, those that are protected most first; gangs without their growth."""
        return map(self._less_growth, in_order_of_protection(self._state, leaf))

    def _unprotected(self, leaf: Branch, came: Iterable[Came]) -> Iterator[Unit | Came]:
        """The same from the other end, with those that are promised or come in: of their rank they are the newest."""
        promises = sorted(self._promises(leaf), key=attrgetter("made"))
        coming = sorted([*map(self._as_unit, promises), *came], key=lambda each: each.rank)
        for unit in in_victims_order(self._state, leaf, pausing=True):
            while coming and coming[-1].rank >= _rank(unit):
                yield coming.pop()
            yield self._less_growth(unit)
        yield from reversed(coming)

    def _promises(self, leaf: Branch) -> Iterator[Promise]:
        """What a queue is promised counts as held, and is no unit yet."""
        alike = self._state.promised.items()
        return chain.from_iterable(found.values() for (queue, *_), found in alike if queue == leaf.name)

    def _as_unit(self, promise: Promise) -> Came:
        known = self._promised.get(promise.key)
        if known is None:
            claim, state = promise.claim, self._state
            rank = is_growth(state, claim), -priority_of(state, claim)
            known = self._promised[promise.key] = Came(rank, promised_cost(promise))
        return known

    def _less_growth(self, unit: Unit) -> Unit:
        return self._minimum_of(unit) if unit.is_whole else unit

    def _minimum_of(self, whole: Unit) -> Unit:
        """A gang without its growth, which stands for itself."""
        assert whole.application is not None
        grown = {key for book in whole.application.books.values() for key in book.units}
        pods = [pod for pod in whole.pods if pod.key not in grown]
        less: dict[Dim, int] = dict(whole.cost)
        for pod in whole.pods:
            if pod.key in grown:
                for resource, amount in pod.facts.requests.items():
                    if amount:
                        less[(pod.cluster, pod.pool, resource)] -= amount
        cost = tuple((dim, amount) for dim, amount in less.items() if amount)
        return Unit(
            whole.leaf, pods, cost, whole.priority, whole.admitted_ms, whole.application, growth=False
        )

    # ---- within what is deserved

    def deserved(self, paper: Paper, leaf: Branch, taken: Collection[Unit], came: Sequence[Came] = ()) -> int:
        """What a leaf would hold within what it deserves: its parts of all that there is, summed up over kinds."""
        whole = self._state.forest.whole
        held = {kind: paper.held(leaf, kind) for kind in leaf.deserved}
        if paper.is_above(leaf, [*leaf.held, *leaf.deserved]):
            crossing = self._crossing_of(leaf, taken, came)
            if not crossing.counts:
                return sum(part_of_kind(amount, whole.get(kind, 0)) for kind, amount in crossing.held.items())
        return sum(
            part_of_kind(
                min(amount << FRACTION_BITS, leaf.deserved[kind]), whole.get(kind, 0) << FRACTION_BITS
            )
            for kind, amount in held.items()
        )

    def _crossing_of(self, leaf: Branch, taken: Collection[Unit], came: Sequence[Came]) -> _Crossing:
        known = self._crossing.get(leaf)
        if known is None:
            known = self._crossing[leaf] = self._find_crossing(leaf, (), ())
        mine = [unit for unit in taken if unit.leaf is leaf]
        if not known.stands_without(mine):
            return self._find_crossing(leaf, mine, came)
        if not came:
            return known
        if known.is_crossed and self._comes_last(leaf, came):
            return self._with_whole_units(leaf, known, came)
        return self._find_crossing(leaf, mine, came)

    def _comes_last(self, leaf: Branch, came: Iterable[Came]) -> bool:
        """Whether these are protected less than all that a leaf holds: so who crosses stays the same."""
        first = min(each.rank for each in came)
        least = next(in_victims_order(self._state, leaf, pausing=True), None)
        if least is not None and first < _rank(least):
            return False
        return all(first >= self._as_unit(each).rank for each in self._promises(leaf))

    def _with_whole_units(self, leaf: Branch, crossing: _Crossing, came: Iterable[Came]) -> _Crossing:
        """The same, with what of these is held in whole units."""
        if crossing.counts:
            return crossing
        held = dict(crossing.held)
        for each in came:
            kinds = self._state.forest.kind_of.cost(each.cost)
            if all(held.get(kind, 0) + amount <= self._most(leaf, kind) for kind, amount in kinds):
                add(held, kinds)
        return _Crossing(crossing.counts, held, crossing.worthless, is_crossed=True)

    def _find_crossing(self, leaf: Branch, taken: Collection[Unit], came: Sequence[Came]) -> _Crossing:
        """With which unit a leaf crosses what it deserves, and what it holds within that in whole units.

        The former is looked for from the unit that is protected least: that costs what is beyond, not what is held.
        """
        kinds_of = self._state.forest.kind_of.cost
        held = dict(leaf.held)
        gone = {key for unit in taken for key in unit_keys(unit)}
        add(held, chain.from_iterable(kinds_of(unit.cost) for unit in taken), -1)
        add(held, chain.from_iterable(kinds_of(each.cost) for each in came))
        over = {kind: amount - self._most(leaf, kind) for kind, amount in held.items()}
        beyond: list[tuple[Unit | Came, KindCost]] = []
        for unit in self._unprotected(leaf, came):
            if max(over.values(), default=0) <= 0:
                break
            if not gone or isinstance(unit, Came) or gone.isdisjoint(unit_keys(unit)):
                kinds = kinds_of(unit.cost)
                add(over, kinds, -1)
                beyond.append((unit, kinds))
        self._budget.spend(len(beyond) // 8)
        is_crossed = bool(beyond)
        counts = not is_crossed or self._is_young(leaf, beyond.pop()[0])
        worthless: set[str] = set()
        for unit, kinds in reversed(beyond):
            if not counts and all(over[kind] + amount <= 0 for kind, amount in kinds):
                add(over, kinds)
            elif not isinstance(unit, Came):
                worthless.update(unit_keys(unit))
        held = {kind: each + self._most(leaf, kind) for kind, each in over.items()}
        return _Crossing(counts, held, worthless, is_crossed=is_crossed)

    def _most(self, leaf: Branch, kind: Kind) -> int:
        """So much of a kind a leaf may hold within what it deserves."""
        return (leaf.deserved.get(kind, 0) + slack(self._state.forest.whole.get(kind, 0))) >> FRACTION_BITS

    def _is_young(self, leaf: Branch, unit: Unit | Came) -> bool:
        """Whether it has been there for less than a tenure."""
        facts = leaf.queue.facts if leaf.queue is not None else None
        tenure_ms = facts.tenure_ms if facts is not None else None
        if tenure_ms is None:
            tenure_ms = self._state.config.tenure_ms
        now_ms = self._state.coarse_now_ms
        return now_ms - (now_ms if isinstance(unit, Came) else unit.since_ms) < tenure_ms


class _Crossing:
    __slots__ = ("counts", "held", "is_crossed", "worthless")

    def __init__(self, counts: bool, held: dict[Kind, int], worthless: set[str], *, is_crossed: bool) -> None:
        self.is_crossed = is_crossed  # whether any unit does
        self.counts = counts  # whether the unit that crosses has been there for less than a tenure
        self.held = held  # within what is deserved, in whole units
        self.worthless = worthless  # pods beyond what is deserved, which all this does not stand on

    def stands_without(self, units: Iterable[Unit]) -> bool:
        return all(key in self.worthless for unit in units for key in unit_keys(unit))


def levels_rise(before: Paper, after: Paper) -> int:
    """Whether the ascending shares of the tree's levels rise, root first: 1, or 0 if they stay, or -1.

    Branches that a move does not touch stand in both alike, so they are left out.
    """
    levels: dict[int, list[Branch]] = {}
    for branch in after.touched:
        levels.setdefault(len(branch.path), []).append(branch)
    for depth in sorted(levels):
        was = sorted(before.share(branch) for branch in levels[depth])
        will_be = sorted(after.share(branch) for branch in levels[depth])
        if was != will_be:
            return 1 if will_be > was else -1
    return 0
