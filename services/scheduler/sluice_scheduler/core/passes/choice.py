"""Which of a queue's units go (ADR 0011): as few as possible, and such as hold little that nobody is short of.

Growth goes before gangs, and lower priority before higher. Of one such class all sizes are compared, each by its
newest unit. Gangs, and growth of very many sizes, are compared among those that are newest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.state.alike import Newest
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit, units_of_entries

#: So many sizes of growth are compared, or else so many of the newest units.
_SIZES_MAX: Final = 64
#: So many of the newest gangs are compared. A gang's size is added up anew each time.
_GANGS_MAX: Final = 16
#: So many units of a row may be looked at in one search that do not serve; so many of them may be too large.
_MISSES_MAX: Final = 256
_LARGE_MAX: Final = 32
#: Behind so many the row goes on from another place in each round.
_FEW: Final = 16
ANY_SIZE: Final = 1 << 62


class Row:
    """Units of one class, the newest first."""

    def __init__(
        self,
        budget: Budget,
        units: Iterator[Unit],
        width: int,
        *,
        leap: Callable[[], None] = lambda: None,
        alike: Cost | None = None,
    ) -> None:
        """`width`: so many of them are compared. `leap`: go on from another place. `alike`: each of their pods asks for
        this."""
        self._budget = budget
        self._units = units
        self._width = width
        self._leap = leap
        self._alike = alike
        self._ahead: list[Unit] = []  # that were looked at, and may still go
        self._misses = 0

    def fitting(self, room: Room, most: int) -> list[Unit]:
        """The next ones that hold something of a room, and no more than so much."""
        part = room.bound.part
        if self._alike is not None and not 0 < part(self._alike) <= most:
            return []
        found = [unit for unit in self._ahead if 0 < part(unit.cost) <= most]
        large = sum(1 for unit in self._ahead if part(unit.cost) > most)
        while len(found) < self._width:
            if self._misses >= _MISSES_MAX or large >= _LARGE_MAX:
                self._budget.leaves_out = True
                break
            following = next(self._units, None)
            if following is None:
                break
            self._ahead.append(following)
            held = part(following.cost)
            large += held > most
            if 0 < held <= most:
                found.append(following)
            else:
                self._miss()
        return found

    def take(self, unit: Unit) -> None:
        self._ahead.remove(unit)

    def bar(self, unit: Unit) -> None:
        """It may not go in this search."""
        self._ahead.remove(unit)
        self._miss()

    def _miss(self) -> None:
        self._misses += 1
        if self._misses == _FEW:
            self._leap()


class Choice:
    """What one queue may give, in one search."""

    def __init__(self, budget: Budget, classes: Iterator[list[Row]]) -> None:
        self._budget = budget
        self._coming = classes
        self._come: list[list[Row]] = []
        self.had_others = False  # whether there ever was anything to choose

    def best(
        self,
        room: Room,
        most: int,
        *,
        may_go: Callable[[Unit], bool],
        choose: Callable[[Collection[Unit]], Unit],
    ) -> Unit | None:
        """The next unit that holds something of a room, and no more than so much."""
        for rows in self._classes():
            while offered := {unit: row for row in rows for unit in row.fitting(room, most)}:
                unit = next(iter(offered))
                if len(offered) > 1:
                    self.had_others = True
                    self._budget.spend(len(offered) // 16)
                    unit = choose(offered)
                if may_go(unit):
                    offered[unit].take(unit)
                    return unit
                offered[unit].bar(unit)
                self._budget.spend()
        return None

    def first_of_each(self, room: Room, *, may_go: Callable[[Unit], bool]) -> Iterator[Unit]:
        """Of each size the newest that may go."""
        for rows in self._classes():
            found: list[Unit] = []
            for row in rows:
                while barred := [unit for unit in row.fitting(room, ANY_SIZE) if not may_go(unit)]:
                    for unit in barred:
                        row.bar(unit)
                    self._budget.spend(len(barred))
                found += row.fitting(room, ANY_SIZE)
            yield from sorted(found, key=lambda unit: unit.place, reverse=True)

    def _classes(self) -> Iterator[list[Row]]:
        yield from self._come
        for rows in self._coming:
            self._come.append(rows)
            yield rows


def by_age(budget: Budget, units: Iterator[Unit]) -> Iterator[list[Row]]:
    """Nothing is chosen by size."""
    yield [Row(budget, units, 1)]


def by_size(state: State, budget: Budget, leaf: Branch, by_ms: int | None) -> Iterator[list[Row]]:
    """A queue's classes, who goes first first; what was admitted by then, or all."""
    units = state.units.get(leaf.name)
    if units is None:
        return
    seen: set[str] = set()

    def row(entries: Newest, width: int, alike: Cost | None = None) -> Row:
        leap = partial(entries.leap, state.cell.rounds)
        return Row(budget, units_of_entries(state, leaf, entries, seen), width, leap=leap, alike=alike)

    for newest_first, sizes in units.growth_by_size(state, by_ms):
        if len(sizes) > _SIZES_MAX:
            yield [row(newest_first, _SIZES_MAX)]
        else:
            yield [row(sizes[cost].newest_first(by_ms), 1, cost) for cost in sorted(sizes)]
    for newest_first in units.gangs_by_priority(by_ms):
        yield [row(newest_first, _GANGS_MAX)]
