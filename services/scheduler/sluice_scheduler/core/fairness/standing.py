"""Demand that is held: what a pod holds counts as demand for all pools to which it could go.

It would count as that if it had to wait again. So who loses a pod asks for just what it asked for before, and what
everybody deserves stays. If it counted as bound to the pool where it happens to stand, each exchange of pods would
change what is deserved, and two queues could take the same room from each other for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Group, KindOf, Part, PoolKey
from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.reaches import Selected


class Alike:
    """Pods that ask for the same and stand in one pool."""

    __slots__ = ("amounts", "group", "part", "pods", "pool")

    def __init__(self, part: Part, pool: PoolKey, group: Group, amounts: tuple[int, ...]) -> None:
        self.part = part
        self.pool = pool
        self.group = group  # the demand that each counts as
        self.amounts = amounts  # of one, in order of the resources
        self.pods: dict[Branch, int] = {}  # by leaf


class Standing:
    """All that is held by pods of which it is known what they ask for."""

    def __init__(self, forget: Callable[[Selected], None]) -> None:
        """`forget`: called for a selector by which nothing stands any more."""
        self._forget_selector = forget
        self._alike: dict[Part, dict[PoolKey, Alike]] = {}
        self._by_selector: dict[Selected, dict[Part, None]] = {}

    def find(self, part: Part, pool: PoolKey, *, places: Places, kind_of: KindOf) -> Alike:
        """Where pods that ask for this are counted that stand in a pool."""
        alike = self._alike.get(part, {}).get(pool)
        if alike is None:
            alike = alike_in(part, pool, places=places, kind_of=kind_of)
            self._alike.setdefault(part, {})[pool] = alike
            self._by_selector.setdefault(_selected(part), {})[part] = None
        return alike

    def count(self, alike: Alike, leaf: Branch, pods: int) -> None:
        """So many pods more, or less."""
        left = alike.pods.get(leaf, 0) + pods
        if left:
            alike.pods[leaf] = left
            return
        del alike.pods[leaf]
        if not alike.pods:
            self._forget(alike)

    def _forget(self, alike: Alike) -> None:
        part = alike.part
        del self._alike[part][alike.pool]
        if not self._alike[part]:
            del self._alike[part]
            parts = self._by_selector[_selected(part)]
            del parts[part]
            if not parts:
                del self._by_selector[_selected(part)]
                self._forget_selector(_selected(part))

    def known(self, part: Part, pool: PoolKey) -> Alike | None:
        return self._alike.get(part, {}).get(pool)

    def asks_by(self, selected: Selected) -> bool:
        """Whether anything stands somewhere by such a selector."""
        return selected in self._by_selector

    def leave(self, leaves: Iterable[Branch]) -> None:
        """These queues are gone."""
        gone = list(leaves)
        rows = list(self._alike.values()) if gone else []
        for alike in [each for row in rows for each in row.values()]:
            for leaf in gone:
                if leaf in alike.pods:
                    self.count(alike, leaf, -alike.pods[leaf])

    def regroup(
        self, selectors: Iterable[Selected] | None, *, places: Places, kind_of: KindOf
    ) -> Iterator[tuple[Alike, Group]]:
        """Nodes have changed (None: pools have), so some could go elsewhere now: who, and what that counted as."""
        parts = list(self._alike)
        if selectors is not None:
            parts = [part for each in selectors for part in self._by_selector.get(each, ())]
        for part in parts:
            for alike in self._alike[part].values():
                before = alike.group
                alike.group = alike_in(part, alike.pool, places=places, kind_of=kind_of).group
                if alike.group != before:
                    yield alike, before


def alike_in(part: Part, pool: PoolKey, *, places: Places, kind_of: KindOf) -> Alike:
    """Where pods stand they may stand, whatever became of the pool since; and of all supplies that is the one that
    they prefer now."""
    asked = [(resource, amount) for resource, amount in part.requests if amount]
    names = places.pools_holding(part.cluster, part.node_selector, part.requests)
    keys = [(part.cluster, name) for name in names]
    if pool not in keys:
        keys = [pool]
    open_in, own = kind_of.by_supply(keys), kind_of.supply(pool)
    ways = tuple([(each, open_in[each]) for each in sorted(open_in, key=lambda each: (each != own, each))])
    group = (ways, tuple([resource for resource, _ in asked]))
    return Alike(part, pool, group, tuple([amount for _, amount in asked]))


def _selected(part: Part) -> Selected:
    return part.cluster, part.node_selector
