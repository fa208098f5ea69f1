"""How large nodes are: of thousands that all differ by a little, the few that decide what fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeAlias

from sluice.values import Resources

#: Amounts by resource, in order of name: what a node can allocate, or what a pod asks for.
Size: TypeAlias = tuple[tuple[str, int], ...]


class Sizes:
    """How many nodes there are of each size. The *front* are those sizes that no other one holds: what fits any
    node fits one of these."""

    __slots__ = ("_counts", "_front")

    def __init__(self) -> None:
        self._counts: Counter[Size] = Counter()
        self._front: dict[Size, Resources] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, size: Size, count: int = 1) -> bool:
        """Whether something may fit now that did not before."""
        self._counts[size] += count
        return self._counts[size] == count and self._enter(size)

    def remove(self, size: Size) -> bool:
        """Whether something may fit no more."""
        self._counts[size] -= 1
        if self._counts[size]:
            return False
        del self._counts[size]
        there = self._front.pop(size, None)
        if there is None:
            return False
        for each in self._counts:
            if _holds(there, each):
                self._enter(each)
        return True

    def _enter(self, size: Size) -> bool:
        if self.hold(size):
            return False
        there = dict(size)
        self._front = {each: other for each, other in self._front.items() if not _holds(there, each)}
        self._front[size] = there
        return True

    def hold(self, requests: Size) -> bool:
        """Whether one node is large enough."""
        return any(_holds(there, requests) for there in self._front.values())

    def largest(self, resource: str) -> int:
        return max((there.get(resource, 0) for there in self._front.values()), default=0)


def size_of(amounts: Resources) -> Size:
    return tuple(sorted(amounts.items()))


def _holds(there: Resources, requests: Iterable[tuple[str, int]]) -> bool:
    return all(there.get(resource, 0) >= amount for resource, amount in requests)
