"""What each branch deserves: hierarchical progressive filling over what all ask for, as if pods could be divided.

Simple semantics, for the siblings under one branch and what that branch was given: all start at what is
guaranteed to them. Then their weighted dominant shares rise together, who has least first, each along what it
asks for, until it has all of that. When a resource is used up, only what needs it stops. The root was given
the capacity; every inner branch divides what it was given in the same way.

What is done instead: siblings do not rise in small steps. Each sibling's way is a few straight *stretches*
between levels, and a sweep over the levels adds their speeds up. A level of the tree is filled anew only if
what it was given or what a child asks for has changed (ADR 0011). The figures are floating point numbers: the
same operations in the same order give the same bits on every machine.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Group, Kind
from sluice_scheduler.core.fairness.shares import FRACTION_BITS

Amounts: TypeAlias = dict[Kind, float]
_NOTHING: Final = 1e-9
#: Fractions as large as this are whole.
_WHOLE: Final = 1 - 1e-12


class Flow:
    """What a sibling asks for that stops together: `done` of `total` is given, along one of its supplies."""

    __slots__ = ("done", "speed", "supplies", "total")

    def __init__(self, supplies: list[Amounts], speed: float, done: float) -> None:
        self.supplies = supplies  # the same in each supply that it may use, the preferred one last
        self.total = supplies.pop()
        self.speed = speed  # of `total`, beside the sibling's other flows
        self.done = done


class Stretch(NamedTuple):
    """From one level to another (or at one level) a sibling's flows move on by `length` at these speeds."""

    start: float
    end: float
    length: float
    amounts: Amounts  # taken on the whole stretch


class Sibling:
    """One child of a branch while that is filled."""

    __slots__ = ("at", "flows", "generation", "stretches", "use", "weight")

    def __init__(self, weight: int, flows: list[Flow]) -> None:
        self.weight = weight
        self.flows = flows
        self.use: Amounts = {}
        for flow in flows:
            _add(self.use, flow.total, flow.done)
        self.stretches: list[Stretch] = []
        self.at = 0  # the stretch that comes next
        self.generation = 0

    def look_ahead(self, capacity: Mapping[Kind, int], gone: set[Kind]) -> None:
        """Work out the stretches from here on; flows that need what is gone stop, or try another supply."""
        self.generation += 1
        self.stretches, self.at = [], 0
        active = [flow for flow in self.flows if flow.done < _WHOLE and self._goes_on(flow, gone)]
        use, done = dict(self.use), {id(flow): flow.done for flow in active}
        while active:
            speeds: Amounts = {}
            for flow in active:
                _add(speeds, flow.total, flow.speed)
            length = min((1 - done[id(flow)]) / flow.speed for flow in active)
            self._stretch(use, speeds, length, capacity, gone)
            for flow in active:
                done[id(flow)] += flow.speed * length
            active = [flow for flow in active if done[id(flow)] < _WHOLE]
            _add(use, speeds, length)

    def _goes_on(self, flow: Flow, gone: set[Kind]) -> bool:
        while not gone.isdisjoint(flow.total):
            if not flow.supplies:
                return False
            rest = 1 - flow.done
            flow.total = {kind: amount * rest for kind, amount in flow.supplies.pop().items()}
            flow.speed, flow.done = flow.speed / rest, 0.0
        return True

    def _stretch(
        self, use: Amounts, speeds: Amounts, length: float, capacity: Mapping[Kind, int], gone: set[Kind]
    ) -> None:
        """The level rises with the dominant share, which may be another kind's on the way."""
        lines = [
            (use.get(kind, 0.0) / (capacity[kind] * self.weight), speed / (capacity[kind] * self.weight))
            for kind, speed in speeds.items()
        ]
        others = (kind for kind in use if kind not in speeds and kind not in gone)
        lines.append((max((use[kind] / (capacity[kind] * self.weight) for kind in others), default=0.0), 0.0))
        at = 0.0
        while at < length * _WHOLE:
            level = max(base + rise * at for base, rise in lines)
            # Where lines meet the steepest goes on; they meet but for a rounding.
            slope = max(rise for base, rise in lines if base + rise * at >= level * _WHOLE - _NOTHING**2)
            until = length
            for base, rise in lines:
                if rise > slope:
                    meets = (level - slope * at - base) / (rise - slope)
                    if at < meets < until:
                        until = meets
            step = until - at
            amounts = {kind: speed * step for kind, speed in speeds.items()}
            self.stretches.append(Stretch(level, level + slope * step, step, amounts))
            at = until

    def needs(self, kind: Kind) -> bool:
        """Whether it takes of a kind from here on."""
        return any(flow.done < _WHOLE and kind in flow.total for flow in self.flows) or any(
            kind in stretch.amounts for stretch in self.stretches[self.at :]
        )

    def move(self, stretch: Stretch, part: float) -> None:
        """Go on along a stretch."""
        _add(self.use, stretch.amounts, part)
        left = stretch.length * part
        for flow in self.flows:
            if flow.done < _WHOLE and all(kind in stretch.amounts for kind in flow.total):
                flow.done = min(1.0, flow.done + flow.speed * left)


