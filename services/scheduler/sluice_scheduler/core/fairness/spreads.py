"""Spreads: a pool for each part of a gang, where no pool is open to all of them.

Pools are tried part by part; who has the fewest choices is the first to choose. A pool is passed over where a
room would be too small even if each part that has not chosen yet took the least of it that it may. Where nothing
fits, each spread leads through a pool that was passed over: so who waits watches the rooms that were too small there.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Part, Shape
from sluice_scheduler.core.fairness.rooms import Room

#: So often a search takes a choice back; then it is given up, and repeated when anything grows.
_RETREATS_MAX: Final = 200

#: Rooms that something goes into, and how much of each.
Needs: TypeAlias = list[tuple[Room, int]]


class _Choice(NamedTuple):
    """A pool that a part may go to."""

    pool: str
    needs: Needs


class Spread:
    """The search for one."""

    def __init__(
        self,
        shape: Shape,
        needs_in: Callable[[Part, str], Needs],
        *,
        left_in: Callable[[Room], int] = attrgetter("left"),
    ) -> None:
        self._left_in = left_in
        self._order = sorted(range(len(shape.parts)), key=lambda at: (len(shape.scattered[at]), at))
        self._choices = [
            [_Choice(pool, needs_in(shape.parts[at], pool)) for pool in shape.scattered[at]]
            for at in self._order
        ]
        self._least = [_least_of(choices) for choices in self._choices]
        #: What parts take where they are, and at least where they have not chosen.
        self._taken: dict[Room, int] = {}
        for least in self._least:
            add(self._taken, least.items())
        #: Of a search in vain: the rooms that were too small, and with how much left it is worth another.
        self.short: dict[Room, int] = {}

    def find(self) -> tuple[str, ...] | None:
        """The first that fits: a pool for each part, in their order."""
        for room, need in self._taken.items():
            if need > self._left_in(room):
                self.short = {room: need}
                return None
        short: dict[Room, int] = {}
        for level, choices in enumerate(self._choices):
            self.short = {}
            self._choices[level] = [choice for choice in choices if self._is_open(level, choice)]
            if not self._choices[level]:
                return None  # whatever becomes of the others
            short.update((room, min(need, short.get(room, need))) for room, need in self.short.items())
        self.short = short
        return self._search()

    def _search(self) -> tuple[str, ...] | None:
        chosen: list[int] = []  # by level
        begin_at, retreats = 0, 0
        while (level := len(chosen)) < len(self._choices):
            at = self._first_open(level, begin_at)
            if at is not None:
                self._take(level, at, 1)
                chosen.append(at)
                begin_at = 0
            elif not chosen:
                return None
            else:
                begin_at = chosen.pop() + 1
                self._take(level - 1, begin_at - 1, -1)
                retreats += 1
                if retreats > _RETREATS_MAX:
                    self._watch_all()
                    return None
        pools = {
            part: choices[at].pool
            for part, choices, at in zip(self._order, self._choices, chosen, strict=True)
        }
        return tuple(pools[part] for part in range(len(pools)))

    def _first_open(self, level: int, begin_at: int) -> int | None:
        choices = self._choices[level]
        return next((at for at in range(begin_at, len(choices)) if self._is_open(level, choices[at])), None)

    def _is_open(self, level: int, choice: _Choice) -> bool:
        """If not, it is noted with how much left it may be."""
        least = self._least[level]
        for room, need in choice.needs:
            whole = self._taken.get(room, 0) + need - least.get(room, 0)
            if whole > self._left_in(room):
                self.short[room] = min(whole, self.short.get(room, whole))
                return False
        return True

    def _take(self, level: int, at: int, sign: int) -> None:
        add(self._taken, self._choices[level][at].needs, sign)
        add(self._taken, self._least[level].items(), -sign)

    def _watch_all(self) -> None:
        rooms = (room for choices in self._choices for choice in choices for room, _ in choice.needs)
        self.short |= {room: self._left_in(room) + 1 for room in rooms}


def _least_of(choices: list[_Choice]) -> dict[Room, int]:
    """What a part takes of a room wherever it goes."""
    each = [dict(choice.needs) for choice in choices]
    return {room: min(needs[room] for needs in each) for room in each[0] if all(room in n for n in each)}
