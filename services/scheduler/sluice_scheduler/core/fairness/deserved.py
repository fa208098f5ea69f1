"""What each branch deserves: hierarchical progressive filling over what all ask for, as if pods could be divided.

Simple semantics, for the siblings under one branch and what that branch was given: all start at what is
guaranteed to them. Then their weighted dominant shares rise together, who has least first, each along what it
asks for, until it has all of that. When a resource is used up, only what needs it stops; when certain pools are, only
what is bound to these (`sections.py`); what is bound to where there is less for each waits for the rest of that sibling
(`crowding.py`). The root was given the capacity; every inner branch divides what it was
given in the same way.

What is done instead: siblings do not rise in small steps. Each sibling's way is a few straight *stretches*
between levels, and a sweep over the levels adds their speeds up. A level of the tree is filled anew only if
what it was given or what a child asks for has changed (ADR 0011). The figures are floating point numbers: the
same operations in the same order give the same bits on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim, Kind, KindOf
from sluice_scheduler.core.fairness.crowding import Amounts, Flow, add_times
from sluice_scheduler.core.fairness.filling import Sibling, fill
from sluice_scheduler.core.fairness.sections import Sections
from sluice_scheduler.core.fairness.shares import FRACTION_BITS

#: Demand that stops together: in each supply that it may use (the preferred one first) the crowded sections that it is
#: bound to, and what it asks for.
_Flowing: TypeAlias = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]


class Asked:
    """What a branch asks for, bottom up: by group its total, its pace beside the others, and its floor."""

    __slots__ = ("floors", "flows", "paces", "totals")

    def __init__(self) -> None:
        self.totals: dict[_Flowing, list[float]] = {}
        self.paces: dict[_Flowing, float] = {}  # by dominant share, of a branch that rises by its weight
        self.floors: dict[_Flowing, float] = {}  # guaranteed, as a part of the total
        #: The same as it is filled: along each of its ways, the preferred one last; its speed; and its floor.
        self.flows: list[tuple[list[Amounts], float, float]] | None = None


class Deserving:
    """Keeps what every branch deserves up to date. `asks_anew` tells of a branch whose wants have changed."""

    def __init__(self, root: Branch, capacity: Mapping[Dim, int], kind_of: KindOf) -> None:
        self._root = root
        self._kind_of = kind_of
        whole: dict[Kind, int] = {}
        add(whole, ((kind_of(dim), amount) for dim, amount in capacity.items()))
        self._capacity = {kind: amount for kind, amount in whole.items() if amount > 0}
        self._sections = Sections(capacity, kind_of)
        #: Capacity by which shares are measured, those of crowded sections too.
        self._measures = self._capacity
        self._within: dict[Kind, Kind] = {}  # crowded sections, and what they are sections of
        self._kinds: dict[tuple[tuple[str, tuple[str, ...]], tuple[str, ...]], list[list[Kind]]] = {}
        self._asked: dict[Branch, Asked] = {}
        self._stale: dict[Branch, None] = {}  # branches whose children ask for something else than before
        self._given: dict[Branch, Amounts] = {}
        self._orphaned: dict[Dim, int] = {}
        self._all_stale = True

    def asks_anew(self, leaf: Branch) -> None:
        for branch in leaf.path:
            if branch in self._stale:
                return
            self._stale[branch] = None

    def update(self, orphaned: Mapping[Dim, int]) -> dict[Branch, dict[Kind, int]]:
        """What branches deserve now, as far as that has changed. `orphaned`: held by nobody's queue."""
        if not self._stale and not self._all_stale and orphaned == self._orphaned:
            return {}
        self._orphaned = dict(orphaned)
        self._find_sections()
        self._ask(self._root)
        lost: dict[Kind, int] = {}
        add(lost, ((self._kind_of(dim), amount) for dim, amount in orphaned.items()))
        given = {kind: float(max(0, amount - lost.get(kind, 0))) for kind, amount in self._capacity.items()}
        given.update(self._sections.given())
        changed: dict[Branch, dict[Kind, int]] = {}
        self._divide(self._root, given, changed)
        self._stale.clear()
        self._all_stale = False
        return changed

    def given_to(self, branch: Branch) -> Amounts:
        """By kind, as it was last worked out."""
        return {
            kind: amount for kind, amount in self._given.get(branch, {}).items() if kind in self._capacity
        }

    def _find_sections(self) -> None:
        for branch in _leaves(self._root) if self._all_stale else self._stale:
            if branch.is_leaf:
                self._sections.count(branch)
        elsewhere = self._sections.find(self._orphaned)
        if elsewhere is not None:
            self._measures = self._capacity | self._sections.measured()
            self._within = self._sections.within()
            self._kinds = {}
            for leaf in elsewhere:
                self.asks_anew(leaf)

    # ---- bottom up

    def _ask(self, branch: Branch) -> Asked:
        known = self._asked.get(branch)
        if known is not None and branch not in self._stale and not self._all_stale:
            return known
        asked = self._asked[branch] = Asked()
        if branch.is_leaf:
            for (ways, resources), wanted in branch.wants.items():
                open_ways = [way for way in ways if self._offers(way[0], resources, wanted)]
                if open_ways and any(wanted):
                    bound = tuple([(way[0], self._sections.around(way)) for way in open_ways])
                    _gather(asked.totals, (bound, resources), wanted)
            asked.totals = dict(sorted(asked.totals.items()))  # the order of sums is part of them
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
                add_times(speeds, self._along(group, 0, amounts), asked.paces[group] / dominant)
        top = max((speed / self._measures[kind] for kind, speed in speeds.items()), default=0.0)
        if top > 0:
            asked.paces = {group: pace / top for group, pace in asked.paces.items()}

    def _set_floors(self, branch: Branch, asked: Asked) -> None:
        if branch.is_leaf and not branch.floor:
            asked.floors = dict.fromkeys(asked.totals, 0.0)
            return
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
            add_times(totals, self._along(group, 0, amounts))
        return totals

    def _dominant(self, group: _Flowing, amounts: Iterable[float]) -> float:
        found, supply, capacity = 0.0, group[0][0][0], self._capacity
        for resource, amount in zip(group[1], amounts, strict=True):
            if amount > 0:
                found = max(found, amount / capacity[(supply, resource)])
        return found

    # ---- top down

    def _divide(self, branch: Branch, given: Amounts, changed: dict[Branch, dict[Kind, int]]) -> None:
        same = self._given.get(branch) == given
        self._given[branch] = given
        if branch.is_leaf or (same and branch not in self._stale and not self._all_stale):
            return
        siblings = [self._sibling(child) for child in branch.children]
        _fit_floors([(s, child.floor) for child, s in zip(branch.children, siblings, strict=True)], given)
        fill(siblings, given, self._measures, self._within)
        for child, sibling in zip(branch.children, siblings, strict=True):
            deserved = {
                kind: parts
                for kind, amount in sorted(sibling.use.items())
                if kind in self._capacity and (parts := round(amount * (1 << FRACTION_BITS)))
            }
            if deserved != child.deserved:
                changed[child] = deserved
            self._divide(child, sibling.use, changed)

    def _sibling(self, child: Branch) -> Sibling:
        asked = self._asked[child]
        if asked.flows is None:
            asked.flows = list(self._flows(asked))
        return Sibling(child.weight, [Flow([*ways], speed, floor) for ways, speed, floor in asked.flows])

    def _flows(self, asked: Asked) -> Iterator[tuple[list[Amounts], float, float]]:
        for group, totals in asked.totals.items():
            dominant = self._dominant(group, totals)
            if dominant > 0:
                ways = [self._along(group, at, totals) for at in reversed(range(len(group[0])))]
                yield ways, asked.paces[group] / dominant, asked.floors[group]

    def _along(self, group: _Flowing, way: int, amounts: Iterable[float]) -> Amounts:
        """What a group asks for, by kind, in one of its supplies and in the crowded sections of it."""
        found: Amounts = {}
        for kinds, amount in zip(self._kinds_along(group[0][way], group[1]), amounts, strict=True):
            if amount > 0:
                for kind in kinds:
                    found[kind] = amount
        return found

    def _kinds_along(self, way: tuple[str, tuple[str, ...]], resources: tuple[str, ...]) -> list[list[Kind]]:
        """Of each resource: of the supply, and of the sections that are crowded by it."""
        known = self._kinds.get((way, resources))
        if known is None:
            supply, sections = way
            known = self._kinds[(way, resources)] = [
                [(supply, each), *((name, each) for name in sections if (name, each) in self._measures)]
                for each in resources
            ]
        return known


