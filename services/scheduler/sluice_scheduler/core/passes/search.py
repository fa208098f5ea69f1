"""The search for victims: what must leave so that something fits.

Victims come from the branches furthest above what they deserve, from the room that is too small downward; which of
a queue's units go is choice.py's. Among the sets that serve, smaller units go before larger ones: first only units
that are no larger than what is missing; then one unit that is enough by itself, the smallest first; then any.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import closing
from functools import partial
from itertools import combinations, islice
from math import inf
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Kind
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import part_of_kind
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.choice import ANY_SIZE, Choice, by_age, by_size
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.ranking import Ranking
from sluice_scheduler.core.state.members import application_at
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit, in_victims_order
from sluice_scheduler.core.stored.entities import LostWork

#: So many branches with nothing to give are looked at before a search is given up.
_BARREN_MAX: Final = 128
#: So many queues are looked at for units that are enough by themselves.
_ENOUGH_MAX: Final = 16
#: Pieces of work for each queue that gives its part of a lot: its growth may have to be put in order by size first.
_QUEUE_COSTS: Final = 3
#: All sets are tried of so many units in so many queues.
_FEW: Final = 8
_FEW_LEAVES: Final = 16


class Search:
    """One search: units are taken on paper until nothing is missing."""

    def __init__(
        self,
        state: State,
        budget: Budget,
        ranking: Ranking,
        *,
        paper: Paper,
        short: Callable[[], Iterator[Room]],
        may_take_from: Callable[[Branch], bool],
        rest_may_give: Callable[[Branch, int, Collection[Kind]], bool] = lambda *_: True,
        may_take: Callable[[Unit], bool],
        ripe_since_ms: Callable[[Branch], int | None] = lambda _: None,
        avoid: Branch | None = None,
        within: Branch | None = None,
        in_parts: bool = False,
    ) -> None:
        self._state = state
        self._budget = budget
        self._ranking = ranking
        self._paper = paper
        self._short = short  # the rooms that are too small, the one to begin with first
        self._may_take_from = may_take_from
        self._rest_may_give = rest_may_give  # of a branch's children (ranking.py)
        self._may_take = may_take
        self._ripe_since_ms = ripe_since_ms  # of a queue's pods those may be taken that were admitted by then
        self._avoid = avoid  # the leaf of the claim itself
        self._within = within  # nothing is taken outside this branch
        self._in_parts = (
            in_parts  # what is missing may be taken in several passes, as far as each one's budget goes
        )
        self._by_age = False  # nothing is chosen by size
        self._choices: dict[Branch, Choice] = {}
        self._whole: set[int] = set()  # applications that were taken whole
        #: The branches below another that may give something of a room, as long as nothing is taken.
        self._open_at_first: dict[tuple[Room, Branch], list[Branch]] = {}
        self._was_short: dict[Room, None] = {}
        self._work_ms: dict[Branch, int] = {}  # the running time that queues would lose
        self.met_any = False  # whether it has come to any queue that may give something
        self.taken: dict[Unit, None] = {}

    # ---- sets of victims

    def small_units(self) -> bool:
        """Take units that are no larger than what is missing."""
        return self._collect(small=True)

    def small_sets(self) -> Iterator[None]:
        """Sets of such units: as few as possible, then the newest, who are protected least."""
        if self.small_units():
            yield
        had_others = any(choice.had_others for choice in self._choices.values())
        self.give_back_all()
        if had_others:
            self._by_age = True
            if self.small_units():
                yield
            self._by_age = False
            self.give_back_all()

    def any_units(self) -> bool:
        """Take units of any size."""
        return self._collect(small=False)

    def enough_by_itself(self) -> list[Unit]:
        """Units each of which would be enough, the one that wastes least first."""
        missing = [(room, self._paper.missing(room)) for room in self._short()]
        if not missing:
            return []
        found: list[tuple[int, int, int, int, Unit]] = []
        room, dims = missing[0][0], self._short_dims()
        for leaf in islice(self._leaves(room), _ENOUGH_MAX):
            for at, unit in enumerate(self._choice(leaf).first_of_each(room, may_go=self._is_free)):
                self._budget.spend(at % 4 == 0)
                parts = [(room.bound.part(unit.cost), need) for room, need in missing]
                if all(part >= need for part, need in parts):
                    others = sum(1 for dim, _ in unit.cost if dim not in dims)
                    waste = sum(part - need for part, need in parts)
                    work_ms = unit.work_ms(self._state.coarse_now_ms)
                    found.append((others, waste, work_ms, len(found), unit))
        return [unit for *_, unit in sorted(found, key=lambda each: each[:4])]

    def all_sets(self) -> Iterator[None]:
        """Where there are few units, all sets that are enough and of which nobody could be spared."""
        units = self._few_units()
        found: list[set[Unit]] = []
        for size in range(1, len(units) + 1):
            for chosen in map(set, combinations(units, size)):
                if any(smaller <= chosen for smaller in found):
                    continue
                self._budget.spend()
                for unit in units:
                    if unit in chosen and self._is_free(unit):
                        self.take(unit)
                if len(self.taken) == size and next(self._short(), None) is None:
                    found.append(chosen)
                    yield
                self.give_back_all()

    def _few_units(self) -> list[Unit]:
        """Those that may be taken, gangs first, if there are no more than a few."""
        found: dict[Branch, None] = {}
        for room in list(self._short()) if len(self._state.forest.leaves) <= _FEW_LEAVES else ():
            found.update(dict.fromkeys(self._leaves(room)))
        units = [unit for leaf in found for unit in islice(self._units_in(leaf), _FEW + 1)]
        if len(units) > _FEW:
            return []
        return sorted((unit for unit in units if self._is_free(unit)), key=lambda unit: unit.growth)

    def take(self, unit: Unit) -> None:
        """A gang that goes whole takes its growth along."""
        for other in self._taken_along(unit):
            self.give_back(other)
        if unit.is_whole:
            self._whole.add(id(unit.application))
        self._move(unit, -1)
        self.taken[unit] = None

    def _taken_along(self, unit: Unit) -> list[Unit]:
        """What is taken already of a gang that goes whole."""
        return [each for each in self.taken if each.application is unit.application] if unit.is_whole else []

    def _move(self, unit: Unit, sign: int) -> None:
        self._paper.move(unit.leaf, unit.cost, sign)
        work_ms = unit.work_ms(self._state.now_ms)
        self._work_ms[unit.leaf] = self._work_ms.get(unit.leaf, 0) - sign * work_ms

    def takes_others(self, cost: Cost) -> bool:
        """Whether something leaves that this does not ask for: others may come in by that."""
        asked = {dim for dim, _ in cost}
        return any(dim not in asked for unit in self.taken for dim, _ in unit.cost)

    def takes_whole(self, claim: Claim) -> bool:
        """Whether a claim is growth of an application that goes: nothing of it comes in by this."""
        return bool(self._whole) and id(application_at(self._state, claim.key)) in self._whole

    def give_back(self, unit: Unit) -> None:
        self._move(unit, 1)
        self._ranking.lift(unit.leaf.path, self._paper)
        del self.taken[unit]
        if unit.is_whole:
            self._whole.discard(id(unit.application))

    def give_back_all(self) -> None:
        for unit in list(self.taken):
            self.give_back(unit)
        self._choices = {}

    def spare(self) -> None:
        """Let those go that turn out not to be needed, the largest first."""
        if any(self._needs_all(room) for room in self._was_short):
            return
        for unit in sorted(self.taken, key=lambda unit: -sum(amount for _, amount in unit.cost)):
            self.give_back(unit)
            if next(self._short(), None) is not None:
                self.take(unit)

    def _needs_all(self, room: Room) -> bool:
        return self._paper.missing(room) == 0 and all(room.bound.part(unit.cost) for unit in self.taken)

    # ---- one unit after another

    def _collect(self, *, small: bool) -> bool:
        while (room := next(self._short(), None)) is not None:
            self._budget.spend()
            self._was_short[room] = None
            most = self._paper.missing(room) if small else ANY_SIZE
            unit = self._next_unit(room, self._within or room.branch, most)
            if unit is None or (self._budget.is_overdrawn and not self._in_parts):
                return False
            self.take(unit)
            if self._in_parts and self._budget.is_spent:
                return True
        self.spare()
        return bool(self.taken)

    def _next_unit(self, room: Room, scope: Branch, most: int) -> Unit | None:
        if scope.is_leaf:
            return None if scope is self._avoid else self._unit_in(room, scope, most)
        with closing(self._open_children(room, scope)) as children:
            for child in children:
                if self._in_parts and self.taken and self._budget.is_spent:
                    return None
                unit = self._next_unit(room, child, most)
                if unit is not None:
                    return unit
                self._budget.spend()
        return None

    def _leaves(self, room: Room) -> Iterator[Branch]:
        """Queues that may give something, the furthest above what they deserve first."""
        yield from self._leaves_below(room, self._within or room.branch)

    def _leaves_below(self, room: Room, scope: Branch) -> Iterator[Branch]:
        if scope.is_leaf:
            if scope is not self._avoid:  # its own limit may be what is too small
                yield scope
            return
        with closing(self._open_children(room, scope)) as children:
            first = list(children)
        for child in first:
            yield from self._leaves_below(room, child)

    def _open_children(self, room: Room, scope: Branch) -> Generator[Branch, None, None]:
        """Those that may give something, the furthest above what they deserve first; no more than so many."""
        known = None if self.taken else self._open_at_first.get((room, scope))
        if known is not None:
            yield from known
            return
        found: list[Branch] = []
        with closing(self._children_in_order(room, scope)) as children:
            for child in islice(children, _BARREN_MAX):
                found.append(child)
                yield child
        if not self.taken:
            self._open_at_first[(room, scope)] = found

    def _children_in_order(self, room: Room, scope: Branch) -> Generator[Branch, None, None]:
        """Who may give nothing costs a little, and hides nobody."""
        dims = room.bound.dims
        kind = self._state.forest.kind_of(dims[0])
        ranking = self._ranking.in_order(
            scope,
            kind,
            dims,
            paper=self._paper,
            own=self._avoid,
            rest_may_give=partial(self._rest_may_give, scope),
        )
        with closing(ranking) as children:
            for at, child in enumerate(children):
                if self._is_open(child, dims):
                    yield child
                elif self._budget.is_overdrawn:
                    return
                else:
                    self._budget.spend(at % 4 == 0)

    def _is_open(self, child: Branch, dims: tuple[Dim, ...]) -> bool:
        if child is self._avoid or not self._paper.holds(child, dims):
            return False
        return self._may_take_from(child)

    def _units_in(self, leaf: Branch) -> Iterator[Unit]:
        """Who goes first first. Those that are too young hide nobody."""
        return in_victims_order(self._state, leaf, by_ms=self._ripe_since_ms(leaf))

    def _unit_in(self, room: Room, leaf: Branch, most: int) -> Unit | None:
        """The queue's next unit that holds something of the room, and no more than so much."""
        self.met_any = True
        choose = partial(self._least_wasteful, room)
        return self._choice(leaf).best(room, most, may_go=self._is_free, choose=choose)

    def _choice(self, leaf: Branch) -> Choice:
        choice = self._choices.get(leaf)
        if choice is None:
            if self._by_age:
                classes = by_age(self._budget, self._units_in(leaf))
            else:
                classes = by_size(self._state, self._budget, leaf, self._ripe_since_ms(leaf))
            choice = self._choices[leaf] = Choice(self._budget, classes)
            self._budget.spend(_QUEUE_COSTS if self._in_parts else 1)
        return choice

    def _short_dims(self) -> set[Dim]:
        return {dim for room in self._short() for dim in room.bound.dims}

    def _least_wasteful(self, room: Room, units: Collection[Unit]) -> Unit:
        """Who holds the fewest resources that nobody is short of; then the largest that is no larger than what is
        missing, or else the smallest; then who holds least of those resources; then the newest."""
        missing, short = self._paper.missing(room), self._short_dims()
        whole, kind_of = self._state.forest.whole, self._state.forest.kind_of

        def merit(unit: Unit) -> tuple[int, int, int, tuple[int, int, str]]:
            part = room.bound.part(unit.cost)
            others = [(dim, amount) for dim, amount in unit.cost if dim not in short]
            waste = sum(part_of_kind(amount, whole.get(kind_of(dim), 0)) for dim, amount in others)
            return -len(others), part if part <= missing else -part, -waste, unit.place

        return max(units, key=merit)

    def _is_free(self, unit: Unit) -> bool:
        """Not taken with its application yet."""
        return id(unit.application) not in self._whole and self._may_take(unit)

    def is_within_lost_work(self, unit: Unit) -> bool:
        """Whether its queue may lose so much more running time in this hour, beside what is taken from it already."""
        now_ms = self._state.now_ms
        again_ms = sum(other.work_ms(now_ms) for other in self._taken_along(unit))
        would_ms = self._work_ms.get(unit.leaf, 0) - again_ms + unit.work_ms(now_ms)
        return would_ms <= lost_work_left_ms(self._state, unit.leaf)


def lost_work_left_ms(state: State, leaf: Branch) -> float:
    """How much running time a queue may still lose in this hour."""
    most_ms = leaf.queue.facts.lost_work_per_hour_ms if leaf.queue is not None else None
    if most_ms is None:
        return inf
    known = state.lost_work.get(f"{LostWork.kind}/{leaf.name}")
    return most_ms - (known.last_hour_ms(state.now_ms) if known is not None else 0)