def fill(siblings: list[Sibling], given: Mapping[Kind, float], capacity: Mapping[Kind, int]) -> None:
    """Divide what was given; each sibling's `use` is what it gets."""
    left = {kind: given.get(kind, 0.0) for kind in capacity}
    for sibling in siblings:
        _add(left, sibling.use, -1.0)
    gone = {kind for kind, amount in left.items() if amount <= _NOTHING * max(1, capacity[kind])}
    for sibling in siblings:
        sibling.look_ahead(capacity, gone)
    _Sweep(siblings, left, gone, capacity).run()


class _Sweep:
    """All siblings rise together: what each takes per level adds up, until a kind is used up."""

    def __init__(
        self, siblings: list[Sibling], left: Amounts, gone: set[Kind], capacity: Mapping[Kind, int]
    ) -> None:
        self._siblings = siblings
        self._left = left
        self._gone = gone
        self._capacity = capacity
        self._level = 0.0
        self._speed: Amounts = {}
        self._moving: dict[int, float] = {}  # siblings on a stretch → the level at which they were last moved
        #: (level, sibling, generation): one of its stretches begins, or ends.
        self._events: list[tuple[float, int, int]] = []
        for number, sibling in enumerate(siblings):
            if sibling.stretches:
                self._events.append((sibling.stretches[0].start, number, sibling.generation))
        heapq.heapify(self._events)

    def run(self) -> None:
        while self._events:
            level, number, generation = self._events[0]
            if generation != self._siblings[number].generation:
                heapq.heappop(self._events)
                continue
            short = self._first_short(level)
            if short is not None:
                self._rise(short[0])
                self._use_up(short[1])
                continue
            heapq.heappop(self._events)
            self._rise(level)
            self._turn(number)

    def _first_short(self, level: float) -> tuple[float, Kind] | None:
        """The kind that is used up before a level is reached, and where."""
        rise = level - self._level
        found: tuple[float, Kind] | None = None
        for kind, speed in self._speed.items():
            if speed > 0 and kind not in self._gone and speed * rise > self._left[kind] * (1 + _NOTHING):
                at = self._level + max(0.0, self._left[kind]) / speed
                if found is None or (at, kind) < found:
                    found = (at, kind)
        return found

    def _rise(self, level: float) -> None:
        rise = level - self._level
        if rise > 0:
            for kind, speed in self._speed.items():
                self._left[kind] -= speed * rise
            self._level = level

    def _turn(self, number: int) -> None:
        """A sibling comes to the end of a stretch, or to the beginning of one."""
        sibling = self._siblings[number]
        if number in self._moving:
            self._halt(number, whole=True)
            sibling.at += 1
        while sibling.at < len(sibling.stretches):
            stretch = sibling.stretches[sibling.at]
            if stretch.start > self._level * (1 + _NOTHING) + _NOTHING:
                heapq.heappush(self._events, (stretch.start, number, sibling.generation))
                return
            if stretch.end - max(stretch.start, self._level) > _NOTHING:
                self._start(number, stretch)
                return
            if not self._take_at_once(sibling, stretch):
                return
            sibling.at += 1

    def _start(self, number: int, stretch: Stretch) -> None:
        """What was behind the level is caught up with at once; the rest goes with the others."""
        sibling = self._siblings[number]
        whole = stretch.end - stretch.start
        behind = max(0.0, self._level - stretch.start) / whole
        if behind > _NOTHING:
            caught = Stretch(
                stretch.start,
                self._level,
                stretch.length * behind,
                {kind: amount * behind for kind, amount in stretch.amounts.items()},
            )
            if not self._take_at_once(sibling, caught):
                return
            ahead = 1 - behind
            stretch = sibling.stretches[sibling.at] = Stretch(
                self._level,
                stretch.end,
                stretch.length * ahead,
                {kind: amount * ahead for kind, amount in stretch.amounts.items()},
            )
        rise = stretch.end - stretch.start
        for kind, amount in stretch.amounts.items():
            self._speed[kind] = self._speed.get(kind, 0.0) + amount / rise
        self._moving[number] = self._level
        heapq.heappush(self._events, (stretch.end, number, sibling.generation))

    def _halt(self, number: int, *, whole: bool = False) -> None:
        """Stop a moving sibling where the level is now."""
        sibling = self._siblings[number]
        stretch = sibling.stretches[sibling.at]
        rise = stretch.end - stretch.start
        since = self._moving.pop(number)
        sibling.move(stretch, 1.0 if whole else min(1.0, (self._level - since) / rise))
        for kind, amount in stretch.amounts.items():
            self._speed[kind] -= amount / rise
            if abs(self._speed[kind]) * rise <= _NOTHING * amount:
                self._speed[kind] = max(0.0, self._speed[kind])

    def _take_at_once(self, sibling: Sibling, stretch: Stretch) -> bool:
        """Whether there was enough for a stretch that does not wait for the level to rise."""
        part, short = 1.0, None
        for kind, amount in stretch.amounts.items():
            if amount > self._left.get(kind, 0.0) * (1 + _NOTHING):
                enough = max(0.0, self._left.get(kind, 0.0)) / amount
                if enough < part:
                    part, short = enough, kind
        sibling.move(stretch, part)
        _add(self._left, stretch.amounts, -part)
        if short is not None:
            self._use_up(short)
        return short is None

    def _use_up(self, kind: Kind) -> None:
        """A kind is gone: who needs it stops, and goes on with what does not. Without that kind some have less
        than others, so the level may fall: who has least goes first."""
        self._gone.add(kind)
        self._left[kind] = 0.0
        level = self._level
        for number, sibling in enumerate(self._siblings):
            moves = number in self._moving
            if moves:
                self._halt(number)
            if moves or sibling.needs(kind):
                sibling.look_ahead(self._capacity, self._gone)
                if sibling.stretches:
                    start = sibling.stretches[0].start
                    level = min(level, start)
                    heapq.heappush(self._events, (start, number, sibling.generation))
        self._level = level
        self._speed = {}


