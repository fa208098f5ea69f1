"""Who could fit if nobody else held anything but what is guaranteed to others."""

from __future__ import annotations

from functools import partial
from typing import TypeAlias

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.state.state import State

_Held: TypeAlias = dict[tuple[Branch, tuple[Dim, ...]], int]


class Guarantees:
    """As they are when a pass looks at them first. A guarantee within another counts with it."""

    def __init__(self, state: State) -> None:
        self._forest = state.forest
        self._any: bool | None = None
        self._in: _Held = {}
        self._below: _Held = {}

    def place(self, leaf: Branch, shape: Shape) -> Spot | None:
        """The first place where a shape could fit."""
        return self._forest.place_within(leaf, shape, partial(self._left_in, leaf))

    def let_in(self, leaf: Branch, cost: Cost) -> bool:
        return self._forest.has_room(leaf, cost, partial(self._left_in, leaf))

    def _left_in(self, leaf: Branch, room: Room) -> int:
        """What others do not hold of a room within their guarantees: those beside each branch on the way down."""
        if self._any is None:
            self._any = any(branch.guarantees for branch in self._forest.all_branches())
        left, dims = room.bound.amount, room.bound.dims
        for branch in leaf.path if self._any else ():
            if branch is room.branch or branch.parent is None:
                break
            left -= self._held_below(branch.parent, dims) - self._held_in(branch, dims)
        return left

    def _held_in(self, branch: Branch, dims: tuple[Dim, ...]) -> int:
        held = self._in.get((branch, dims))
        if held is None:
            held = 0
            for bound in branch.guarantees:
                if set(dims) <= set(bound.dims):
                    held = min(bound.amount, sum(branch.usage.get(dim, 0) for dim in dims))
            self._in[(branch, dims)] = held = held or self._held_below(branch, dims)
        return held

    def _held_below(self, branch: Branch, dims: tuple[Dim, ...]) -> int:
        held = self._below.get((branch, dims))
        if held is None:
            held = self._below[(branch, dims)] = sum(self._held_in(child, dims) for child in branch.children)
        return held
