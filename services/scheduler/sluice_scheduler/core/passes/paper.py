"""Paper: what branches would hold and what their shares would be after a move, without moving anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim, Kind
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.shares import FRACTION_BITS, dominant_share, slack

_NOTHING: Final[Mapping[Kind, int]] = {}


class Paper:
    def __init__(self, forest: Forest, *, claim: str = "") -> None:
        """`claim`: whom it is for, in case that room is kept for it."""
        self._forest = forest
        self._claim = claim
        self._dims: dict[Branch, dict[Dim, int]] = {}
        self._kinds: dict[Branch, dict[Kind, int]] = {}
        self._shares: dict[Branch, int] = {}

    def before(self) -> Paper:
        """One on which nothing was moved yet."""
        return Paper(self._forest, claim=self._claim)

    def move(self, leaf: Branch, cost: Cost, sign: int) -> None:
        kinds = self._forest.kind_of.cost(cost)
        for branch in leaf.path:
            dims = self._dims.setdefault(branch, {})
            for dim, amount in cost:
                dims[dim] = dims.get(dim, 0) + sign * amount
            moved = self._kinds.setdefault(branch, {})
            for kind, amount in kinds:
                moved[kind] = moved.get(kind, 0) + sign * amount
            self._shares.pop(branch, None)

    @property
    def touched(self) -> list[Branch]:
        """The branches that something was moved in, without the root."""
        return [branch for branch in self._dims if branch.parent is not None]

    def share(self, branch: Branch) -> int:
        share = self._shares.get(branch)
        if share is None:
            moved = self._kinds.get(branch)
            share = branch.share if moved is None else self._measure(branch, moved)
            self._shares[branch] = share
        return share

    def share_with(self, branch: Branch, cost: Cost) -> int:
        moved = dict(self._kinds.get(branch, {}))
        for kind, amount in self._forest.kind_of.cost(cost):
            moved[kind] = moved.get(kind, 0) + amount
        return self._measure(branch, moved)

    def _measure(self, branch: Branch, moved: dict[Kind, int]) -> int:
        held = dict(branch.held)
        for kind, amount in moved.items():
            held[kind] = held.get(kind, 0) + amount
        return dominant_share(held, self._forest.whole, branch.weight)

    def held(self, branch: Branch, kind: Kind) -> int:
        moved = self._kinds.get(branch)
        return branch.held.get(kind, 0) + (moved.get(kind, 0) if moved else 0)

    def surplus(self, branch: Branch, kind: Kind) -> int:
        """How far a branch is above what it deserves of a kind, by weight; below it is less than nothing."""
        over = (self.held(branch, kind) << FRACTION_BITS) - branch.deserved.get(kind, 0)
        return over // branch.weight

    def apart(self, branch: Branch, kind: Kind) -> int:
        """The same, but for a rounding: who has what it deserves is nothing above it."""
        surplus = self.surplus(branch, kind)
        return surplus if abs(surplus) > slack(self._forest.whole.get(kind, 0)) else 0

    def is_above(self, branch: Branch, kinds: Iterable[Kind]) -> bool:
        """Whether a branch has more than it deserves of any of these."""
        moved, whole = self._kinds.get(branch, _NOTHING), self._forest.whole
        held, deserved = branch.held, branch.deserved
        for kind in kinds:  # as `surplus` says; this is asked of every queue that might give something
            amount = held.get(kind, 0) + moved.get(kind, 0)
            over = (amount << FRACTION_BITS) - deserved.get(kind, 0)
            if over > 0 and over // branch.weight > slack(whole.get(kind, 0)):
                return True
        return False

    def used(self, branch: Branch, bound: Bound) -> int:
        used = branch.used(bound)
        moved = self._dims.get(branch)
        return used + sum(moved.get(dim, 0) for dim in bound.dims) if moved else used

    def missing(self, room: Room) -> int:
        """How much more than a room allows would be held for good. Room that is kept for others counts as held as far
        as it is free now: a claim need not free room for them."""
        over = self.used(room.branch, room.bound) - room.bound.amount
        kept = room.kept_before(self._claim) if room.kept else 0
        return over + min(kept, max(0, room.bound.amount - room.branch.used(room.bound)))

    def missing_beside(self, room: Room) -> int:
        """The same for claims that come in beside this one. They get what victims leave only after those that room is
        kept for."""
        kept = room.kept_before(self._claim) if room.kept else 0
        return self.used(room.branch, room.bound) - room.bound.amount + kept

    def holds(self, branch: Branch, dims: tuple[Dim, ...]) -> bool:
        usage, moved = branch.usage, self._dims.get(branch, {})
        for dim in dims:  # noqa: SIM110 - this is asked of every queue that might give something
            if usage.get(dim, 0) + moved.get(dim, 0) > 0:
                return True
        return False
