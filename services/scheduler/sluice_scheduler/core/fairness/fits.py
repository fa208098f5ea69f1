"""What fits: where a claim is placed if it is served now, and who is to be woken when that changes."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from operator import attrgetter

from sluice_scheduler.core.fairness.branch import Branch, HeldBack
from sluice_scheduler.core.fairness.claims import Claim, Demand, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Room, Watcher, least_needs
from sluice_scheduler.core.fairness.shapes import Shapes
from sluice_scheduler.core.fairness.spreads import Spread


class Fits(Shapes):
    """Shapes that do not fit are parked in their lines, and sleep where they fit nowhere."""

    def open_spot(self, leaf: Branch, shape: Shape) -> Spot | None:
        """Where a claim of this shape is placed if it is served now; without any place the shape is parked."""
        if leaf.line.parked and shape in leaf.line.parked:
            return None
        if shape.scattered:
            return self._scatter(leaf, shape)
        if len(shape.spots) == 1:
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

    def _doze(self) -> None:
        """Let shapes fall asleep that nobody can be served with, until one is found with which somebody may."""
        while self._awake:
            shape, _ = self._awake.popitem()
            if self._may_fit(shape):
                self._awake[shape] = None
                return

    def _may_fit(self, shape: Shape) -> bool:
        """Whether there is room for a shape, and a leaf that would try it."""
        if not shape.placeable or len(shape.sleepers) == len(shape.lines):
            return False
        return bool(shape.scattered) or any(self._is_open(spot) for spot in shape.spots)

    def _is_allowed(self, leaf: Branch, spot: Spot) -> bool:
        """Whether no limit on the way up is in the way."""
        return not leaf.bounded or self._first_limit(leaf, spot.cost) is None

    def _roomiest(self, spots: list[Spot]) -> Spot | None:
        """The spot whose pools have most left beside what must go there; the first by name if several are equal."""
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
        spread = Spread(shape, partial(self._needs_in, leaf))
        pools = spread.find()
        if pools is not None:
            return self.spot(shape, pools)
        self._hold_back(leaf, shape, spread.short)
        return None

    def firsts(
        self, leaf: Branch, asks: Callable[[Demand], bool] = lambda _: True
    ) -> Generator[Claim, None, None]:
        """The first claims of a line, by place: one of each shape that asks for this or that and could fit if nobody
        held anything. In a strict line it is the first of all, whatever it is."""
        if not leaf.line.strict:
            yield from leaf.line.hopeful(asks, partial(self._lacks, leaf))
        elif (first := leaf.line.first()) is not None:
            yield first

    def _lacks(self, leaf: Branch, shape: Shape) -> Mapping[Room, int] | None:
        """Rooms of which one would have to be so large before a shape could ever fit; None if it could."""
        if shape.scattered:
            spread = Spread(shape, partial(self._needs_in, leaf), left_in=attrgetter("bound.amount"))
            return spread.short if spread.find() is None else None
        short: list[tuple[Room, int]] = []
        for spot in shape.spots:
            needs = self.rooms_for(leaf, spot.cost)
            lack = next(((room, need) for room, need in needs if need > room.bound.amount), None)
            if lack is None:
                return None
            short.append(lack)
        return least_needs(short)

    def place_within(self, leaf: Branch, shape: Shape, left_in: Callable[[Room], int]) -> Spot | None:
        """The first place where a shape fits, if so much counts as left in each room."""
        if shape.scattered:
            pools = Spread(shape, partial(self._needs_in, leaf), left_in=left_in).find()
            return None if pools is None else self.spot(shape, pools)
        return next((spot for spot in shape.spots if self.has_room(leaf, spot.cost, left_in)), None)

    def _park(self, leaf: Branch, shape: Shape) -> None:
        """For each spot that only a limit closes, watch one room: each of them may be the first to grow."""
        awake = [spot for spot in shape.spots if not spot.asleep]
        limits = [limit for spot in awake if (limit := self._first_limit(leaf, spot.cost)) is not None]
        self._hold_back(leaf, shape, least_needs(limits))

    def _hold_back(self, leaf: Branch, shape: Shape, short: Mapping[Room, int]) -> None:
        """Do not try a shape again for a leaf before one of these rooms has grown, or one that a spot watches."""
        leaf.line.park(shape)
        shape.sleepers[leaf] = None
        if short:
            known = leaf.held_back.setdefault(shape, [])
            known += [HeldBack(leaf, shape) for _ in range(len(known), len(short))]
            for watcher, (room, need) in zip(known, short.items(), strict=False):
                room.watch(watcher, need)

    def _wake(self, watcher: Watcher) -> None:
        if isinstance(watcher, Spot):
            watcher.asleep = False
            shape = watcher.shape
            self._awake[shape] = None
            for leaf in shape.sleepers:
                leaf.line.unpark(shape)
                self._dirty[leaf] = None
            shape.sleepers = {}
        elif isinstance(watcher, HeldBack):
            self._awake[watcher.shape] = None
            watcher.shape.sleepers.pop(watcher.leaf, None)
            watcher.leaf.line.unpark(watcher.shape)
            self._dirty[watcher.leaf] = None
