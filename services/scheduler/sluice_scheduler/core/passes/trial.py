"""A trial: what shares would be if some pods left and a claim came, under flags that stay as they are.

Before and after a move are judged alike: the resources that it takes count as not saturated, the claimant's
and the victims' queues as not blocked, and nobody else's state changes by the move.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.fairness.shares import Vector, add_up, dominant, leaf_vector, rounded


class Trial:
    def __init__(self, forest: Forest, *, taken: Iterable[Dim], unblocked: Iterable[Branch]) -> None:
        self._forest = forest
        self._saturated = forest.saturated - frozenset(taken)
        self._unblocked = {branch for leaf in unblocked for branch in leaf.path}
        self._moved: dict[Branch, dict[Dim, int]] = {}
        self._known: dict[Branch, tuple[Vector, int]] = {}

    def move(self, leaf: Branch, cost: Cost, sign: int) -> None:
        for branch in leaf.path:
            add(self._moved.setdefault(branch, {}), cost, sign)
            self._known.pop(branch, None)

    def share(self, branch: Branch) -> int:
        return rounded(self._measure(branch)[1])

    def used(self, branch: Branch, bound: Bound) -> int:
        moved = self._moved.get(branch)
        used = branch.used(bound)
        return used + sum(moved.get(dim, 0) for dim in bound.dims) if moved else used

    def holds(self, branch: Branch, dims: Iterable[Dim]) -> bool:
        moved = self._moved.get(branch, {})
        return any(branch.usage.get(dim, 0) + moved.get(dim, 0) > 0 for dim in dims)

    def _measure(self, branch: Branch) -> tuple[Vector, int]:
        known = self._known.get(branch)
        if known is None:
            known = self._known[branch] = self._compute(branch)
        return known

    def _compute(self, branch: Branch) -> tuple[Vector, int]:
        if branch.is_leaf:
            moved = self._moved.get(branch)
            if not moved:
                return branch.vector, branch.fine
            usage = {
                dim: branch.usage.get(dim, 0) + moved.get(dim, 0)
                for dim in branch.usage.keys() | moved.keys()
            }
            vector = leaf_vector(usage, self._forest.capacity)
            return vector, dominant(vector, branch.weight)
        vector = add_up(
            (*self._measure(child), child.blocked and child not in self._unblocked)
            for child in branch.children
        )
        return vector, dominant(vector, branch.weight, self._saturated)


def rises(before: Trial, after: Trial, leaves: Iterable[Branch], *, more_pods: bool) -> bool:
    """Whether a move raises the ascending share vectors of the tree's levels, root first, and then the number
    admitted. Branches that the move doesn't touch stand in both vectors alike, so they are left out."""
    levels: dict[int, dict[Branch, None]] = {}
    for leaf in leaves:
        for branch in leaf.path[:-1]:
            levels.setdefault(len(branch.path), {})[branch] = None
    for depth in sorted(levels):
        shares_before = sorted(before.share(branch) for branch in levels[depth])
        shares_after = sorted(after.share(branch) for branch in levels[depth])
        if shares_before != shares_after:
            return shares_after > shares_before
    return more_pods
