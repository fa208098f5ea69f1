"""All branches: what is held of what, and whose turn it is.

Simple semantics: before every choice, compute for each claim whether it fits, for each branch its share and
its head, and take from the root down the child that its parent's policy ranks lowest.

What is done instead, with the same result: every change marks the leaves that it concerns, `settle` brings
those and the branches above them up to date, and each inner branch keeps its children in a heap by rank. A
claim's fit is known by its shape (rooms.py), so a change that lets nobody in touches no leaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from sluice_scheduler.core.fairness.bounds import guarantees_of, limits_of
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Option, Part, Shape
from sluice_scheduler.core.fairness.hopes import stand_in_hope
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.rooms import Bound, Room, forget, set_bounds, watch
from sluice_scheduler.core.fairness.tree import QueueNode


class Forest:
    def __init__(
        self,
        tree: Mapping[str, QueueNode],
        policies: Mapping[str, Policy],
        default: str,
        *,
        places: Places,
        is_live: Callable[[str], bool],
    ) -> None:
        self._places = places
        self._is_live = is_live
        self.capacity: dict[Dim, int] = {}
        self.saturated: frozenset[Dim] = frozenset()
        self._excluded: frozenset[Dim] = frozenset()  # the saturated ones, unless that is all there are
        self.shapes: dict[tuple[Part, ...], Shape] = {}
        self.claims: dict[str, Claim] = {}
        self._dirty: dict[Branch, None] = {}
        self._dirty_rooms: dict[Room, None] = {}
        self._overfull: dict[Room, None] = {}
        self._stale = True
        self.root = Branch(None, None, is_leaf=False, policy=policies[default])
        #: Bottom up, the root left out.
        self.inner: list[Branch] = []
        self.leaves: dict[str, Branch] = {}  # by the name of the queue whose pods they hold
        roots = sorted((node for node in tree.values() if node.parent is None), key=_order)
        for node in roots:
            self._grow(node, self.root, policies)

    def _grow(self, node: QueueNode, parent: Branch, policies: Mapping[str, Policy]) -> None:
        policy = policies.get(node.facts.policy, parent.policy)
        branch = Branch(node, parent, is_leaf=not node.children, policy=policy)
        parent.children.append(branch)
        leaf = branch
        if node.children:
            leaf = Branch(node, branch, is_leaf=True, policy=policy)
            branch.children.append(leaf)
            for child in sorted(node.children, key=_order):
                self._grow(child, branch, policies)
            self.inner.append(branch)
        self.leaves[node.name] = leaf

    def branch(self, name: str) -> Branch | None:
        """The branch of a queue and all below it."""
        leaf = self.leaves.get(name)
        return leaf.parent if leaf is not None and leaf.is_implicit else leaf

    # ---- what moves

    def charge(self, queue: str, cost: Cost, sign: int, *, leaving: bool = False) -> None:
        """Without a branch (the queue was deleted while its pods run) the pools still count what is held."""
        leaf = self.leaves.get(queue, self.root)
        for branch in leaf.path:
            branch.add(branch.leaving if leaving else branch.usage, cost, sign, self._dirty_rooms)
        self._dirty[leaf] = None

    def shape(self, parts: tuple[Part, ...]) -> Shape:
        shape = self.shapes.get(parts)
        if shape is None:
            shape = self.shapes[parts] = Shape(parts, len(self.shapes))
            shape.place([self._pools_for(part) for part in parts])
        return shape

    def join(self, claim: Claim) -> None:
        leaf = self.leaves[claim.line]
        self.claims[claim.key] = claim
        claim.shape.waiting += 1
        if leaf.line.join(claim):
            watch(leaf, claim.shape)
        self._dirty[leaf] = None

    def leave(self, key: str) -> None:
        claim = self.claims.pop(key, None)
        if claim is None:
            return
        leaf = self.leaves[claim.line]
        claim.shape.waiting -= 1
        if leaf.line.leave(claim):
            forget(leaf, claim.shape)
        if not claim.shape.waiting:
            del self.shapes[claim.shape.parts]
        self._dirty[leaf] = None

    def capacity_changed(self) -> None:
        self._stale = True

    def touch(self, branch: Branch) -> None:
        """What a policy ranks a branch by has changed."""
        branch.take_turn()
        if branch.parent is not None:
            self._lift({branch.parent: None})

    # ---- whose turn it is

    def next(self) -> Branch | None:
        """The leaf whose head is served next."""
        self.settle()
        branch = self.root.first()
        while branch is not None and not branch.is_leaf:
            branch = branch.first()
        return branch

    def settle(self) -> None:
        if self._stale:
            self._refresh_all()
        if not self._dirty and not self._dirty_rooms:
            return
        turned = self._remeasure_rooms()
        dirty, self._dirty = self._dirty, {}
        above = self._note_saturated() if self.inner else {}
        for leaf in dirty:
            if leaf.parent is not None:
                leaf.measure(self.capacity, self._excluded)
                leaf.hope_is_known = False
                self._find_head(leaf)
                above[leaf.parent] = None
        for leaf in turned:
            if leaf not in dirty and leaf.parent is not None:
                self._find_head(leaf)
                above[leaf.parent] = None
        self._lift(above)

    def _remeasure_rooms(self) -> dict[Branch, None]:
        """The leaves whose claims may fit now and didn't, or the other way round."""
        turned: dict[Branch, None] = {}
        for room in self._dirty_rooms:
            for fit in room.remeasure():
                turned.update(fit.leaves)
            if room.left < 0:
                self._overfull[room] = None
        self._dirty_rooms.clear()
        return turned

    def _note_saturated(self) -> dict[Branch, None]:
        """The inner branches whose shares depend on what is saturated, if that has changed."""
        saturated = self._find_saturated()
        if saturated == self.saturated:
            return {}
        self.saturated = saturated
        self._excluded = saturated if len(saturated) < len(self.root.rooms) else frozenset()
        return dict.fromkeys(self.inner)

    def open_option(self, leaf: Branch, shape: Shape) -> Option | None:
        """The first way to place a shape that fits everywhere above a leaf."""
        for option in shape.options:
            for branch in leaf.bounded:
                fit = branch.fits.get(option)
                if fit is not None and fit.short:
                    break
            else:
                return option
        return None

    def short_of(self, leaf: Branch, option: Option) -> Bound | None:
        """The first bound from the queue up that an option does not fit under."""
        for dim, _ in option.cost:
            if dim not in self.capacity:
                return Bound((dim,), 0, f"pool {dim[1]}'s {dim[2]}")
        for branch in leaf.bounded:
            for dim, amount in option.cost:
                for room in branch.rooms_of.get(dim, ()):
                    dims = room.bound.dims
                    asked = amount if len(dims) == 1 else room.bound.part(option.cost)
                    if asked > room.left:  # an amount of a cost is never nothing
                        return room.bound
        return None

    def overfull(self) -> list[Room]:
        """Rooms that hold more than their bound, the lowest first."""
        self._overfull = {room: None for room in self._overfull if room.left < 0}
        return sorted(
            self._overfull, key=lambda room: (-len(room.branch.path), room.branch.order, room.bound)
        )

    def rank_of(self, leaf: Branch, claim: Claim) -> tuple[Any, ...]:
        """Where a claim would stand if it were its leaf's head, compared from the root down."""
        ranks: list[Any] = []
        covered = False
        for branch in leaf.path[:-1]:
            standing = branch.covered
            covered = covered or any(branch.is_covered(option.cost) for option in claim.shape.options[:1])
            branch.covered = covered
            ranks += (branch.order, branch.rank(claim))
            branch.covered = standing
        return tuple(reversed(ranks))

    # ---- keeping up to date

    def _find_head(self, leaf: Branch) -> None:
        """Who of a leaf's line is served next, and where the leaf stands by that."""
        was_blocked = leaf.blocked
        leaf.head, leaf.option = leaf.line.head(partial(self.open_option, leaf))
        leaf.blocked = leaf.head is None
        leaf.covered = leaf.option is not None and leaf.is_covered(leaf.option.cost)
        leaf.tell(self.root)
        leaf.take_turn()
        if leaf.blocked and not (was_blocked and leaf.hope_is_known):
            stand_in_hope(leaf, self.capacity)

    def _lift(self, above: dict[Branch, None]) -> None:
        """Bring inner branches up to date with their children, and those above them, each once."""
        if not self.inner:
            return
        levels: dict[int, dict[Branch, None]] = {}
        for branch in above:
            levels.setdefault(len(branch.path), {})[branch] = None
        for depth in range(max(levels, default=1), 1, -1):
            for branch in levels.get(depth, ()):
                best = branch.first()
                branch.blocked = best is None
                branch.head, branch.option = (best.head, best.option) if best else (None, None)
                branch.covered = best is not None and (
                    best.covered or (best.option is not None and branch.is_covered(best.option.cost))
                )
                branch.measure(self.capacity, self._excluded)
                branch.tell(self.root)
                branch.take_turn()
                if branch.parent is not None:
                    levels.setdefault(depth - 1, {})[branch.parent] = None

    def _find_saturated(self) -> frozenset[Dim]:
        """The dims of which there is too little left for anybody who waits."""
        found = []
        for room in self.root.rooms:
            room_least = room.least()
            if room.left <= 0 or room_least > room.left:
                found.append(room.bound.dims[0])
        return frozenset(found)

    def _refresh_all(self) -> None:
        """Capacity has changed, and with it shares, percentages and where things may go."""
        self._stale = False
        self.capacity = {
            (cluster, pool, resource): max(0, amount)
            for (cluster, pool), amounts in self._places.capacity.items()
            for resource, amount in amounts.items()
        }
        for held in (self.root.usage, self.root.leaving):
            for dim in held:
                if dim[1] in self._places.node_count:  # a pool that has lost its last node
                    self.capacity.setdefault(dim, 0)
        for shape in self.shapes.values():
            shape.place([self._pools_for(part) for part in shape.parts])
        pool_bounds = [
            Bound((dim,), amount, f"pool {dim[1]}'s {dim[2]}")
            for dim, amount in sorted(self.capacity.items())
        ]
        set_bounds(self.root, pool_bounds)
        for branch in self.inner:
            set_bounds(branch, self._limits(branch))
        for leaf in self.leaves.values():
            set_bounds(leaf, [] if leaf.is_implicit else self._limits(leaf))
            # The root bounds even what there is nothing of.
            leaf.bounded = [branch for branch in leaf.path if branch.rooms or branch is self.root]
        for leaf in self.leaves.values():
            for shape in leaf.line.shapes:
                watch(leaf, shape)
            self._dirty[leaf] = None
        self._dirty_rooms.clear()
        self._overfull = {room: None for branch in self._all() for room in branch.rooms if room.left < 0}

    def _all(self) -> Iterator[Branch]:
        yield self.root
        yield from self.inner
        yield from self.leaves.values()

    def _pools_for(self, part: Part) -> list[str]:
        """Nothing is decided about a cluster before it is live."""
        if not self._is_live(part.cluster):
            return []
        return self._places.pools_for(part.cluster, dict(part.node_selector))

    def _limits(self, branch: Branch) -> list[Bound]:
        assert branch.queue is not None
        branch.guarantees = guarantees_of(branch.name, branch.queue.facts, self.capacity)
        return limits_of(branch.name, branch.queue.facts, self.capacity)


def _order(node: QueueNode) -> tuple[int, str]:
    return (node.facts.created_ms, node.name)
