"""How much all branches hold, under which bounds, and how much is left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from sluice_scheduler.core.fairness.bounds import guarantees_of, limits_of, passed_on, summed, tightest
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import (
    Claim,
    Cost,
    Dim,
    Group,
    Kind,
    KindCost,
    KindOf,
    Part,
    PoolKey,
    Shape,
    group_of,
)
from sluice_scheduler.core.fairness.deserved import Deserving
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.reaches import Selected
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.standing import Alike, Standing, alike_in


class Ground:
    """Sums and rooms; nothing of whose turn it is."""

    def __init__(
        self,
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
        #: By dim, how much waiting claims ask for. A claim that could go to n places counts 1/n at each.
        self.pressure: dict[Dim, int] = {}
        self._kept: dict[str, tuple[str, Cost, bool]] = {}  # by claim
        #: Rises with each change that may let a search for victims end otherwise than the last one.
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
        self.deserving = Deserving(self.root, self.capacity, self.kind_of)
        self._standing = Standing(self._forget_selector)

    def branch(self, name: str) -> Branch | None:
        """The branch of a queue and all below it."""
        leaf = self.leaves.get(name)
        return leaf.parent if leaf is not None and leaf.is_implicit else leaf

    def all_branches(self) -> Iterator[Branch]:
        """Without the root."""
        yield from self.inner
        yield from self.leaves.values()

    def charge(
        self,
        queue: str,
        cost: Cost,
        sign: int,
        *,
        leaving: bool = False,
        part: Part | None = None,
        pods: int = 1,
    ) -> None:
        """Without a branch (the queue was deleted while its pods run) the pools still count what is held. `part`: what
        each of so many pods asks for; without it what is held counts as bound to where it stands."""
        leaf = self.leaves.get(queue, self.root)
        if leaving:
            self._charge_leaving(leaf, cost, sign)
        else:
            kinds = self.kind_of.cost(cost)
            self._charge(leaf, cost, kinds, sign)
            if leaf is not self.root and kinds:
                if part is None:
                    self._want(leaf, *group_of(cost, self.kind_of), sign)
                else:
                    alike = self._alike(part, cost[0][0][:2])
                    self._standing.count(alike, leaf, sign * pods)
                    self._want(leaf, alike.group, alike.amounts, sign * pods)
        self._dirty[leaf] = None

    def _alike(self, part: Part, pool: PoolKey) -> Alike:
        return self._standing.find(part, pool, places=self._places, kind_of=self.kind_of)

    def _forget_selector(self, selected: Selected) -> None:
        """Where nobody waits by it any more, and nobody stands."""
        if selected not in self._by_selector and not self._standing.asks_by(selected):
            self._places.forget_selector(selected)

    def group_held(self, part: Part, pool: PoolKey) -> Group:
        """The demand that pods count as which ask for this and stand in a pool."""
        known = self._standing.known(part, pool)
        return (known or alike_in(part, pool, places=self._places, kind_of=self.kind_of)).group

    def _regroup(self, selectors: Iterable[Selected] | None) -> None:
        """Nodes have changed, or (None) pools: what is held may count as other demand."""
        for alike, before in self._standing.regroup(selectors, places=self._places, kind_of=self.kind_of):
            for leaf, pods in alike.pods.items():
                self._want(leaf, before, alike.amounts, -pods)
                self._want(leaf, alike.group, alike.amounts, pods)

    def _orphaned(self) -> dict[Dim, int]:
        """What nobody's queue holds."""
        children = self.root.children
        kinds = {
            kind
            for kind, amount in self.root.held.items()
            if amount != sum(child.held.get(kind, 0) for child in children)
        }
        return {
            dim: amount - sum(child.usage.get(dim, 0) for child in children)
            for dim, amount in self.root.usage.items()
            if self.kind_of(dim) in kinds
        }

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
        self._heed_capacity(cost)

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
        self._heed_capacity(cost)

    def _heed_capacity(self, cost: Cost) -> None:
        """Of what no node offers there is a capacity of zero while somebody holds it, and none before and after."""
        for dim, _ in cost:
            if not self.capacity.get(dim):
                self._stale = True

    def _remeasure(self, room: Room) -> None:
        before, room.left = room.left, room.measure()
        if room.left > before:
            self._risen[room] = None
        if room.left < 0:
            self._overfull[room] = None

    def keep_for(self, claim: str, queue: str, cost: Cost, within: bool) -> None:
        """Leave so much room to a claim of a queue whose turn it has been for long: others find that much less. Pools
        stand empty for nobody whom limits hold back (`within`: they do not). Who comes first is told of first."""
        self.version += 1
        self._kept[claim] = (queue, cost, within)
        for room, need in self.rooms_for(self.leaves[queue], cost):
            if within or room.branch is not self.root:
                room.keep(claim, need)
                self._remeasure(room)

    def keep_nothing(self) -> None:
        kept, self._kept = self._kept, {}
        for queue, cost, _ in kept.values():
            self.version += 1
            for room, _ in self.rooms_for(self.leaves[queue], cost):
                room.keep_nothing()
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

    def _root_room(self, dim: Dim) -> Room:
        """The root's room for a dim. Where there is no capacity, the bound is zero."""
        rooms = self.root.rooms_of.get(dim)
        if rooms is None:
            bound = Bound((dim,), self.capacity.get(dim, 0), f"pool {dim[1]}'s {dim[2]}")
            rooms = self.root.rooms_of[dim] = [Room(self.root, bound)]
            self.root.rooms.append(rooms[0])
        return rooms[0]

    def _first_limit(self, leaf: Branch, cost: Cost) -> tuple[Room, int] | None:
        for branch in leaf.bounded:
            for dim, amount in cost:
                for room in branch.rooms_of.get(dim, ()):
                    need = amount if len(room.bound.dims) == 1 else room.bound.part(cost)
                    if need > room.left:
                        return room, need
        return None

    def rooms_for(self, leaf: Branch, cost: Cost) -> list[tuple[Room, int]]:
        """All rooms that something goes into, those nearest to the queue first, and how much of each."""
        if not leaf.bounded:
            return [(self._root_room(dim), amount) for dim, amount in cost]
        found: dict[Room, int] = {}
        for branch in leaf.bounded:
            for dim, _ in cost:
                for room in branch.rooms_of.get(dim, ()):
                    found[room] = room.bound.part(cost)
        for dim, amount in cost:
            found[self._root_room(dim)] = amount
        return list(found.items())

    def has_room(self, leaf: Branch, cost: Cost, left_in: Callable[[Room], int]) -> bool:
        """Whether something fits, if so much counts as left in each room."""
        return all(need <= left_in(room) for room, need in self.rooms_for(leaf, cost))

    def short_of(self, leaf: Branch, cost: Cost) -> Bound | None:
        """The first bound from the queue up that something does not fit under."""
        limit = self._first_limit(leaf, cost) if leaf.bounded else None
        if limit is not None:
            return limit[0].bound
        rooms_of = self.root.rooms_of
        for dim, amount in cost:
            (room,) = rooms_of.get(dim) or (self._root_room(dim),)
            if amount > room.left:
                return room.bound
        return None

    def overfull(self) -> list[Room]:
        """Rooms that hold more than their bound, the lowest first."""
        self._overfull = {room: None for room in self._overfull if room.left < 0}
        over = [room for room in self._overfull if room.is_over]
        return sorted(over, key=lambda room: (-len(room.branch.path), room.branch.order, room.bound))

    def _set_bounds(self, branch: Branch, dims_of: Mapping[Kind, set[Dim]]) -> bool:
        """Whether its rooms are others now. Those of which only the amount may have changed stay, with who watches."""
        assert branch.queue is not None
        facts = branch.queue.facts
        branch.guarantees = guarantees_of(branch.name, facts, self.capacity)
        below = [bound for child in branch.children for bound in child.guarantees]
        branch.guarantees += passed_on(branch.name, facts, below)
        branch.floor = summed(branch.guarantees, self.kind_of)
        limits = limits_of(branch.name, facts, self.capacity, branch.guarantees)
        branch.limit = tightest(limits, dims_of, self.kind_of)
        others = [room.bound.dims for room in branch.rooms] != [bound.dims for bound in limits]
        if others:
            branch.rooms, branch.rooms_of = [Room(branch, bound) for bound in limits], {}
            for room in branch.rooms:
                for dim in room.bound.dims:
                    branch.rooms_of.setdefault(dim, []).append(room)
        for room, bound in zip(branch.rooms, limits, strict=True):
            room.bound = bound
            self._remeasure(room)
        return others
