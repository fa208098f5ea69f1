"""Progressive filling among siblings: their weighted dominant shares rise together, who has least first.

Siblings do not rise in small steps. Each sibling's way is a few straight *stretches* between levels, and a
sweep over the levels adds their speeds up until a kind is used up. What of a sibling is bound to where there is less
for each rises behind what else it asks for (`crowding.py`).
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Final, NamedTuple

from sluice_scheduler.core.fairness.claims import Kind
from sluice_scheduler.core.fairness.crowding import Amounts, Crowding, Flow, add_times

_NOTHING: Final = 1e-9
#: Fractions as large as this are whole.
_WHOLE: Final = 1 - 1e-12


class Stretch(NamedTuple):
    """From one level to another (or at one level) a sibling's flows move on by `length` at these speeds."""

    start: float
    end: float
    length: float
    amounts: Amounts  # taken on the whole stretch


class Sibling:
    """One child of a branch while that is filled."""

    __slots__ = (
        "_going",
        "_kinds",
        "_rising",
        "_went",
        "at",
        "flows",
        "generation",
        "stretches",
        "use",
        "waits",
        "weight",
    )

    def __init__(self, weight: int, flows: list[Flow]) -> None:
        self.weight = weight
        self.flows = flows
        self.use: Amounts = {}
        for flow in flows:
            add_times(self.use, flow.total, flow.done)
        self.stretches: list[Stretch] = []
        self.at = 0  # the stretch that comes next
        self.generation = 0
        self._going = flows  # those that have not stopped yet; who has stopped never goes on
        self._rising: list[Flow] = []  # those of them that do not wait for others of them
        self.waits = False  # whether any does: then the stretches end where it may no longer
        self._kinds: set[Kind] = set()  # what these need
        self._went = 0.0  # how far they have come since the stretches were worked out

    def is_free_of(self, scarce: set[Kind]) -> bool:
        return all(scarce.isdisjoint(flow.total) for flow in self.flows)

    def take_all(self) -> None:
        """All that it asks for, where it prefers to have it."""
        self.use = {}
        for flow in self.flows:
            add_times(self.use, flow.total)

    def look_ahead(self, capacity: Mapping[Kind, int], gone: set[Kind], crowding: Crowding) -> None:
        """Work out the stretches from here on; flows that need what is gone stop, or try another supply."""
        self.generation += 1
        self.stretches, self.at = [], 0
        for flow in self._rising:
            flow.done = min(1.0, flow.done + flow.speed * self._went)
        self._going = [
            flow for flow in self._going if flow.done < _WHOLE and self._goes_on(flow, gone, crowding)
        ]
        self._kinds = {kind for flow in self._going for kind in flow.total}
        self._went = 0.0
        self._rising, until = crowding.who_rises(self._going)
        self.waits = len(self._rising) < len(self._going)
        use, at = dict(self.use), 0.0
        for end, rest, speeds in self._stages():
            if end > until:
                break
            if rest * (end - at) > 1 - _WHOLE:
                self._stretch(use, speeds, end - at, capacity, gone)
                add_times(use, speeds, end - at)
                at = end

    def _stages(self) -> list[tuple[float, float, Amounts]]:
        """How far all go until each flow stops, who stops first first: its speed, and that of all who go so far. That
        is added up from the last to the first, so that nothing is ever taken off a sum."""
        ends = [(flow.end, flow) for flow in self._rising]
        speeds: Amounts = {}
        stages = []
        for end, flow in sorted(ends, key=lambda each: each[0], reverse=True):
            add_times(speeds, flow.total, flow.speed)
            stages.append((end, flow.speed, dict(speeds)))
        return stages[::-1]

    def _goes_on(self, flow: Flow, gone: set[Kind], crowding: Crowding) -> bool:
        while not gone.isdisjoint(flow.total):
            if not flow.supplies:
                return False
            rest = 1 - flow.done
            flow.total = {kind: amount * rest for kind, amount in flow.supplies.pop().items()}
            flow.speed, flow.done = flow.speed / rest, 0.0
            crowding.place(flow)
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
            # Where lines meet, up to a rounding, the steepest goes on.
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

    def knows(self, kind: Kind) -> bool:
        """Whether it has anything of a kind, or takes it from here on."""
        return kind in self.use or kind in self._kinds

    def move(self, stretch: Stretch, part: float) -> None:
        """Go on along a stretch."""
        add_times(self.use, stretch.amounts, part)
        self._went += stretch.length * part


