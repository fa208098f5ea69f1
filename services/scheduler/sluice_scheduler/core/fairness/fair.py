"""What queues ask for, and what each would hold if that were shared fairly: figures for people.

Filled by weight, pool by pool, resource by resource and level by level, within guarantees and limits. Turns
go by dominant shares instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import NamedTuple

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim, Part, part_of
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.state.offers import paused
from sluice_scheduler.core.state.state import State


class Asking(NamedTuple):
    branch: Branch
    least: int  # what is guaranteed to it, as far as it wants that
    wanted: int  # no more than its limits allow


class Wish:
    """An amount of one resource that waits, and where it may go."""

    __slots__ = ("amount", "dims", "resource")

    def __init__(self, resource: str, amount: int, dims: tuple[Dim, ...]) -> None:
        self.resource = resource
        self.amount = amount
        self.dims = dims


class FairFigures:
    """`demand` and `shares` of each branch, by `pool/resource`; `given` is the same as `shares`, by dim."""

    def __init__(self, state: State) -> None:
        self.demand: dict[Branch, Resources] = {}
        self.shares: dict[Branch, Resources] = {}
        self.given: dict[Branch, dict[Dim, int]] = {}
        self._wishes = _wishes(state)
        root = state.forest.root
        for dim in sorted(state.forest.capacity):
            wanted: dict[Branch, int] = {}
            for branch in root.children:
                self._want(branch, dim, wanted)
            # Pods whose queue was deleted are charged to the root alone.
            orphaned = root.usage.get(dim, 0) - sum(b.usage.get(dim, 0) for b in root.children)
            self._fill(root.children, dim, wanted, state.forest.capacity[dim] - orphaned)
        for leaf in state.forest.leaves.values():
            for dim, amount in leaf.usage.items():
                self._ask(leaf, _key(dim), amount)
            for wish in self._wishes.get(leaf, ()):  # what no fair share covers
                self._ask(leaf, _key(wish.dims[0]) if wish.dims else wish.resource, wish.amount)

    def _want(self, branch: Branch, dim: Dim, wanted: dict[Branch, int]) -> int:
        if branch.children:
            total = sum(self._want(child, dim, wanted) for child in branch.children)
        else:
            waiting = sum(wish.amount for wish in self._wishes.get(branch, ()) if dim in wish.dims)
            total = branch.usage.get(dim, 0) + waiting
        limits = [room.bound for room in branch.rooms if dim in room.bound.dims]
        wanted[branch] = min([total, *(self._rest(branch, bound, dim) for bound in limits)])
        return wanted[branch]

    def _rest(self, branch: Branch, bound: Bound, dim: Dim) -> int:
        """What a bound over several pools leaves in one: shares given in others, or what is held there."""
        given = self.given.get(branch, {})
        others = (given.get(d, branch.usage.get(d, 0)) for d in bound.dims if d != dim)
        return max(0, bound.amount - sum(others))

    def _fill(self, branches: Iterable[Branch], dim: Dim, wanted: dict[Branch, int], offered: int) -> None:
        asking = []
        for branch in branches:
            bounds = [bound for bound in branch.guarantees if dim in bound.dims]
            least = max((self._rest(branch, bound, dim) for bound in bounds), default=0)
            asking.append(Asking(branch, min(least, wanted[branch]), wanted[branch]))
        for branch, amount in water_fill(asking, offered).items():
            self.given.setdefault(branch, {})[dim] = amount
            if amount:
                add(self.shares.setdefault(branch, {}), [(_key(dim), amount)])
            if branch.children:
                self._fill(branch.children, dim, wanted, amount)
            else:
                self._grant(branch, dim, amount - branch.usage.get(dim, 0))

    def _grant(self, leaf: Branch, dim: Dim, amount: int) -> None:
        """Put down where wishes are met; those with the fewest places first."""
        for wish in self._wishes.get(leaf, ()):
            if amount > 0 and dim in wish.dims:
                met = min(amount, wish.amount)
                wish.amount -= met
                amount -= met
                self._ask(leaf, _key(dim), met)

    def _ask(self, leaf: Branch, key: str, amount: int) -> None:
        if amount:
            for branch in leaf.path:
                add(self.demand.setdefault(branch, {}), [(key, amount)])


def water_fill(asking: list[Asking], amount: int) -> dict[Branch, int]:
    """Divide by weight, no less than each one's least; who wants less than its part leaves the rest."""
    if sum(each.least for each in asking) > amount:
        return _by_weight([each._replace(wanted=each.least) for each in asking], amount)
    kept: dict[Branch, int] = {}
    while True:
        rest = [each for each in asking if each.branch not in kept]
        given = _by_weight(rest, amount - sum(kept.values()))
        short = {each.branch: each.least for each in rest if given[each.branch] < each.least}
        if not short:
            return given | kept
        kept |= short


def _by_weight(asking: list[Asking], amount: int) -> dict[Branch, int]:
    given: dict[Branch, int] = {}
    left, weights = Fraction(max(0, amount)), sum(each.branch.weight for each in asking)
    for branch, _, wanted in sorted(
        asking, key=lambda each: (Fraction(each.wanted, each.branch.weight), each.branch.order)
    ):
        part = min(Fraction(wanted), left * branch.weight / weights)
        given[branch] = int(part)
        left, weights = left - part, weights - branch.weight
    return given


def _wishes(state: State) -> dict[Branch, list[Wish]]:
    """What each leaf waits for, those with the fewest places first."""
    sums: dict[tuple[str, str, tuple[Dim, ...]], int] = {}
    for queue, part, times in _waiting(state):
        pools = state.places.pools_for(part.cluster, dict(part.node_selector))
        for resource, amount in part.requests:
            dims = tuple((part.cluster, pool, resource) for pool in pools)
            key = (queue, resource, dims)
            sums[key] = sums.get(key, 0) + amount * part.pods * times
    wishes: dict[Branch, list[Wish]] = {}
    for queue, resource, dims in sorted(sums, key=lambda key: (len(key[2]), key)):
        wish = Wish(resource, sums[queue, resource, dims], dims)
        wishes.setdefault(state.forest.leaves[queue], []).append(wish)
    return wishes


def _waiting(state: State) -> Iterator[tuple[str, Part, int]]:
    """Claims in line, and pods that pause because their admission could not be written."""
    claims = Counter((claim.line, claim.shape) for claim in state.forest.claims.values())
    for (queue, shape), times in claims.items():
        for part in shape.parts:
            yield queue, part, times
    for key in paused(state):
        pod = state.pod(key)
        if pod.queue in state.forest.leaves and not pod.application:
            yield pod.queue, part_of(pod), 1


def _key(dim: Dim) -> str:
    _, pool, resource = dim
    return f"{pool}/{resource}"