def _leaves(branch: Branch) -> Iterator[Branch]:
    if branch.is_leaf:
        yield branch
    for child in branch.children:
        yield from _leaves(child)


def _fit_floors(floors: list[tuple[Sibling, Mapping[Kind, int]]], given: Amounts) -> None:
    """If more of a kind is guaranteed than there is, every guarantee that names it shrinks by the same factor; what
    other guarantees bring along of it has what these leave. `floors`: siblings, and what their guarantees name."""
    named: Amounts = {}
    beside: Amounts = {}
    for sibling, names in floors:
        for kind, amount in sibling.use.items():
            add_times(named if kind in names else beside, {kind: amount})
    of_named = {kind: min(1.0, given.get(kind, 0.0) / amount) for kind, amount in named.items() if amount}
    of_beside = {
        kind: min(1.0, max(0.0, given.get(kind, 0.0) - named.get(kind, 0.0)) / amount)
        for kind, amount in beside.items()
        if amount
    }
    if all(part == 1.0 for part in (*of_named.values(), *of_beside.values())):
        return
    for sibling, names in floors:
        sibling.use = {}
        for flow in sibling.flows:
            parts = ((of_named if kind in names else of_beside).get(kind, 1.0) for kind in flow.total)
            flow.done *= min(parts, default=1.0)
            add_times(sibling.use, flow.total, flow.done)


def _gather(totals: dict[_Flowing, list[float]], group: _Flowing, amounts: Iterable[float]) -> None:
    known = totals.get(group)
    if known is None:
        totals[group] = [float(amount) for amount in amounts]
    else:
        totals[group] = [before + amount for before, amount in zip(known, amounts, strict=True)]


def _kinds(group: _Flowing) -> list[Kind]:
    """In the supply that it prefers."""
    ways, resources = group
    return [(ways[0][0], resource) for resource in resources]


# ---- as it is stored


def stored_name(branch: Branch) -> str:
    """An inner queue's own pods stand under its name and a slash."""
    return f"{branch.name}/" if branch.is_implicit else branch.name


def by_name(amounts: Mapping[Kind, int]) -> dict[str, int]:
    return {"/".join(kind): amount for kind, amount in amounts.items()}


def by_kind(amounts: Mapping[str, int]) -> dict[Kind, int]:
    found: dict[Kind, int] = {}
    for name, amount in amounts.items():
        supply, _, resource = name.partition("/")
        found[(supply, resource)] = amount
    return found
