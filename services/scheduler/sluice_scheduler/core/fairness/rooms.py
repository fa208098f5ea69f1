"""What is left under a bound, and which options fit into it.

A queue's limits and the pools' capacities are the same thing: the capacities are the limits of the root. Each
bound has a *room* that knows the smallest need that doesn't fit and the largest that does, so a change that
lets nobody in and keeps nobody out costs two comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from sluice_scheduler.core.fairness.claims import Cost, Dim, Option, Shape

if TYPE_CHECKING:
    from sluice_scheduler.core.fairness.branch import Branch

_NONE_FITS: Final = -1
_ALL_FIT: Final = 1 << 200


class Bound(NamedTuple):
    """At most (or, of a guarantee, at least) so much of these dims together; `name` is for people."""

    dims: tuple[Dim, ...]
    amount: int
    name: str

    def part(self, cost: Cost) -> int:
        part = 0
        for dim, amount in cost:
            if dim in self.dims:
                part += amount
        return part


class Fit:
    """Whether an option fits into all rooms of one branch, and the leaves where claims wait for it."""

    __slots__ = ("leaves", "option", "short")

    def __init__(self, option: Option) -> None:
        self.option = option
        self.short = 0  # rooms that are too small
        self.leaves: dict[Branch, None] = {}


class Room:
    __slots__ = ("_largest_fitting", "_smallest_waiting", "bound", "branch", "left", "needs")

    def __init__(self, branch: Branch, bound: Bound) -> None:
        self.branch = branch
        self.bound = bound
        self.needs: dict[Fit, int] = {}
        self.left = self.measure()
        self._largest_fitting, self._smallest_waiting = _NONE_FITS, _ALL_FIT

    def measure(self) -> int:
        """Evicted pods still take room until they are gone, promised claims already do."""
        usage, leaving = self.branch.usage, self.branch.leaving
        left = self.bound.amount
        for dim in self.bound.dims:
            left -= usage.get(dim, 0)
            if leaving:
                left -= max(0, leaving.get(dim, 0))
        return left

    def least(self) -> int:
        """The smallest that anybody asks; 0 if nobody asks."""
        if self._largest_fitting >= 0:
            return min(self.needs.values())
        return self._smallest_waiting if self.needs else 0

    def watch(self, fit: Fit, need: int) -> None:
        self.needs[fit] = need
        if need > self.left:
            fit.short += 1
            self._smallest_waiting = min(self._smallest_waiting, need)
        else:
            self._largest_fitting = max(self._largest_fitting, need)

    def forget(self, fit: Fit) -> None:
        del self.needs[fit]
        self._find_edges()

    def remeasure(self) -> list[Fit]:
        """Take note of what is left now; the fits that have turned by it."""
        left = self.measure()
        if self._largest_fitting <= left < self._smallest_waiting:
            self.left = left
            return []
        turned = []
        for fit, need in self.needs.items():
            fitted, fits = need <= self.left, need <= left
            if fitted != fits:
                was_open = fit.short == 0
                fit.short += -1 if fits else 1
                if was_open != (fit.short == 0):
                    turned.append(fit)
        self.left = left
        self._find_edges()
        return turned

    def _find_edges(self) -> None:
        needs = self.needs.values()
        self._largest_fitting = max((need for need in needs if need <= self.left), default=_NONE_FITS)
        self._smallest_waiting = min((need for need in needs if need > self.left), default=_ALL_FIT)


def set_bounds(branch: Branch, bounds: Iterable[Bound]) -> None:
    """Give a branch its rooms; who waits for them is to be watched anew."""
    branch.fits = {}
    branch.rooms = [Room(branch, bound) for bound in bounds]
    branch.rooms_of = {}
    for room in branch.rooms:
        for dim in room.bound.dims:
            branch.rooms_of.setdefault(dim, []).append(room)


def watch(leaf: Branch, shape: Shape) -> None:
    """A leaf has claims of a shape now: let every room above it know what they need."""
    for option in shape.options:
        for branch in leaf.bounded:
            fit = branch.fits.get(option)
            if fit is None:
                concerned = dict.fromkeys(
                    room for dim, _ in option.cost for room in branch.rooms_of.get(dim, ())
                )
                unknown = branch.parent is None and any(dim not in branch.rooms_of for dim, _ in option.cost)
                if not concerned and not unknown:
                    continue
                fit = branch.fits[option] = Fit(option)
                fit.short = 1 if unknown else 0  # a resource that the pool has nothing of
                for room in concerned:
                    room.watch(fit, room.bound.part(option.cost))
            fit.leaves[leaf] = None


def forget(leaf: Branch, shape: Shape) -> None:
    """The opposite of `watch`: a leaf has no claims of a shape any more."""
    for option in shape.options:
        for branch in leaf.bounded:
            fit = branch.fits.get(option)
            if fit is None:
                continue
            fit.leaves.pop(leaf, None)
            if not fit.leaves:
                del branch.fits[option]
                for room in dict.fromkeys(r for dim, _ in option.cost for r in branch.rooms_of.get(dim, ())):
                    room.forget(fit)
