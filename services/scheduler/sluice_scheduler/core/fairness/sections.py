"""Sections of supplies that are crowded: pools to which more demand is bound than they have.

Shares are measured by supply, and most demand may go to any of its pools. Some is bound to a few of them: by a node
selector, by its cluster, by the size of nodes; what a pod holds is bound as it was while it waited (standing.py).
Where more is bound to certain pools than they have, this is divided as a supply is: who is bound to them stops rising
when they are used up, and begins to when nothing else of it can rise where there is more for each (crowding.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim, Kind, KindOf, PoolKey, Way

#: So many sets of several pools are told apart, the smallest first: tenants name them, by their selectors.
_SECTIONS_MAX: Final = 64
#: Of pools by themselves so many that are crowded: to be asked for a little crowds nothing out.
_CROWDED_MAX: Final = 64


class Sections:
    """Demand by the pools that it is bound to, and which of these are crowded."""

    def __init__(self, capacity: Mapping[Dim, int], kind_of: KindOf) -> None:
        self._capacity: dict[str, dict[PoolKey, dict[str, int]]] = {}  # by supply
        self._whole: dict[Kind, int] = {}
        for dim, amount in capacity.items():
            supply, resource = kind_of(dim)
            self._capacity.setdefault(supply, {}).setdefault(dim[:2], {})[resource] = amount
            add(self._whole, [((supply, resource), amount)])
        #: What is bound to these pools; by queue, nothing of it where that may go other ways, too.
        self._asked: dict[Way, dict[str, int]] = {}
        self._asked_by: dict[Branch, dict[Way, dict[str, int]]] = {}
        self._leaves: dict[Way, dict[Branch, None]] = {}
        self._around: dict[Way, tuple[str, ...]] = {}
        #: By section: its pools, and what they have of the resources of which they have less than is asked for.
        self._crowded: dict[str, tuple[Way, dict[str, int]]] = {}

    def count(self, leaf: Branch) -> None:
        """A queue asks for something else than before."""
        for way, amounts in self._asked_by.pop(leaf, {}).items():
            self._forget(way, leaf, amounts)
        asked: dict[Way, dict[str, int]] = {}
        for (ways, resources), wanted in leaf.wants.items():
            for way in ways if any(wanted) else ():
                if self._is_divided(*way):
                    bound = zip(resources, wanted, strict=True) if len(ways) == 1 else ()
                    add(asked.setdefault(way, {}), bound)
        for way, amounts in asked.items():
            self._leaves.setdefault(way, {})[leaf] = None
            if amounts:
                add(self._asked.setdefault(way, {}), amounts.items())
        if asked:
            self._asked_by[leaf] = asked

    def _forget(self, way: Way, leaf: Branch, amounts: Mapping[str, int]) -> None:
        sums = self._asked.get(way, {})
        add(sums, amounts.items(), -1)
        if not any(sums.values()):
            self._asked.pop(way, None)
        del self._leaves[way][leaf]
        if not self._leaves[way]:
            del self._leaves[way]
            self._around.pop(way, None)

    def _is_divided(self, supply: str, pools: tuple[PoolKey, ...]) -> bool:
        """Whether the supply has other pools than these."""
        known = self._capacity.get(supply, {})
        return bool(pools) and (len(pools) < len(known) or not known.keys() <= set(pools))

    def find(self, orphaned: Mapping[Dim, int]) -> list[Branch] | None:
        """Which sections are crowded now. If others are than before: the queues whose demand may stand in other
        crowded ones. `orphaned`: what nobody's queue holds."""
        before = self._crowded
        ways = sorted(self._asked, key=lambda way: (len(way[1]), way))
        single = ((way, self._short(way, orphaned)) for way in ways if len(way[1]) == 1)
        crowded = list(islice((each for each in single if each[1]), _CROWDED_MAX))
        several = islice((way for way in ways if len(way[1]) > 1), _SECTIONS_MAX)
        crowded += ((way, there) for way in several if (there := self._short(way, orphaned)))
        self._crowded = {_name(way): (way, there) for way, there in crowded}
        was = {(name, resource) for name, (_, there) in before.items() for resource in there}
        now = {(name, resource) for name, (_, there) in self._crowded.items() for resource in there}
        if was == now:
            return None
        self._around = {}
        known = before | self._crowded
        return self._standing_in([known[name][0] for name in sorted({name for name, _ in was ^ now})])

    def _standing_in(self, sections: list[Way]) -> list[Branch]:
        found: dict[Branch, None] = {}
        for supply, pools in self._leaves:
            if any(other == supply and set(pools) <= set(inside) for other, inside in sections):
                found.update(self._leaves[(supply, pools)])
        return list(found)

    def _short(self, way: Way, orphaned: Mapping[Dim, int]) -> dict[str, int]:
        """What is left to queues in these pools of each resource of which more is asked for."""
        supply, pools = way
        inside = set(pools)
        there = dict.fromkeys(self._asked[way], 0)  # they have nothing where all nodes are cordoned
        for pool in pools:
            add(there, self._capacity[supply].get(pool, {}).items())
        there = {
            resource: amount
            for resource, amount in there.items()
            if amount < self._whole.get((supply, resource), 0)
        }
        if not there:
            return {}
        asked: dict[str, int] = dict(self._asked[way])
        for (other, others), amounts in self._asked.items() if len(inside) > 1 else ():
            if other == supply and others != pools and inside.issuperset(others):
                add(asked, amounts.items())
        for resource in there:
            lost = sum(orphaned.get((*pool, resource), 0) for pool in pools)
            there[resource] = max(0, there[resource] - lost)
        return {resource: amount for resource, amount in there.items() if asked.get(resource, 0) > amount}

    def given(self) -> dict[Kind, float]:
        """What crowded sections have, each counted as a kind of its own."""
        return {
            (name, resource): float(amount)
            for name, (_, there) in self._crowded.items()
            for resource, amount in there.items()
        }

    def measured(self) -> dict[Kind, int]:
        """By what a share of them is measured: as any share, by the whole supply."""
        return {section: self._whole[kind] for section, kind in self.within().items()}

    def within(self) -> dict[Kind, Kind]:
        """What they are sections of."""
        return {
            (name, resource): (supply, resource)
            for name, ((supply, _), there) in self._crowded.items()
            for resource in there
        }

    def around(self, way: Way) -> tuple[str, ...]:
        """The crowded sections in which everything stands that may go there."""
        found = self._around.get(way)
        if found is None:
            found = self._around[way] = tuple(self._found_around(way))
        return found

    def _found_around(self, way: Way) -> Iterator[str]:
        supply, pools = way
        for name, ((other, inside), _) in self._crowded.items():
            if pools and other == supply and set(pools) <= set(inside):
                yield name


def _name(way: Way) -> str:
    """No supply is called so."""
    supply, pools = way
    return f"{supply}({' '.join('/'.join(pool) for pool in pools)})"
