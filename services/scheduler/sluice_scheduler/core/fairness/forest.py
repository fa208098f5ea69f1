"""All branches: what is held of what, and whose turn it is.

Simple semantics: before every choice, find of each queue's line the claim that is served next (the first that
fits, or nothing behind the first in a strict line), and take from the root down the child that its parent's
policy ranks lowest with that claim.

What is done instead, with the same result:

* Nothing is done for a claim that stops fitting. Its queue keeps its turn, which can only be too early. Whoever
  comes up is looked at again: if its head does not fit, the shape is *parked* in its line, and the queue takes
  the turn of its next one.
* A shape that fits nowhere under the root *sleeps*. While all do, nobody's turn comes, whatever the heaps say.
* What did not fit watches one room (rooms.py). When that has become large enough, those that wait with it are
  unparked, and only those.
* What has moved marks its leaf; `settle` brings those leaves and the branches above them up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sluice_scheduler.core.fairness.bounds import guarantees_of, limits_of, passed_on, summed, tightest
from sluice_scheduler.core.fairness.branch import BEYOND, COVERED, DESERVED, Branch, Stuck
from sluice_scheduler.core.fairness.claims import (
    Claim,
    Cost,
    Dim,
    Group,
    Kind,
    KindCost,
    KindOf,
    Part,
    Shape,
    Spot,
    cost_of,
    group_of,
)
from sluice_scheduler.core.fairness.deserved import Deserving
from sluice_scheduler.core.fairness.places import Places, Selected
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.rooms import Bound, Room, Watcher, stop_watching
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
        self.whole: dict[Kind, int] = {}  # capacity by kind
        self.kind_of = KindOf()
        self.kind_of.set_supplies(places.supplies)
        self.shapes: dict[tuple[Part, ...], Shape] = {}
        self._by_selector: dict[Selected, dict[Shape, None]] = {}
        self._numbers = 0
        self.claims: dict[str, Claim] = {}
        #: By dim, what waits for it and how much of that may go nowhere else, in parts of the places it has.
        self.pressure: dict[Dim, int] = {}
        self._kept: tuple[str, Cost] | None = None
        #: Rises with whatever may let a search for victims end otherwise than the last one.
        self.version = 0
        self._awake: dict[Shape, None] = {}
        self._dirty: dict[Branch, None] = {}
        self._risen: dict[Room, None] = {}
        self._overfull: dict[Room, None] = {}
        self._stale = self._reshaped = True
        self.root = Branch(None, None, is_leaf=False, policy=policies[default])
        #: Top down, the root left out.
        self.inner: list[Branch] = []
        self.leaves: dict[str, Branch] = {}  # by the name of the queue whose pods they hold
        self.deserving = Deserving(self.root, self.whole)
        self.grow(tree, policies)

    # ---- the tree

    def grow(self, tree: Mapping[str, QueueNode], policies: Mapping[str, Policy]) -> None:
        """Take the shape of a tree of queues. Leaves that stand already keep what they hold and their lines; what
        is held by a queue that is gone the pools still count."""
        before, self.leaves, self.inner = self.leaves, {}, []
        self.root.children, self.root.turns = [], []
        for node in sorted((node for node in tree.values() if node.parent is None), key=_order):
            self._grow(node, self.root, policies, before)
        for name in before.keys() - self.leaves.keys():
            for claim in list(before[name].line):
                self._leave(claim, before[name])
            self._dirty.pop(before[name], None)
        if self._kept is not None and self._kept[0] not in self.leaves:
            self._kept = None
        for room in self.root.rooms:
            room.kept = 0
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

    def branch(self, name: str) -> Branch | None:
        """The branch of a queue and all below it."""
        leaf = self.leaves.get(name)
        return leaf.parent if leaf is not None and leaf.is_implicit else leaf

    def all_branches(self) -> Iterator[Branch]:
        """Without the root."""
        yield from self.inner
        yield from self.leaves.values()

    # ---- what moves

    def charge(self, queue: str, cost: Cost, sign: int, *, leaving: bool = False) -> None:
        """Without a branch (the queue was deleted while its pods run) the pools still count what is held."""
        leaf = self.leaves.get(queue, self.root)
        if leaving:
            self._charge_leaving(leaf, cost, sign)
        else:
            kinds = self.kind_of.cost(cost)
            self._charge(leaf, cost, kinds, sign)
            if leaf is not self.root and kinds:
                self._want(leaf, *group_of(kinds), sign)
        self._dirty[leaf] = None

    def admit(self, key: str, spot: Spot) -> None:
        """A claim leaves its line for a spot: `leave` and `charge` in one, for every admission does it."""
        claim = self.claims[key]
        leaf, shape = self.leaves[claim.line], claim.shape
        same = spot.held == (shape.group, shape.amounts)
        self._leave(claim, leaf, wants=not same)
        self._charge(leaf, spot.cost, spot.kinds, 1)
        if not same and spot.kinds:
            self._want(leaf, *spot.held, 1)

    def _charge(self, leaf: Branch, cost: Cost, kinds: KindCost, sign: int) -> None:
        self.version += 1
        for branch in leaf.path:
            usage, rooms_of = branch.usage, branch.rooms_of
            for dim, amount in cost:
                change = sign * amount
                total = usage.get(dim, 0) + change
                if total:
                    usage[dim] = total
                else:
                    del usage[dim]
                for room in rooms_of.get(dim, ()):
                    room.left -= change
                    if change < 0:
                        self._risen[room] = None
                    elif room.left < 0:
                        self._overfull[room] = None
            held = branch.held
            for kind, amount in kinds:
                total = held.get(kind, 0) + sign * amount
                if total:
                    held[kind] = total
                else:
                    del held[kind]

    def _charge_leaving(self, leaf: Branch, cost: Cost, sign: int) -> None:
        self.version += 1
        for branch in leaf.path:
            for dim, amount in cost:
                total = branch.leaving.get(dim, 0) + sign * amount
                if total:
                    branch.leaving[dim] = total
                else:
                    del branch.leaving[dim]
                for room in branch.rooms_of.get(dim, ()):
                    self._remeasure(room)

    def _remeasure(self, room: Room) -> None:
        before, room.left = room.left, room.measure()
        if room.left > before:
            self._risen[room] = None
        elif room.left < 0:
            self._overfull[room] = None

    def keep_for(self, queue: str, cost: Cost) -> None:
        """Leave so much room to a claim of a queue whose turn it has been for long: others find that much less."""
        self.keep_nothing()
        self.version += 1
        self._kept = (queue, cost)
        for room, need in self.rooms_for(self.leaves[queue], cost):
            room.kept = need
            self._remeasure(room)

    def keep_nothing(self) -> None:
        if self._kept is not None:
            queue, cost = self._kept
            self._kept = None
            self.version += 1
            for room, _ in self.rooms_for(self.leaves[queue], cost):
                room.kept = 0
                self._remeasure(room)

    def _want(self, leaf: Branch, group: Group, amounts: tuple[int, ...], sign: int) -> None:
        wants = leaf.wants.get(group)
        if wants is None:
            wants = leaf.wants[group] = [0] * len(amounts)
        for at, amount in enumerate(amounts):
            wants[at] += sign * amount
        if sign < 0 and not any(wants):
            del leaf.wants[group]
        self.deserving.asks_anew(leaf)

    # ---- shapes and claims

    def shape(self, parts: tuple[Part, ...]) -> Shape:
        shape = self.shapes.get(parts)
        if shape is None:
            self._numbers += 1
            shape = self.shapes[parts] = Shape(parts, self._numbers)
            for selected in _selectors(shape):
                self._by_selector.setdefault(selected, {})[shape] = None
            self._place(shape)
        return shape

    def _place(self, shape: Shape) -> None:
        """Find where a shape may go: all its parts in one pool, if they may; otherwise each in one of its own."""
        for spot in shape.spots:
            stop_watching(spot)
        allowed = [self._pools_holding(part) for part in shape.parts]
        common = [pool for pool in allowed[0] if all(pool in pools for pools in allowed[1:])]
        shape.scattered = [] if common or not all(allowed) else allowed
        shape.spots = [self._spot(shape, (pool,) * len(shape.parts)) for pool in common]
        kinds = self._kinds_asked(shape)
        shape.group, shape.amounts = kinds if shape.placeable else (((), ()), ())
        self._awake[shape] = None

    def _spot(self, shape: Shape, pools: tuple[str, ...]) -> Spot:
        spot = Spot(shape, pools, self.kind_of)
        spot.needs = [(self._root_room(dim), amount) for dim, amount in spot.cost]
        return spot

    def _root_room(self, dim: Dim) -> Room:
        """What nobody has any of is a bound too: of nothing."""
        rooms = self.root.rooms_of.get(dim)
        if rooms is None:
            bound = Bound((dim,), self.capacity.get(dim, 0), f"pool {dim[1]}'s {dim[2]}")
            rooms = self.root.rooms_of[dim] = [Room(self.root, bound)]
            self.root.rooms.append(rooms[0])
        return rooms[0]

    def _pools_holding(self, part: Part) -> list[str]:
        """Nothing is decided about a cluster before it is live."""
        if not self._is_live(part.cluster):
            return []
        return self._places.pools_holding(part.cluster, part.node_selector, part.requests)

    def _kinds_asked(self, shape: Shape) -> tuple[Group, tuple[int, ...]]:
        """As part of its queues' demand: its amounts, and the supplies that it may use, the largest first."""
        sums: dict[str, int] = {}
        for part in shape.parts:
            for resource, amount in part.requests:
                if amount:
                    sums[resource] = sums.get(resource, 0) + amount * part.pods
        resources = tuple(sorted(sums))
        pools = {pool for spot in shape.spots for pool in spot.pools}
        pools.update(pool for each in shape.scattered for pool in each)
        supplies = {self._places.supplies.get(pool, "") for pool in pools}
        ordered = sorted(supplies, key=lambda s: (-sum(self.whole.get((s, r), 0) for r in resources), s))
        return (tuple(ordered), resources), tuple(sums[resource] for resource in resources)

    def join(self, claim: Claim) -> None:
        leaf = self.leaves[claim.line]
        shape = claim.shape
        self.version += 1
        self.claims[claim.key] = claim
        shape.lines[leaf] = shape.lines.get(leaf, 0) + 1
        leaf.line.join(claim)
        if shape.amounts:
            self._want(leaf, shape.group, shape.amounts, 1)
        self._press(shape, 1)
        self._dirty[leaf] = None

    def leave(self, key: str) -> None:
        claim = self.claims.get(key)
        if claim is not None:
            self._leave(claim, self.leaves[claim.line])

    def _leave(self, claim: Claim, leaf: Branch, *, wants: bool = True) -> None:
        shape = claim.shape
        self.version += 1
        del self.claims[claim.key]
        leaf.line.leave(claim)
        left = shape.lines[leaf] - 1
        if left:
            shape.lines[leaf] = left
        else:
            self._forget(leaf, shape)
        if wants and shape.amounts:
            self._want(leaf, shape.group, shape.amounts, -1)
        self._press(shape, -1)
        if not shape.lines:
            self._forget_shape(shape)
        self._dirty[leaf] = None

    def _press(self, shape: Shape, count: int) -> None:
        """Where there is no choice nobody needs to know how many wait."""
        choices = len(shape.spots)
        if len(self._places.pools) < 2:
            return
        pressure = self.pressure
        for spot in shape.spots:
            for dim, amount in spot.cost:
                pressure[dim] = pressure.get(dim, 0) + count * (amount // choices)

    def _forget(self, leaf: Branch, shape: Shape) -> None:
        """A leaf has no claims of a shape any more."""
        del shape.lines[leaf]
        shape.sleepers.pop(leaf, None)
        stuck = leaf.stuck.pop(shape, None)
        if stuck is not None:
            stop_watching(stuck)

    def _forget_shape(self, shape: Shape) -> None:
        for spot in shape.spots:
            stop_watching(spot)
        self._awake.pop(shape, None)
        del self.shapes[shape.parts]
        for selected in _selectors(shape):
            alike = self._by_selector[selected]
            del alike[shape]
            if not alike:
                del self._by_selector[selected]
                self._places.forget_selector(selected)

    # ---- what fits

    def open_spot(self, leaf: Branch, shape: Shape) -> Spot | None:
        """Where a claim of this shape is placed if it is served now; without any place the shape is parked."""
        if not shape.placeable or (leaf.line.parked and shape in leaf.line.parked):
            self._park(leaf, shape)
            return None
        if shape.scattered:
            found = self._scatter(leaf, shape)
        elif len(shape.spots) == 1:
            (spot,) = shape.spots
            found = spot if self._is_open(spot) and self._is_allowed(leaf, spot) else None
        else:
            spots = [spot for spot in shape.spots if self._is_open(spot) and self._is_allowed(leaf, spot)]
            found = self._roomiest(spots)
        if found is None:
            self._park(leaf, shape)
        return found

    def _is_open(self, spot: Spot) -> bool:
        if spot.asleep:
            return False
        for room, need in spot.needs:
            if need > room.left:
                spot.asleep = True
                room.watch(spot, need)
                if all(each.asleep for each in spot.shape.spots):
                    self._awake.pop(spot.shape, None)
                return False
        return True

    def _is_allowed(self, leaf: Branch, spot: Spot) -> bool:
        """Whether no limit on the way up is in the way."""
        return not leaf.bounded or self._first_limit(leaf, spot.cost) is None

    def _first_limit(self, leaf: Branch, cost: Cost) -> tuple[Room, int] | None:
        for branch in leaf.bounded:
            for dim, amount in cost:
                for room in branch.rooms_of.get(dim, ()):
                    need = amount if len(room.bound.dims) == 1 else room.bound.part(cost)
                    if need > room.left:
                        return room, need
        return None

    def _roomiest(self, spots: list[Spot]) -> Spot | None:
        """Where most is left beside what must go there; of equals the first by name."""
        return max(spots, key=self._ease, default=None)

    def _ease(self, spot: Spot) -> int:
        return min(
            (
                (room.left - need - self._pressed(spot, room, need)) * 1_000_000 // max(1, room.bound.amount)
                for room, need in spot.needs
            ),
            default=0,
        )

    def _pressed(self, spot: Spot, room: Room, need: int) -> int:
        return max(0, self.pressure.get(room.bound.dims[0], 0) - need // len(spot.shape.spots))

    def _scatter(self, leaf: Branch, shape: Shape) -> Spot | None:
        """Try to give each part a pool of its own."""
        for pools in shape.spreads():
            spot = self._spot(shape, pools)
            if all(need <= room.left for room, need in spot.needs) and self._is_allowed(leaf, spot):
                return spot
        return None

    def _park(self, leaf: Branch, shape: Shape) -> None:
        """Do not try a shape again for a leaf before a room has grown that was too small."""
        leaf.line.park(shape)
        shape.sleepers[leaf] = None
        if not shape.placeable:
            return
        if shape.scattered:  # rare: whatever grows may be what it needs
            dim = self._smallest_scattered(shape)
            room = self._root_room(dim)
            self._stick(leaf, shape, room, room.left + 1)
            return
        for spot in shape.spots:
            if not spot.asleep:
                limit = self._first_limit(leaf, spot.cost)
                if limit is not None:
                    self._stick(leaf, shape, *limit)
                    return

    def any_spot(self, shape: Shape) -> Spot | None:
        """A place where it could be put if there were room, for what people are told."""
        if shape.scattered:
            return self._spot(shape, next(iter(shape.spreads())))
        return shape.spots[0] if shape.spots else None

    def _smallest_scattered(self, shape: Shape) -> Dim:
        dims = [
            (self._root_room(dim).left, dim)
            for part, pools in zip(shape.parts, shape.scattered, strict=True)
            for pool in pools
            for dim, _ in cost_of(part.cluster, pool, part.requests)
        ]
        return min(dims)[1]

    def _stick(self, leaf: Branch, shape: Shape, room: Room, need: int) -> None:
        stuck = leaf.stuck.get(shape)
        if stuck is None:
            stuck = leaf.stuck[shape] = Stuck(leaf, shape)
        room.watch(stuck, need)

    def _wake(self, watcher: Watcher) -> None:
        if isinstance(watcher, Spot):
            watcher.asleep = False
            shape = watcher.shape
            self._awake[shape] = None
            for leaf in shape.sleepers:
                leaf.line.unpark(shape)
                self._dirty[leaf] = None
            shape.sleepers = {}
        elif isinstance(watcher, Stuck):
            watcher.shape.sleepers.pop(watcher.leaf, None)
            watcher.leaf.line.unpark(watcher.shape)
            self._dirty[watcher.leaf] = None

    def short_of(self, leaf: Branch, cost: Cost) -> Bound | None:
        """The first bound from the queue up that something does not fit under."""
        limit = self._first_limit(leaf, cost)
        if limit is not None:
            return limit[0].bound
        for dim, amount in cost:
            room = self._root_room(dim)
            if amount > room.left:
                return room.bound
        return None

    def rooms_for(self, leaf: Branch, cost: Cost) -> list[tuple[Room, int]]:
        """All rooms that something goes into, those nearest to the queue first, and how much of each."""
        found: dict[Room, int] = {}
        for branch in leaf.bounded:
            for dim, _ in cost:
                for room in branch.rooms_of.get(dim, ()):
                    found[room] = room.bound.part(cost)
        for dim, amount in cost:
            found[self._root_room(dim)] = amount
        return list(found.items())

    def overfull(self) -> list[Room]:
        """Rooms that hold more than their bound, the lowest first."""
        self._overfull = {room: None for room in self._overfull if room.left < 0}
        over = [room for room in self._overfull if room.is_over]
        return sorted(over, key=lambda room: (-len(room.branch.path), room.branch.order, room.bound))

    # ---- whose turn it is

    def class_of(self, leaf: Branch, kinds: KindCost, cost: Cost) -> int:
        """In which class something is served that a queue asks for."""
        at = self._class_in(leaf, kinds, cost)
        for branch in leaf.path[1:-1]:
            at = self._class_above(branch, at, kinds, cost)
        return at

    def _class_in(self, branch: Branch, kinds: KindCost, cost: Cost) -> int:
        if branch.guarantees and branch.is_covered(cost):
            return COVERED
        return DESERVED if branch.deserves(kinds, self.whole) else BEYOND

    def _class_above(self, branch: Branch, below: int, kinds: KindCost, cost: Cost) -> int:
        if below == COVERED or (branch.guarantees and branch.is_covered(cost)):
            return COVERED
        return DESERVED if below == DESERVED and branch.deserves(kinds, self.whole) else BEYOND

    def next(self) -> tuple[Branch, Claim, Spot] | None:
        """The leaf, claim and spot to be served next."""
        self.settle()
        while self._awake:
            branch: Branch | None = self.root.first()
            while branch is not None and not branch.is_leaf:
                branch = branch.first()
            if branch is None:
                return None
            head = branch.head
            assert head is not None, branch.name
            spot = self.open_spot(branch, head.shape)
            if spot is not None:
                return branch, head, spot
            self._take_turn(branch)
            self._lift({branch.parent: None} if branch.parent is not None else {})
        return None

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
        """Let a leaf stand where the claim puts it that is tried next."""
        leaf.head = leaf.line.head()
        leaf.take_turn(self._class_of_head(leaf) if leaf.head is not None else BEYOND)

    def _class_of_head(self, leaf: Branch) -> int:
        assert leaf.head is not None
        spots = leaf.head.shape.spots
        if not spots:
            return BEYOND
        return self._class_in(leaf, spots[0].kinds, spots[0].cost)

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
                if best is not None and best.turn is not None and best.head is not None:
                    at = best.turn[0]
                    if best.head.shape.spots:
                        spot = best.head.shape.spots[0]
                        at = self._class_above(branch, at, spot.kinds, spot.cost)
                branch.take_turn(at)
                if branch.parent is not None:
                    levels.setdefault(depth - 1, {})[branch.parent] = None

    def touch(self, branch: Branch) -> None:
        """What a policy ranks a branch by has changed."""
        if branch.is_leaf:
            self._dirty[branch] = None
        elif branch.parent is not None:
            self._lift({branch: None})

    # ---- what is deserved

    def update_deserved(self) -> dict[Branch, dict[Kind, int]]:
        """Work out anew what every branch deserves; the branches of which that has changed."""
        self.settle()
        orphaned = {
            kind: amount - sum(child.held.get(kind, 0) for child in self.root.children)
            for kind, amount in self.root.held.items()
        }
        return self.deserving.update(orphaned)

    def set_deserved(self, deserved: Mapping[Branch, dict[Kind, int]]) -> None:
        self.version += 1
        for branch, amounts in deserved.items():
            branch.deserved = amounts
        for branch in deserved:
            if branch.is_leaf:
                self._dirty[branch] = None
        self._lift({branch: None for branch in deserved if not branch.is_leaf})

    # ---- capacity

    def capacity_changed(self) -> None:
        self._stale = True

    def pools_changed(self, places: Places) -> None:
        """Nodes belong to other pools now; each pool is still of the supply that it was."""
        self._places = places
        self.kind_of.set_supplies(places.supplies)
        self._refresh_all()
        for shape in list(self.shapes.values()):
            self._place_anew(shape)

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
            for dim in held:
                if dim[1] in self._places.node_count:  # a pool that has lost its last node
                    capacity.setdefault(dim, 0)
        if capacity != self.capacity or reshaped:
            self._resize(capacity)
        for selected in self._places.take_changed():
            for shape in list(self._by_selector.get(selected, ())):
                self._place_anew(shape)

    def _resize(self, capacity: dict[Dim, int]) -> None:
        new_dims = capacity.keys() != self.capacity.keys()
        self.capacity = capacity
        self.whole = {}
        for dim, amount in capacity.items():
            kind = self.kind_of(dim)
            self.whole[kind] = self.whole.get(kind, 0) + amount
        for dim in capacity:
            self._root_room(dim)
        for room in self.root.rooms:
            (dim,) = room.bound.dims
            room.bound = room.bound._replace(amount=capacity.get(dim, 0))
            self._remeasure(room)
        dims_of: dict[Kind, set[Dim]] = {}
        for dim in capacity:
            dims_of.setdefault(self.kind_of(dim), set()).add(dim)
        own = (leaf for leaf in self.leaves.values() if not leaf.is_implicit)
        for branch in (*own, *reversed(self.inner)):  # children before those that pass their guarantees on
            self._set_bounds(branch, dims_of)
        for leaf in self.leaves.values():
            leaf.bounded = [branch for branch in leaf.path[:-1] if branch.rooms]
            for stuck in list(leaf.stuck.values()):
                stop_watching(stuck)
                self._wake(stuck)
            leaf.stuck = {}
            leaf.turn = None
            self._dirty[leaf] = None
        if self._kept is not None:
            self.keep_for(*self._kept)
        if new_dims:
            for shape in list(self.shapes.values()):
                self._place_anew(shape)
        self.deserving = Deserving(self.root, self.whole)

    def _set_bounds(self, branch: Branch, dims_of: Mapping[Kind, set[Dim]]) -> None:
        assert branch.queue is not None
        facts = branch.queue.facts
        branch.guarantees = guarantees_of(branch.name, facts, self.capacity)
        below = [bound for child in branch.children for bound in child.guarantees]
        branch.guarantees += passed_on(branch.name, facts, below)
        branch.floor = summed(branch.guarantees, self.kind_of)
        limits = limits_of(branch.name, facts, self.capacity, branch.guarantees)
        branch.limit = tightest(limits, dims_of, self.kind_of)
        branch.rooms = [Room(branch, bound) for bound in limits]
        branch.rooms_of = {}
        for room in branch.rooms:
            for dim in room.bound.dims:
                branch.rooms_of.setdefault(dim, []).append(room)
            self._remeasure(room)
            if room.left < 0:
                self._overfull[room] = None

    def _place_anew(self, shape: Shape) -> None:
        """Its nodes have changed: where it may go, and so what it asks for as part of its queues' demand."""
        self._ask(shape, -1)
        self._place(shape)
        self._ask(shape, 1)
        for leaf in shape.lines:
            leaf.line.unpark(shape)
            self._dirty[leaf] = None
        shape.sleepers = {}

    def _ask(self, shape: Shape, sign: int) -> None:
        """Count all claims of a shape among what is waited for."""
        for leaf, count in shape.lines.items():
            if shape.amounts:
                self._want(leaf, shape.group, tuple(amount * count for amount in shape.amounts), sign)
        self._press(shape, sign * sum(shape.lines.values()))


def _selectors(shape: Shape) -> list[Selected]:
    return list(dict.fromkeys((part.cluster, part.node_selector) for part in shape.parts))


def _order(node: QueueNode) -> tuple[int, str]:
    return (node.facts.created_ms, node.name)
