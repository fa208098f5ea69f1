"""Which of a queue's units go (ADR 0011): as few as possible, and such as hold little that nobody is short of.

Growth goes before gangs, and lower priority before higher. Of one such class all sizes are compared, each by its
newest unit. Gangs, and growth of very many sizes, are compared among those that are newest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit, units_of_entries

#: So many sizes of growth are compared, or else so many of the newest units.
_SIZES_MAX: Final = 64
#: So many of the newest gangs are compared. A gang's size is added up anew each time.
_GANGS_MAX: Final = 16
#: So many units of a row are looked at in one search.
_LOOKS_MAX: Final = 256
#: So many of them may be of the room's resources and yet not serve.
_UNFIT_MAX: Final = 32
ANY_SIZE: Final = 1 << 62


class Row:
    """Units of one class, the newest first."""

    def __init__(self, units: Iterator[Unit], width: int, alike: Cost | None = None) -> None:
        """`width`: so many of them are compared. `alike`: each of their pods asks for this."""
        self._units = units
        self._width = width
        self._alike = alike
        self._ahead: list[Unit] = []  # that were looked at, and may still go
        self._barred = 0

    def fitting(self, room: Room, most: int) -> list[Unit]:
        """The next ones that hold something of a room, and no more than so much."""
        part = room.bound.part
        if self._barred >= _UNFIT_MAX or (self._alike is not None and not 0 < part(self._alike) <= most):
            return []
        found = [unit for unit in self._ahead if 0 < part(unit.cost) <= most]
        unfit = sum(1 for unit in self._ahead if part(unit.cost) > most)
        while len(found) < self._width and len(self._ahead) < _LOOKS_MAX and unfit < _UNFIT_MAX:
            following = next(self._units, None)
            if following is None:
                break
            self._ahead.append(following)
            held = part(following.cost)
            if 0 < held <= most:
                found.append(following)
            unfit += held > most
        return found

    def take(self, unit: Unit) -> None:
        self._ahead.remove(unit)

    def bar(self, unit: Unit) -> None:
        """It may not go in this search."""
        self._ahead.remove(unit)
        self._barred += 1


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


def by_age(units: Iterator[Unit]) -> Iterator[list[Row]]:
    """Nothing is chosen by size."""
    yield [Row(units, 1)]


def by_size(state: State, leaf: Branch, grown_by_ms: int | None) -> Iterator[list[Row]]:
    """A queue's classes, who goes first first; of growth what was admitted by then, or all."""
    units = state.units.get(leaf.name)
    if units is None:
        return
    seen: set[str] = set()
    for newest_first, sizes in units.growth_by_size(state, grown_by_ms):
        if len(sizes) > _SIZES_MAX:
            yield [Row(units_of_entries(state, leaf, newest_first, seen), _SIZES_MAX)]
        else:
            yield [
                Row(units_of_entries(state, leaf, sizes[cost].newest_first(grown_by_ms), seen), 1, cost)
                for cost in sorted(sizes)
            ]
    for newest_first in units.gangs_by_priority():
        yield [Row(units_of_entries(state, leaf, newest_first, seen), _GANGS_MAX)]