def _add(target: Amounts, amounts: Mapping[Kind, float], times: float = 1.0) -> None:
    for kind, amount in amounts.items():
        target[kind] = target.get(kind, 0.0) + amount * times


# ---- the tree


class Asked:
    """What a branch asks for, bottom up: by group its total, its pace beside the others, and its floor."""

    __slots__ = ("floors", "paces", "totals")

    def __init__(self) -> None:
        self.totals: dict[Group, list[float]] = {}
        self.paces: dict[Group, float] = {}  # by dominant share, of a branch that rises by its weight
        self.floors: dict[Group, float] = {}  # guaranteed, as a part of the total


class Deserving:
    """Keeps what every branch deserves up to date. `asks_anew` tells of a branch whose wants have changed."""

    def __init__(self, root: Branch, capacity: Mapping[Kind, int]) -> None:
        self._root = root
        self._capacity = {kind: amount for kind, amount in capacity.items() if amount > 0}
        self._asked: dict[Branch, Asked] = {}
        self._stale: dict[Branch, None] = {}  # branches whose children ask for something else than before
        self._given: dict[Branch, Amounts] = {}
        self._all_stale = True

    def asks_anew(self, leaf: Branch) -> None:
        for branch in leaf.path:
            if branch in self._stale:
                return
            self._stale[branch] = None

    def update(self, orphaned: Mapping[Kind, int]) -> dict[Branch, dict[Kind, int]]:
        """What branches deserve now, as far as that has changed. `orphaned`: held by nobody's queue."""
        if not self._stale and not self._all_stale:
            return {}
        self._ask(self._root)
        given = {
            kind: float(max(0, amount - orphaned.get(kind, 0))) for kind, amount in self._capacity.items()
        }
        changed: dict[Branch, dict[Kind, int]] = {}
        self._divide(self._root, given, changed)
        self._stale.clear()
        self._all_stale = False
        return changed

    def given_to(self, branch: Branch) -> Amounts:
        """By kind, as it was last worked out."""
        return self._given.get(branch, {})

    # ---- bottom up

    def _ask(self, branch: Branch) -> Asked:
        known = self._asked.get(branch)
        if known is not None and branch not in self._stale and not self._all_stale:
            return known
        asked = self._asked[branch] = Asked()
        if branch.is_leaf:
            for group, wanted in sorted(branch.wants.items()):  # the order of sums is part of them
                supplies = tuple(s for s in group[0] if self._offers(s, group[1], wanted))
                if supplies and any(wanted):
                    _gather(asked.totals, (supplies, group[1]), wanted)
        else:
            for child in branch.children:
                part = self._ask(child)
                for group, amounts in part.totals.items():
                    _gather(asked.totals, group, amounts)
                    asked.paces[group] = asked.paces.get(group, 0.0) + part.paces[group] * child.weight
        self._limit(branch, asked)
        self._set_paces(branch, asked)
        self._set_floors(branch, asked)
        return asked

    def _offers(self, supply: str, resources: tuple[str, ...], amounts: Iterable[float]) -> bool:
        return all(
            (supply, resource) in self._capacity
            for resource, amount in zip(resources, amounts, strict=True)
            if amount
        )

    def _limit(self, branch: Branch, asked: Asked) -> None:
        """Nobody asks for more than its limits allow."""
        if not branch.limit:
            return
        totals = self._by_kind(asked)
        for group, amounts in list(asked.totals.items()):
            part = min(
                (
                    limit / totals[kind]
                    for kind in _kinds(group)
                    if (limit := branch.limit.get(kind)) is not None and totals.get(kind, 0.0) > limit
                ),
                default=1.0,
            )
            if part < 1.0:
                asked.totals[group] = [amount * part for amount in amounts]

    def _set_paces(self, branch: Branch, asked: Asked) -> None:
        """A leaf's groups come up together; an inner branch's as its children want them. All together rise by
        one share."""
        if branch.is_leaf:
            asked.paces = {group: self._dominant(group, amounts) for group, amounts in asked.totals.items()}
        speeds: Amounts = {}
        for group, amounts in asked.totals.items():
            dominant = self._dominant(group, amounts)
            if dominant > 0:
                _add(speeds, _along(group, 0, amounts), asked.paces[group] / dominant)
        top = max((speed / self._capacity[kind] for kind, speed in speeds.items()), default=0.0)
        if top > 0:
            asked.paces = {group: pace / top for group, pace in asked.paces.items()}

    def _set_floors(self, branch: Branch, asked: Asked) -> None:
        totals = self._by_kind(asked)
        for group in asked.totals:
            named = [k for k in _kinds(group) if k in branch.floor and totals.get(k, 0.0) > 0]
            own = min((min(1.0, branch.floor[kind] / totals[kind]) for kind in named), default=0.0)
            below = 0.0
            for child in branch.children:
                part = self._asked[child]
                if group in part.floors:
                    below += part.floors[group] * max(part.totals[group])
            most = max(asked.totals[group])
            asked.floors[group] = max(own, min(1.0, below / most if most > 0 else 0.0))

    def _by_kind(self, asked: Asked) -> Amounts:
        totals: Amounts = {}
        for group, amounts in asked.totals.items():
            _add(totals, _along(group, 0, amounts))
        return totals

    def _dominant(self, group: Group, amounts: Iterable[float]) -> float:
        found = 0.0
        for kind, amount in _along(group, 0, amounts).items():
            found = max(found, amount / self._capacity[kind])
        return found

    # ---- top down

    def _divide(self, branch: Branch, given: Amounts, changed: dict[Branch, dict[Kind, int]]) -> None:
        same = self._given.get(branch) == given
        self._given[branch] = given
        if branch.is_leaf or (same and branch not in self._stale and not self._all_stale):
            return
        siblings = [self._sibling(child) for child in branch.children]
        _fit_floors(siblings, given)
        fill(siblings, given, self._capacity)
        for child, sibling in zip(branch.children, siblings, strict=True):
            deserved = {
                kind: parts
                for kind, amount in sorted(sibling.use.items())
                if (parts := round(amount * (1 << FRACTION_BITS)))
            }
            if deserved != child.deserved:
                changed[child] = deserved
            self._divide(child, sibling.use, changed)

    def _sibling(self, child: Branch) -> Sibling:
        asked = self._asked[child]
        flows = []
        for group, totals in asked.totals.items():
            dominant = self._dominant(group, totals)
            if dominant > 0:
                ways = [_along(group, at, totals) for at in reversed(range(len(group[0])))]
                flows.append(Flow(ways, asked.paces[group] / dominant, asked.floors[group]))
        return Sibling(child.weight, flows)


