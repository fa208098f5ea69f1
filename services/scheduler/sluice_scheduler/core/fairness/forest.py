"""All branches: how much each holds, and whose turn it is.

Simple semantics: before every choice, find of each queue's line the claim that is served next (the first that
fits, or nothing behind the first in a strict line), and take from the root down the child that its parent's
policy ranks lowest with that claim.

What is done instead, with the same result:

* Nothing is done for a claim that stops fitting. Its queue keeps its turn, which can only be too early. Whoever
  comes up is looked at again: if its head does not fit, the shape is *parked* in its line, and the queue takes
  the turn of its next one.
* A shape that fits nowhere under the root *sleeps*. While all do, nobody's turn comes, whatever the heaps say: once
  somebody does not fit it is asked whether anything does, and if not, all others keep their turns unlooked at.
* What did not fit watches one room (rooms.py). When that has become large enough, those that wait with it are
  unparked, and only those.
* What has moved marks its leaf; `settle` brings those leaves and the branches above them up to date.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from sluice_scheduler.core.fairness.branch import BEYOND, COVERED, DESERVED, Branch, Turn
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Kind, KindCost, Shape, Spot
from sluice_scheduler.core.fairness.deserved import Deserving
from sluice_scheduler.core.fairness.fits import Fits
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.rooms import stop_watching
from sluice_scheduler.core.fairness.tree import QueueNode

#: Of a line with more shapes than this not each is looked at: it stands where the best of them could.
_SHAPES_MAX: Final = 64


class Served(NamedTuple):
    """Who is served next: how it stands among its siblings, and in which class."""

    key: tuple[int, Any, tuple[int, str]]
    leaf: Branch
    claim: Claim
    spot: Spot
    at: int


class Forest(Fits):
    def __init__(
        self,
        tree: Mapping[str, QueueNode],
        policies: Mapping[str, Policy],
        default: str,
        *,
        places: Places,
        is_live: Callable[[str], bool],
    ) -> None:
        super().__init__(policies, default, places=places, is_live=is_live)
        self.grow(tree, policies)

    def grow(self, tree: Mapping[str, QueueNode], policies: Mapping[str, Policy]) -> None:
        """Take the shape of a tree of queues. Leaves that stand already keep what they hold and their lines; what
        is held by a queue that is gone the pools still count."""
        before, self.leaves, self.inner = self.leaves, {}, []
        self.root.children, self.root.turns = [], []
        self._overfull = {room: None for room in self._overfull if room.branch is self.root}
        self._risen = {room: None for room in self._risen if room.branch is self.root}
        for node in sorted((node for node in tree.values() if node.parent is None), key=_order):
            self._grow(node, self.root, policies, before)
        for name in before.keys() - self.leaves.keys():
            for claim in list(before[name].line):
                self._leave(claim, before[name])
            self._dirty.pop(before[name], None)
        self._standing.leave(before[name] for name in before.keys() - self.leaves.keys())
        self._kept = {claim: kept for claim, kept in self._kept.items() if kept[0] in self.leaves}
        for room in self.root.rooms:
            room.keep_nothing()
            self._remeasure(room)
        for branch in reversed(self.inner):
            branch.add_up()
        self._stale = self._reshaped = True

    def _grow(
        self,
        node: QueueNode,
        parent: Branch,
        policies: Mapping[str, Policy],
        before: Mapping[str, Branch],
    ) -> None:
        policy = policies.get(node.facts.policy, parent.policy)
        if node.children:
            branch = Branch(node, parent, is_leaf=False, policy=policy)
            parent.children.append(branch)
            self.inner.append(branch)
        leaf = before.get(node.name)
        under = branch if node.children else parent
        if leaf is None:
            leaf = Branch(node, under, is_leaf=True, policy=policy)
        else:
            leaf.stand(node, under, policy=policy)
        under.children.append(leaf)
        self.leaves[node.name] = leaf
        for child in sorted(node.children, key=_order):
            self._grow(child, branch, policies, before)

    def admit(self, key: str, spot: Spot) -> None:
        """A claim leaves its line for a spot: `leave` and `charge` in one, for every admission does it."""
        claim = self.claims[key]
        leaf, shape = self.leaves[claim.line], claim.shape
        if not spot.cost:
            self._leave(claim, leaf)
            return
        alike = spot.alike
        if alike is None or not alike.pods:  # nobody is counted there any more
            alike = spot.alike = self._alike(shape.parts[0], spot.cost[0][0][:2])
        self._standing.count(alike, leaf, 1)
        ((group, amounts),) = shape.wants
        same = alike.group == group
        self._leave(claim, leaf, wants=not same)
        self._charge(leaf, spot.cost, spot.kinds, 1)
        if not same:
            self._want(leaf, alike.group, amounts, 1)

    def class_of(self, leaf: Branch, kinds: KindCost, cost: Cost) -> int:
        """In which class something is served that a queue asks for."""
        at = self._class_in(leaf, kinds, cost)
        for branch in leaf.path[1:-1]:
            at = self._class_above(branch, at, kinds, cost)
        return at

    def _class_in(self, branch: Branch, kinds: KindCost, cost: Cost) -> int:
        if branch.guarantees and branch.is_covered(cost):
            return COVERED
        return DESERVED if branch.deserves(kinds) else BEYOND

    def _class_above(self, branch: Branch, below: int, kinds: KindCost, cost: Cost) -> int:
        if below == COVERED or (branch.guarantees and branch.is_covered(cost)):
            return COVERED
        return DESERVED if below == DESERVED and branch.deserves(kinds) else BEYOND

    def next(self) -> tuple[Branch, Claim, Spot] | None:
        """The leaf, claim and spot to be served next."""
        self.settle()
        if not self._awake:
            return None
        first = self.root.first()
        if first is not None and first.is_leaf and first.line.is_uniform and first.head is not None:
            spot = self.open_spot(first, first.head.shape)  # the usual case: it stands just where it may
            if spot is not None and len(spot.shape.spots) == 1:
                return first, first.head, spot
            if spot is None:
                self._take_turn(first)
                self._doze()
        found = self._best(self.root)
        return None if found is None else (found.leaf, found.claim, found.spot)

    def _best(self, branch: Branch) -> Served | None:
        """The child of a branch that comes first with a claim that fits.

        Children stand by what they could have at best, so each is looked at until nobody else could come before
        the best that was found.
        """
        best: Served | None = None
        seen: list[Turn] = []
        while self._awake and (child := branch.first()) is not None:
            turn = child.turn
            assert turn is not None, child.name
            if best is not None and best.key <= turn[:3]:
                break
            found = self._best_in_leaf(child) if child.is_leaf else self._best_below(child)
            if child.turn is not turn or (found is None and child.turn is not None):
                continue  # its head did not fit: now it stands there with the next
            if found is not None and (best is None or found.key < best.key):
                best = found
            if found is not None and found.key == turn[:3]:
                break
            seen.append(heapq.heappop(branch.turns))
        for turn in seen:
            if turn[3].turn is turn:
                heapq.heappush(branch.turns, turn)
        return best

    def _best_in_leaf(self, leaf: Branch) -> Served | None:
        claim = leaf.head
        assert claim is not None, leaf.name
        spot = self.open_spot(leaf, claim.shape)
        if spot is None:
            self._take_turn(leaf)
            self._doze()
            return None
        if leaf.line.is_uniform and len(claim.shape.spots) == 1 and leaf.turn is not None:
            return Served(leaf.turn[:3], leaf, claim, spot, leaf.turn[0])  # it stands just where it may
        at = self._class_in(leaf, spot.kinds, spot.cost)
        return Served((*leaf.rank(claim, at), leaf.order), leaf, claim, spot, at)

    def _best_below(self, branch: Branch) -> Served | None:
        found = self._best(branch)
        if found is None:
            if self._awake:  # if not, those below it keep their turns too
                branch.head = None
                branch.take_turn(BEYOND)
            return None
        at = self._class_above(branch, found.at, found.spot.kinds, found.spot.cost)
        return found._replace(key=(*branch.rank(found.claim, at), branch.order), at=at)

    def settle(self) -> None:
        if self._stale:
            self._refresh_all()
        while self._risen:
            risen, self._risen = self._risen, {}
            for room in risen:
                for watcher in room.woken():
                    self._wake(watcher)
        if not self._dirty:
            return
        dirty, self._dirty = self._dirty, {}
        above: dict[Branch, None] = {}
        for leaf in dirty:
            if leaf.parent is not None:
                leaf.measure(self.whole)
                self._take_turn(leaf)
                above[leaf.parent] = None
        self._lift(above)

    def _take_turn(self, leaf: Branch) -> None:
        """Let a leaf stand where the best of the claims puts it that may fit."""
        head = leaf.head = leaf.line.head()
        leaf.take_turn(BEYOND if head is None else self._least_class(leaf, head))

    def _least_class(self, leaf: Branch, head: Claim) -> int:
        """The best class that any of a leaf's claims may have. A leaf that comes up too early is looked at again."""
        at = self._class_of_shape(leaf, head.shape)
        best = COVERED if leaf.guarantees else DESERVED
        if at == best or leaf.line.is_uniform or leaf.parent is None:
            return at
        if best != COVERED and not leaf.parent.policy.reclaims:
            return at  # under such a policy no other class counts
        if leaf.line.variety > _SHAPES_MAX:
            may_cover, may_deserve = leaf.guarantees and leaf.may_cover, leaf.has_allowance
            return min(at, COVERED if may_cover else DESERVED if may_deserve else BEYOND)
        for claim in leaf.line.ready():
            at = min(at, self._class_of_shape(leaf, claim.shape))
            if at == best:
                break
        return at

    def _class_of_shape(self, leaf: Branch, shape: Shape) -> int:
        if len(shape.spots) == 1:
            (spot,) = shape.spots
            return self._class_in(leaf, spot.kinds, spot.cost)
        if not shape.spots:
            return COVERED if leaf.may_cover else DESERVED
        return min(self._class_in(leaf, spot.kinds, spot.cost) for spot in shape.spots)

    def _lift(self, above: dict[Branch, None]) -> None:
        """Bring inner branches up to date with their children, and those above them, each once."""
        if not self.inner:
            return
        levels: dict[int, dict[Branch, None]] = {}
        for branch in above:
            levels.setdefault(len(branch.path), {})[branch] = None
        for depth in range(max(levels, default=1), 1, -1):
            for branch in levels.get(depth, ()):
                branch.measure(self.whole)
                best = branch.first()
                branch.head = best.head if best is not None else None
                at = BEYOND
                if best is not None and best.turn is not None:
                    at = best.turn[0]
                    if branch.may_cover:
                        at = COVERED
                    elif at == DESERVED and not branch.may_deserve:
                        at = BEYOND
                branch.take_turn(at)
                if branch.parent is not None:
                    levels.setdefault(depth - 1, {})[branch.parent] = None

    def touch(self, branch: Branch) -> None:
        """What a policy ranks a branch by has changed."""
        if branch.is_leaf:
            self._dirty[branch] = None
        elif branch.parent is not None:
            self._lift({branch: None})

    def update_deserved(self) -> dict[Branch, dict[Kind, int]]:
        """Work out anew what every branch deserves; the branches of which that has changed."""
        self.settle()
        return self.deserving.update(self._orphaned())

    def set_deserved(self, deserved: Mapping[Branch, dict[Kind, int]]) -> None:
        self.version += 1
        for branch, amounts in deserved.items():
            branch.deserved = amounts
            branch.allow(self.whole)
        for branch in deserved:
            if branch.is_leaf:
                self._dirty[branch] = None
        self._lift({branch: None for branch in deserved if not branch.is_leaf})

    def capacity_changed(self) -> None:
        self._stale = True

    def pools_changed(self, places: Places) -> None:
        """Nodes belong to other pools now; each pool is still of the supply that it was."""
        self._places = places
        self.kind_of.set_supplies(places.supplies)
        self._refresh_all()
        for shape in list(self.shapes.values()):
            self._place_anew(shape)
        self._regroup(None)
        self.pressure = {}  # with one pool nothing was counted
        for shape in self.shapes.values():
            self._press(shape, sum(shape.lines.values()))

    def _refresh_all(self) -> None:
        """Capacity has changed, and with it shares and percentages; some shapes may go elsewhere now."""
        self.version += 1
        self._stale = False
        reshaped, self._reshaped = self._reshaped, False
        capacity = {
            (cluster, pool, resource): max(0, amount)
            for (cluster, pool), amounts in self._places.capacity.items()
            for resource, amount in amounts.items()
        }
        for held in (self.root.usage, self.root.leaving):
            for dim in held:  # of a pool that has lost its last node, or never had any with this resource
                capacity.setdefault(dim, 0)
        if capacity != self.capacity or reshaped:
            self._resize(capacity)
        selectors = self._places.take_changed()
        self._regroup(selectors)
        for selected in selectors:
            for shape in list(self._by_selector.get(selected, ())):
                if self._goes_elsewhere(shape):
                    self._place_anew(shape)

    def _resize(self, capacity: dict[Dim, int]) -> None:
        new_dims = capacity.keys() != self.capacity.keys()
        self.capacity = capacity
        if new_dims:  # who waits is placed anew below, and watches rooms that are still there
            self.root.rooms_of = {dim: rooms for dim, rooms in self.root.rooms_of.items() if dim in capacity}
            self.root.rooms = [room for rooms in self.root.rooms_of.values() for room in rooms]
        self._overfull = {}  # all rooms are measured anew: nobody is to shed for one that is no more
        self.whole = {}
        for dim, amount in capacity.items():
            kind = self.kind_of(dim)
            self.whole[kind] = self.whole.get(kind, 0) + amount
            self._root_room(dim)
        for room in self.root.rooms:
            (dim,) = room.bound.dims
            room.bound = room.bound._replace(amount=capacity.get(dim, 0))
            self._remeasure(room)
        self._bound_anew()
        kept = self._kept
        self.keep_nothing()
        for claim, (queue, cost, within) in kept.items():
            self.keep_for(claim, queue, cost, within)
        if new_dims:
            for leaf in self.leaves.values():
                leaf.line.hope_anew()
            for shape in list(self.shapes.values()):
                self._place_anew(shape)
        else:
            self._ask_anew()
        for branch in self.all_branches():
            branch.allow(self.whole)
        self.deserving = Deserving(self.root, self.capacity, self.kind_of)

    def _bound_anew(self) -> None:
        """Queues' bounds may be others now. Who watches a room that is still there is woken if that has grown; whom
        other rooms are above than before looks again."""
        dims_of: dict[Kind, set[Dim]] = {}
        for dim in self.capacity:
            dims_of.setdefault(self.kind_of(dim), set()).add(dim)
        own = (leaf for leaf in self.leaves.values() if not leaf.is_implicit)
        branches = [*own, *reversed(self.inner)]  # children before those that pass their guarantees on
        was = {branch: [room.bound for room in branch.rooms] for branch in branches}
        changed = {branch for branch in branches if self._set_bounds(branch, dims_of)}
        moved = {branch for branch in branches if [room.bound for room in branch.rooms] != was[branch]}
        for leaf in self.leaves.values():
            before, leaf.bounded = leaf.bounded, [branch for branch in leaf.path[:-1] if branch.rooms]
            if leaf.bounded != before or not changed.isdisjoint(before):
                self._try_again(leaf)
            if leaf.bounded != before or not moved.isdisjoint(before):
                self._look_for_limits_anew(leaf)
            leaf.line.hope_for_spreads()
            leaf.turn = None
            self._dirty[leaf] = None

    def _try_again(self, leaf: Branch) -> None:
        """The rooms that its shapes watch may be gone."""
        for watcher in [each for row in leaf.held_back.values() for each in row]:
            stop_watching(watcher)
            self._wake(watcher)
        leaf.held_back = {}
        leaf.line.hope_anew()


def _order(node: QueueNode) -> tuple[int, str]:
    return (node.facts.created_ms, node.name)
