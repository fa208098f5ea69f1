"""The shapes of what waits: where claims may be placed, and who waits with them."""

from __future__ import annotations

from functools import partial
from itertools import islice, product
from operator import attrgetter
from typing import Final

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Group, Part, Shape, Spot, Wants, cost_of
from sluice_scheduler.core.fairness.ground import Ground
from sluice_scheduler.core.fairness.reaches import Selected
from sluice_scheduler.core.fairness.rooms import stop_watching
from sluice_scheduler.core.fairness.spreads import Needs, Spread

#: So many ways to spread a gang are tried where room has to be made for it.
_SPREADS_MAX: Final = 64


class Shapes(Ground):
    """Claims join and leave their lines; what they ask for is counted as demand."""

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
        common, shape.scattered = self._pools_for(shape)
        shape.spots = [self.spot(shape, (pool,) * len(shape.parts)) for pool in common]
        shape.spreads = None
        shape.asks(self._wants_of(shape))
        self._awake[shape] = None

    def _pools_for(self, shape: Shape) -> tuple[list[str], list[list[str]]]:
        """The pools that are open to all of its parts; if there are none, those of each part."""
        allowed = [self._pools_holding(part) for part in shape.parts]
        common = [pool for pool in allowed[0] if all(pool in pools for pools in allowed[1:])]
        return common, [] if common or not all(allowed) else allowed

    def _goes_elsewhere(self, shape: Shape) -> bool:
        return self._pools_for(shape) != ([spot.pools[0] for spot in shape.spots], shape.scattered)

    def spot(self, shape: Shape, pools: tuple[str, ...]) -> Spot:
        spot = Spot(shape, pools, self.kind_of)
        spot.needs = [(self._root_room(dim), amount) for dim, amount in spot.cost]
        return spot

    def _pools_holding(self, part: Part) -> list[str]:
        """Nothing is decided about a cluster before it is live."""
        if not self._is_live(part.cluster):
            return []
        return self._places.pools_holding(part.cluster, part.node_selector, part.requests)

    def _wants_of(self, shape: Shape) -> Wants:
        """The demand that a claim of this shape counts as: all its parts together, or each where it may go. A gang
        that would not fit if everybody left is no demand: nobody is to deserve less for what can't be."""
        if shape.pods > 1 and not self._could_fit(shape):
            return ()
        if shape.spots:
            return self._demand_of(shape.parts, [spot.pools[0] for spot in shape.spots])
        sums: dict[Group, list[int]] = {}
        for part, pools in zip(shape.parts, shape.scattered, strict=False):
            for group, amounts in self._demand_of((part,), pools):
                known = sums.setdefault(group, [0] * len(amounts))
                sums[group] = [sum(both) for both in zip(known, amounts, strict=True)]
        return tuple([(group, tuple(amounts)) for group, amounts in sums.items()])

    def _could_fit(self, shape: Shape) -> bool:
        """Whether the pools have so much in all."""
        if not shape.scattered:
            return any(all(need <= room.bound.amount for room, need in spot.needs) for spot in shape.spots)
        needs_in = partial(self._needs_in, self.root)
        return Spread(shape, needs_in, left_in=attrgetter("bound.amount")).find() is not None

    def _needs_in(self, branch: Branch, part: Part, pool: str) -> Needs:
        return self.rooms_for(branch, cost_of(part.cluster, pool, part.requests, part.pods))

    def _demand_of(self, parts: tuple[Part, ...], names: list[str]) -> Wants:
        """Where these may go, to the largest supply first; amounts. What asks for nothing is no demand."""
        sums: dict[str, int] = {}
        for part in parts:
            add(sums, ((resource, amount * part.pods) for resource, amount in part.requests if amount))
        if not sums:
            return ()
        resources = tuple(sorted(sums))
        open_in = self.kind_of.by_supply({(part.cluster, name) for name in names for part in parts})
        ordered = sorted(open_in, key=lambda s: (-sum(self.whole.get((s, r), 0) for r in resources), s))
        ways = tuple([(supply, open_in[supply]) for supply in ordered])
        return (((ways, resources), tuple([sums[resource] for resource in resources])),)

    def join(self, claim: Claim) -> None:
        leaf = self.leaves[claim.line]
        shape = claim.shape
        self.version += 1
        self.claims[claim.key] = claim
        if leaf not in shape.lines:
            self._look_for_limits(leaf, shape)
        shape.lines[leaf] = shape.lines.get(leaf, 0) + 1
        leaf.line.join(claim)
        if shape.scattered or not all(spot.asleep for spot in shape.spots):
            self._awake[shape] = None
        for group, amounts in self._wants_in(leaf, shape):
            self._want(leaf, group, amounts, 1)
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
        for group, amounts in self._wants_in(leaf, shape) if wants else ():
            self._want(leaf, group, amounts, -1)
        left = shape.lines[leaf] - 1
        if left:
            shape.lines[leaf] = left
        else:
            self._forget(leaf, shape)
        self._press(shape, -1)
        if not shape.lines:
            self._forget_shape(shape)
        self._dirty[leaf] = None

    def _press(self, shape: Shape, count: int) -> None:
        """Count a claim at each place that it may go to. With one pool there is no choice, and so nothing to count."""
        if len(self._places.pools) < 2 or not shape.wants:
            return
        choices = len(shape.spots)
        pressure = self.pressure
        for spot in shape.spots:
            for dim, amount in spot.cost:
                pressure[dim] = pressure.get(dim, 0) + count * (amount // choices)

    def _forget(self, leaf: Branch, shape: Shape) -> None:
        """A leaf has no claims of a shape any more."""
        del shape.lines[leaf]
        leaf.out_of_reach.pop(shape, None)
        shape.sleepers.pop(leaf, None)
        for watcher in leaf.held_back.pop(shape, ()):
            stop_watching(watcher)

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
                self._forget_selector(selected)

    def _wants_in(self, leaf: Branch, shape: Shape) -> Wants:
        return () if shape in leaf.out_of_reach else shape.wants

    def _look_for_limits(self, leaf: Branch, shape: Shape) -> None:
        """Note whether the limits of its queues would ever let a claim in. What they never do is no demand."""
        leaf.out_of_reach.pop(shape, None)
        if leaf.bounded and shape.spots and not any(self._limits_let_in(leaf, spot) for spot in shape.spots):
            leaf.out_of_reach[shape] = None

    def _limits_let_in(self, leaf: Branch, spot: Spot) -> bool:
        rooms = self.rooms_for(leaf, spot.cost)
        return all(need <= room.bound.amount for room, need in rooms if room.branch is not self.root)

    def _look_for_limits_anew(self, leaf: Branch) -> None:
        """They may be others now."""
        for shape in leaf.line.shapes:
            was = shape in leaf.out_of_reach
            self._look_for_limits(leaf, shape)
            if (is_now := shape in leaf.out_of_reach) != was:
                self._ask_in(leaf, shape, -1 if is_now else 1)

    def _place_anew(self, shape: Shape) -> None:
        """Nodes have changed, so this shape may go elsewhere, and counts as other demand."""
        self._ask(shape, -1)
        self._place(shape)
        for leaf in shape.lines:
            self._look_for_limits(leaf, shape)
        self._ask(shape, 1)
        for leaf in shape.lines:
            leaf.line.unpark(shape)
            leaf.line.hope((shape,))
            self._dirty[leaf] = None
        shape.sleepers = {}

    def _ask_anew(self) -> None:
        """Pools have more or less. So another supply may be the largest now, which shapes ask for first; and gangs that
        could not fit may, or others may not."""
        one_supply = len(set(self._places.supplies.values())) < 2
        for shape in self.shapes.values():
            if one_supply and shape.pods == 1:
                continue
            if (wants := self._wants_of(shape)) != shape.wants:
                self._ask(shape, -1)
                shape.asks(wants)
                self._ask(shape, 1)
                for leaf in shape.lines:
                    leaf.line.hope((shape,))

    def _ask(self, shape: Shape, sign: int) -> None:
        """Count all claims of a shape among what is waited for."""
        for leaf in shape.lines:
            if shape not in leaf.out_of_reach:
                self._ask_in(leaf, shape, sign)
        self._press(shape, sign * sum(shape.lines.values()))

    def _ask_in(self, leaf: Branch, shape: Shape, sign: int) -> None:
        count = shape.lines[leaf]
        for group, amounts in shape.wants:
            self._want(leaf, group, tuple(amount * count for amount in amounts), sign)

    def spots_of(self, shape: Shape) -> list[Spot]:
        """Where it could be put if there were room; of many ways to spread it the first."""
        if not shape.scattered:
            return shape.spots
        if shape.spreads is None:
            spreads = islice(product(*shape.scattered), _SPREADS_MAX)
            shape.spreads = [self.spot(shape, pools) for pools in spreads]
        return shape.spreads

    def any_spot(self, shape: Shape) -> Spot | None:
        """The first of these."""
        return next(iter(self.spots_of(shape)), None)


def _selectors(shape: Shape) -> list[Selected]:
    return list(dict.fromkeys((part.cluster, part.node_selector) for part in shape.parts))