def _fit_floors(siblings: list[Sibling], given: Amounts) -> None:
    """Where more is guaranteed than there is, every guarantee of it shrinks alike."""
    floors: Amounts = {}
    for sibling in siblings:
        _add(floors, sibling.use)
    part = {
        kind: given.get(kind, 0.0) / amount
        for kind, amount in floors.items()
        if amount > given.get(kind, 0.0)
    }
    if not part:
        return
    for sibling in siblings:
        for flow in sibling.flows:
            flow.done *= min((part[kind] for kind in flow.total if kind in part), default=1.0)
        sibling.use = {}
        for flow in sibling.flows:
            _add(sibling.use, flow.total, flow.done)


def _gather(totals: dict[Group, list[float]], group: Group, amounts: Iterable[float]) -> None:
    known = totals.get(group)
    if known is None:
        totals[group] = [float(amount) for amount in amounts]
    else:
        totals[group] = [before + amount for before, amount in zip(known, amounts, strict=True)]


def _kinds(group: Group) -> list[Kind]:
    """In the supply that it prefers."""
    return [(group[0][0], resource) for resource in group[1]]


def _along(group: Group, way: int, amounts: Iterable[float]) -> Amounts:
    """What a group asks for, by kind, in one of its supplies."""
    supply = group[0][way]
    return {
        (supply, resource): amount for resource, amount in zip(group[1], amounts, strict=True) if amount > 0
    }