def fill(
    siblings: list[Sibling],
    given: Mapping[Kind, float],
    capacity: Mapping[Kind, int],
    sections: Mapping[Kind, Kind],
) -> None:
    """Divide what was given; each sibling's `use` is what it gets. `sections`: those that are crowded, and what
    they are sections of."""
    scarce, rising = _scarce(siblings, given), []
    for sibling in siblings:
        if sibling.is_free_of(scarce):
            sibling.take_all()
        else:
            rising.append(sibling)
    if not rising:
        return
    left = {kind: given.get(kind, 0.0) for kind in capacity}
    for sibling in rising:
        add_times(left, sibling.use, -1.0)
    gone = {kind for kind, amount in left.items() if amount <= _NOTHING * max(1, capacity[kind])}
    crowding = Crowding({kind: of for kind, of in sections.items() if kind in scarce})
    if crowding.sections:
        crowding.measure([(each.weight, each.flows) for each in rising], given, capacity)
    for sibling in rising:
        sibling.look_ahead(capacity, gone, crowding)
    _Sweep(rising, left, gone, capacity, crowding).run()


def _scarce(siblings: list[Sibling], given: Mapping[Kind, float]) -> set[Kind]:
    """The kinds of which there is not enough for all who may ever ask for them. Who needs none of these is not held up
    by others, nor holds them up."""
    asked: Amounts = {}
    for sibling in siblings:
        for flow in sibling.flows:
            for way in (flow.total, *flow.supplies):
                add_times(asked, way)
    return {kind for kind, amount in asked.items() if amount > given.get(kind, 0.0)}


class _Sweep:
    """All siblings rise together: what each takes per level adds up, until a kind is used up."""

    def __init__(
        self,
        siblings: list[Sibling],
        left: Amounts,
        gone: set[Kind],
        capacity: Mapping[Kind, int],
        crowding: Crowding,
    ) -> None:
        self._siblings = siblings
        self._left = left
        self._gone = gone
        self._capacity = capacity
        self._crowding = crowding
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
        while (stretch := self._next(sibling)) is not None:
            if stretch.start > self._level * (1 + _NOTHING) + _NOTHING:
                heapq.heappush(self._events, (stretch.start, number, sibling.generation))
                return
            if stretch.end - max(stretch.start, self._level) > _NOTHING:
                self._start(number, stretch)
                return
            if not self._take_at_once(sibling, stretch):
                return
            sibling.at += 1

    def _next(self, sibling: Sibling) -> Stretch | None:
        if sibling.at == len(sibling.stretches) and sibling.waits:
            sibling.look_ahead(self._capacity, self._gone, self._crowding)
        return sibling.stretches[sibling.at] if sibling.at < len(sibling.stretches) else None

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
        add_times(self._left, stretch.amounts, -part)
        if short is not None:
            self._use_up(short)
        return short is None

    def _use_up(self, kind: Kind) -> None:
        """A kind is gone: who needs it stops, and goes on with what does not. Without that kind some have less
        than others, so the level may fall: who has least goes first."""
        new = {each for each, left in self._left.items() if left <= _NOTHING * max(1, self._capacity[each])}
        new = (new | {kind}) - self._gone
        self._gone |= new
        level = self._level
        for number, sibling in enumerate(self._siblings):
            moves = number in self._moving
            if moves:
                self._halt(number)
            if moves or any(sibling.knows(each) for each in new):
                sibling.look_ahead(self._capacity, self._gone, self._crowding)
                if sibling.stretches:
                    start = sibling.stretches[0].start
                    level = min(level, start)
                    heapq.heappush(self._events, (start, number, sibling.generation))
        self._level = level
        self._speed = {}
