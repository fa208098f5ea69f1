"""Which of a branch's units stand within its guarantee."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from operator import sub
from typing import TypeAlias

from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.state.units import Unit, unit_keys

#: Amounts by bound.
_Amounts: TypeAlias = tuple[int, ...]


class Covered:
    """The units that fit into a guarantee. They fill it in the order in which they were admitted, so a newcomer takes
    nobody's place. When a unit goes, those after it are worked out anew, until the result is what it was."""

    def __init__(self, guarantees: list[Bound], units: Iterable[Unit]) -> None:
        """`units`: in the order in which they were admitted."""
        self._nothing: _Amounts = (0,) * len(guarantees)
        self._at: dict[str, int] = {}
        self._parts: list[_Amounts] = []
        for unit in units:
            parts = tuple([bound.part(unit.cost) for bound in guarantees])
            if any(parts):
                self._at.update(dict.fromkeys(unit_keys(unit), len(self._parts)))
                self._parts.append(parts)
        #: How much of the guarantee is left before each unit, and in the end.
        self._left: list[_Amounts] = [tuple([bound.amount for bound in guarantees])]
        for parts in self._parts:
            self._left.append(_behind(self._left[-1], parts))

    def __len__(self) -> int:
        return len(self._parts)

    def lost_without(self, keys: Collection[str]) -> tuple[int, _Amounts]:
        """How much less is held within the guarantee when these go, and how many units were looked at for that: none,
        if none of these stands within it."""
        steps, lost = 0, self._nothing
        for at, left in self._changed_without(self._units_of(keys)):
            steps += 1
            lost = tuple(map(sub, left, self._left[at + 1]))
        return steps, lost

    def remove(self, keys: Collection[str]) -> None:
        """These are gone."""
        gone = self._units_of(keys)
        for at, left in list(self._changed_without(gone)):
            self._left[at + 1] = left
        for at in gone:
            self._parts[at] = self._nothing

    def _units_of(self, keys: Collection[str]) -> set[int]:
        return {self._at[key] for key in keys if key in self._at}

    def _changed_without(self, gone: set[int]) -> Iterator[tuple[int, _Amounts]]:
        """How much is left after each unit once some have gone: from the first of these on, until nothing differs."""
        covered = [at for at in gone if self._left[at] != self._left[at + 1]]
        if not covered:
            return
        begin, end = min(covered), max(gone)
        left = self._left[begin]
        for at in range(begin, len(self._parts)):
            if at > end and left == self._left[at]:
                return
            if at not in gone:
                left = _behind(left, self._parts[at])
            yield at, left


def _behind(left: _Amounts, parts: _Amounts) -> _Amounts:
    """What a unit leaves, which stands within the guarantee if that has room for all of it."""
    rest = tuple(map(sub, left, parts))
    return rest if min(rest) >= 0 else left
