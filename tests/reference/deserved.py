"""What branches deserve, slow and obvious: everybody's share rises in small steps, who has least goes next.

It knows weights, guarantees, limits, several resources, several supplies, and wants that are bound to some pools of a
supply. A leaf's wants come up in equal parts; an inner branch's as its children want them, by weight. But what is bound
to where there is less for each waits for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

Kind = tuple[str, str]
Amounts = dict[Kind, float]
Pool = tuple[str, str]  # its supply, its name

_NOTHING = 1e-7
NO_POOLS: Mapping[Pool, Mapping[str, float]] = {}


@dataclass(eq=False)
class Want:
    """So much of each resource, in the first of these supplies that has it; of one supply it may be bound to pools."""

    supplies: tuple[str, ...]
    amounts: dict[str, float]
    pools: tuple[str, ...] = ()
    crowded: tuple[Kind, ...] = ()  # sections that these are in, and of which resource they have too little

    @property
    def like(self) -> tuple[object, ...]:
        return (self.supplies, self.crowded, tuple(sorted(self.amounts)))

    def kinds(self) -> Amounts:
        kinds = {(self.supplies[0], resource): amount for resource, amount in self.amounts.items()}
        kinds.update((kind, self.amounts[kind[1]]) for kind in self.crowded if kind[1] in self.amounts)
        return kinds


@dataclass(eq=False)
class Tenant:
    """A branch of the tree."""

    name: str
    weight: int = 1
    floor: Amounts = field(default_factory=dict)
    limit: Amounts = field(default_factory=dict)
    wants: list[Want] = field(default_factory=list)  # of a leaf
    children: list[Tenant] = field(default_factory=list)


@dataclass(eq=False)
class _Stream:
    """A want while it is served: the fraction that is given, in the supply that it stands at."""

    want: Want
    speed: float  # fraction per step of one share
    done: float
    use: Amounts = field(default_factory=dict)

    def kinds(self) -> Amounts:
        return self.want.kinds()


def deserved(
    root: Tenant, capacity: Amounts, *, steps: int, pools: Mapping[Pool, Mapping[str, float]] = NO_POOLS
) -> dict[str, Amounts]:
    """By tenant; each step is one part in `steps` of a share. `pools`: what each has."""
    whole = {kind: amount for kind, amount in capacity.items() if amount > 0}
    given, measures = dict(whole), dict(whole)
    wants = [want for leaf in _leaves(root) for want in leaf.wants if want.pools]
    for section in sorted({(want.supplies, want.pools) for want in wants}):
        (supply,), names = section
        bound = [want for want in wants if want.supplies == (supply,) and set(want.pools) <= set(names)]
        for resource in sorted({resource for want in bound for resource in want.amounts}):
            there = sum(pools[(supply, name)].get(resource, 0.0) for name in names)
            asked = sum(want.amounts.get(resource, 0.0) for want in bound)
            if there < min(asked, whole.get((supply, resource), 0)):
                kind = (str(section), resource)
                measures[kind], given[kind] = whole[(supply, resource)], there
                for want in bound:
                    want.crowded = (*want.crowded, kind)
    found: dict[str, Amounts] = {}
    _divide(root, given, measures, steps, found)
    return {
        name: {kind: amounts[kind] for kind in amounts if kind in whole} for name, amounts in found.items()
    }


def _leaves(tenant: Tenant) -> Iterator[Tenant]:
    yield tenant
    for child in tenant.children:
        yield from _leaves(child)


def _divide(tenant: Tenant, given: Amounts, whole: Amounts, steps: int, found: dict[str, Amounts]) -> None:
    level = _Level(tenant, given, whole)
    while level.step(steps):
        pass
    for child in tenant.children:
        found[child.name] = level.used(child)
        _divide(child, found[child.name], whole, steps, found)


class _Level:
    """The children of one tenant while they share what it was given."""

    def __init__(self, tenant: Tenant, given: Amounts, whole: Amounts) -> None:
        self._whole = whole
        self._streams = {
            child.name: [_Stream(want, speed, floor) for want, speed, floor in _asked(child, whole)]
            for child in tenant.children
        }
        _start_with_floors([(self._streams[child.name], child) for child in tenant.children], given)
        self._children = tenant.children
        self._left = {kind: given.get(kind, 0.0) for kind in whole}
        self._enough_up_to = self._levels(given)
        for child in tenant.children:
            for kind, amount in self.used(child).items():
                self._left[kind] -= amount

    def _levels(self, given: Amounts) -> Amounts:
        """Of each section in which not all can have what they ask for: the share up to which all of them could rise."""
        asked: dict[Kind, list[tuple[int, float]]] = {}
        for child in self._children:
            wants = _summed(stream.want for stream in self._streams[child.name])
            for kind, amount in wants.items():
                asked.setdefault(kind, []).append((child.weight, amount))
        found: Amounts = {}
        for kind, amounts in asked.items():
            there = given.get(kind, 0.0)
            if sum(amount for _, amount in amounts) <= there * (1 + _NOTHING):
                continue
            low, high = 0.0, there
            for _ in range(60):
                middle = (low + high) / 2
                if sum(min(amount, weight * middle) for weight, amount in amounts) > there:
                    high = middle
                else:
                    low = middle
            found[kind] = round(low / self._whole[kind], 7)
        return found

    def _waits(self, stream: _Stream, other: _Stream) -> bool:
        """Whether the other needs what this one is bound to a section of, and stands where there is more for each."""
        mine, others = self._crowded(stream), self._crowded(other)
        supply = stream.want.supplies[0]
        if not any((supply, resource) in other.kinds() for _, resource in mine):
            return False
        least, others_least = (
            min((self._enough_up_to[kind] for kind in kinds), default=float("inf"))
            for kinds in (mine, others)
        )
        return (others_least, -len(others)) > (least, -len(mine))

    def _crowded(self, stream: _Stream) -> list[Kind]:
        return [kind for kind in stream.want.crowded if kind in stream.kinds() and kind in self._enough_up_to]

    def used(self, child: Tenant) -> Amounts:
        sums: Amounts = {}
        for stream in self._streams[child.name]:
            _add(sums, stream.use, 1.0)
        return sums

    def share(self, child: Tenant) -> float:
        """Nobody waits because of what he has of something that is used up."""
        used = self.used(child).items()
        shares = (amount / self._whole[k] for k, amount in used if self._left[k] > _NOTHING * self._whole[k])
        return max(shares, default=0.0) / child.weight

    def step(self, steps: int) -> bool:
        """Whether anybody has moved on by one step, or as far as anything lasts or is asked for."""
        flowing = {
            child.name: [
                each for each in self._streams[child.name] if _goes_on(each, self._left, self._whole)
            ]
            for child in self._children
        }
        for name, all_of_one in flowing.items():
            flowing[name] = [
                each for each in all_of_one if not any(self._waits(each, other) for other in all_of_one)
            ]
        active = [child for child in self._children if flowing[child.name]]
        if not active:
            return False
        streams = flowing[min(active, key=lambda child: (self.share(child), child.name)).name]
        taken: Amounts = {}
        for stream in streams:
            _add(taken, stream.kinds(), stream.speed / steps)
        ends = [(1 - stream.done) / (stream.speed / steps) for stream in streams]
        lasts = [self._left[kind] / amount for kind, amount in taken.items() if amount > 0]
        scale = min(1.0, *ends, *lasts)
        for stream in streams:
            stream.done += stream.speed / steps * scale
            _add(stream.use, stream.kinds(), stream.speed / steps * scale)
        _add(self._left, taken, -scale)
        return True


def _add(target: Amounts, amounts: Amounts, times: float) -> None:
    for kind, amount in amounts.items():
        target[kind] = target.get(kind, 0.0) + amount * times


def _goes_on(stream: _Stream, left: Amounts, whole: Amounts) -> bool:
    if stream.done >= 1 - _NOTHING:
        return False
    while any(left.get(kind, 0.0) <= _NOTHING * whole[kind] for kind in stream.kinds()):
        if len(stream.want.supplies) == 1:
            return False
        rest = 1 - stream.done
        amounts = {resource: amount * rest for resource, amount in stream.want.amounts.items()}
        stream.want = Want(stream.want.supplies[1:], amounts)
        stream.speed, stream.done = stream.speed / rest, 0.0
    return True


def _start_with_floors(floors: list[tuple[list[_Stream], Tenant]], given: Amounts) -> None:
    """Where more is guaranteed than there is, every guarantee that names it shrinks alike. What guarantees of something
    else bring along has what is left by these."""
    named: Amounts = {}
    beside: Amounts = {}
    for streams, tenant in floors:
        for stream in streams:
            for kind, amount in stream.kinds().items():
                _add(named if kind in tenant.floor else beside, {kind: amount}, stream.done)
    for streams, tenant in floors:
        for stream in streams:
            parts = [1.0]
            for kind in stream.kinds():
                there = given.get(kind, 0.0)
                if kind in tenant.floor:
                    parts.append(there / named[kind] if named[kind] > 0 else 1.0)
                elif beside[kind] > 0:
                    parts.append(max(0.0, there - named.get(kind, 0.0)) / beside[kind])
            stream.done *= min(parts)
            stream.use = {kind: amount * stream.done for kind, amount in stream.kinds().items()}


_Asked = list[tuple[Want, float, float]]


def _asked(tenant: Tenant, whole: Amounts) -> _Asked:
    """What a tenant asks for: by want the total, its speed beside the others, and its guaranteed part."""
    wants: dict[tuple[object, ...], Want] = {}
    paces: dict[tuple[object, ...], float] = {}
    below: dict[tuple[object, ...], float] = {}
    for child in tenant.children:
        for want, speed, floor in _asked(child, whole):
            _gather(wants, want)
            pace = speed * _dominant(want, whole)
            paces[want.like] = paces.get(want.like, 0.0) + pace * child.weight
            below[want.like] = below.get(want.like, 0.0) + floor * max(want.amounts.values())
    for want in tenant.wants:
        supplies = tuple(s for s in want.supplies if all((s, resource) in whole for resource in want.amounts))
        if supplies:
            _gather(wants, replace(want, supplies=supplies))
    totals = _summed(wants.values())
    for like, want in wants.items():
        parts = [
            tenant.limit[kind] / totals[kind]
            for kind in want.kinds()
            if kind in tenant.limit and totals[kind] > tenant.limit[kind]
        ]
        cut = min(parts, default=1.0)
        wants[like] = replace(
            want, amounts={resource: amount * cut for resource, amount in want.amounts.items()}
        )
    wants = {like: want for like, want in wants.items() if _dominant(want, whole) > 0}
    if not tenant.children:
        paces = {like: _dominant(want, whole) for like, want in wants.items()}
    speeds = {like: paces[like] / _dominant(want, whole) for like, want in wants.items()}
    together: Amounts = {}
    for like, want in wants.items():
        for kind, amount in want.kinds().items():
            together[kind] = together.get(kind, 0.0) + amount * speeds[like]
    top = max((amount / whole[kind] for kind, amount in together.items()), default=0.0)
    totals = _summed(wants.values())
    found = []
    for like, want in wants.items():
        own = [min(1.0, tenant.floor[kind] / totals[kind]) for kind in want.kinds() if kind in tenant.floor]
        floor = max(min(own, default=0.0), min(1.0, below.get(like, 0.0) / max(want.amounts.values())))
        found.append((want, speeds[like] / top, floor))
    return found


def _gather(wants: dict[tuple[object, ...], Want], want: Want) -> None:
    known = wants.get(want.like)
    if known is None:
        wants[want.like] = replace(want, amounts=dict(want.amounts))
    else:
        for resource, amount in want.amounts.items():
            known.amounts[resource] += amount


def _summed(wants: object) -> Amounts:
    sums: Amounts = {}
    for want in wants:  # type: ignore[attr-defined]
        for kind, amount in want.kinds().items():
            sums[kind] = sums.get(kind, 0.0) + amount
    return sums


def _dominant(want: Want, whole: Amounts) -> float:
    return max(amount / whole[kind] for kind, amount in want.kinds().items())
