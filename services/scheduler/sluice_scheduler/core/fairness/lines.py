"""The lines of waiting claims, one a queue, kept by shape: claims of one shape fit or fail together."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

from sluice_scheduler.core.fairness.claims import Claim, Place, Shape
from sluice_scheduler.core.fairness.heaps import heap_of, most_entries

_by_place = attrgetter("place")
#: A shape by the place of its first claim, or of one that was its first before.
_Entry: TypeAlias = tuple[Place, int, Shape]


class Line:
    """One queue's waiting claims.

    Two heaps hold each shape by its first claim: `_all` every shape, `_ready` those that may fit. An entry
    may come too early, never too late: whoever meets it puts it right.
    """

    __slots__ = ("_all", "_ready", "_rows", "_size", "brief", "parked", "strict")

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict  # nobody passes the first
        #: By shape, in order of place. A claim that left is dropped when it comes up.
        self._rows: dict[Shape, deque[Claim]] = {}
        self._size = 0
        self._all: list[_Entry] = []
        self._ready: list[_Entry] = []
        #: Shapes that do not fit. When one may fit again, `unpark` is called.
        self.parked: dict[Shape, None] = {}
        #: Claims that say when they end, in order of place.
        self.brief: list[Claim] = []

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Claim]:
        """Every claim, in no order."""
        return (claim for row in self._rows.values() for claim in row if claim.line)

    @property
    def shapes(self) -> list[Shape]:
        return [shape for shape in list(self._rows) if self.first_of(shape) is not None]

    def join(self, claim: Claim) -> bool:
        """Whether the claim is the first of its shape."""
        self._size += 1
        shape = claim.shape
        if claim.ends_in_ms:
            insort(self.brief, claim, key=_by_place)
        row = self._rows.get(shape)
        if row is None:
            self._rows[shape] = deque((claim,))
            self._enter(claim)
            return True
        if row[-1].place <= claim.place:
            row.append(claim)
        else:
            if claim.place < row[0].place:
                self._enter(claim)
            insort(row, claim, key=_by_place)
        return False

    def leave(self, claim: Claim) -> bool:
        """Whether it was the last of its shape."""
        self._size -= 1
        if claim.ends_in_ms:
            del self.brief[bisect_left(self.brief, claim.place, key=_by_place)]
        claim.line = ""
        row = self._rows[claim.shape]
        return row[0] is claim and self.first_of(claim.shape) is None

    def head(self) -> Claim | None:
        """The claim to be tried next: in a strict line the first, otherwise the first of what may fit."""
        if self.strict:
            first = self.first()
            return None if first is None or first.shape in self.parked else first
        return self._top(self._ready, parked=False)

    def ready(self) -> list[Claim]:
        """The first claim of each shape that may fit; of a strict line the first."""
        if self.strict:
            head = self.head()
            return [] if head is None else [head]
        firsts = (self.first_of(shape) for shape in list(self._rows) if shape not in self.parked)
        return [first for first in firsts if first is not None]

    @property
    def is_uniform(self) -> bool:
        """Whether all claims are of one shape."""
        return len(self._rows) < 2

    @property
    def variety(self) -> int:
        """How many shapes there are."""
        return len(self._rows)

    def first(self) -> Claim | None:
        """The first of all, whether or not it fits."""
        return self._top(self._all, parked=True)

    def in_order(self, shapes: Iterable[Shape]) -> Iterator[Claim]:
        """The claims of these shapes by place, whether or not they fit; of a strict line those of all."""
        asked = list(self._rows) if self.strict else shapes
        firsts = [first for shape in asked if (first := self.first_of(shape)) is not None]
        if len(firsts) == 1:
            return self.row(firsts[0].shape)
        return heapq.merge(*(self.row(first.shape) for first in firsts), key=_by_place)

    def firsts(self, most: int) -> list[Claim]:
        """The first claim of each shape, by place; at most so many, and in a strict line the first of all."""
        if self.strict:
            first = self.first()
            return [] if first is None else [first]
        firsts = [first for shape in list(self._rows) if (first := self.first_of(shape)) is not None]
        return heapq.nsmallest(most, firsts, key=_by_place) if len(firsts) > 1 else firsts

    def counts(self) -> dict[Shape, int]:
        """How many claims of each shape wait."""
        return {shape: sum(1 for _ in self.row(shape)) for shape in list(self._rows)}

    def row(self, shape: Shape) -> Iterator[Claim]:
        """The claims of one shape, by place."""
        return (claim for claim in self._rows.get(shape, ()) if claim.line)

    def park(self, shape: Shape) -> None:
        self.parked[shape] = None

    def unpark(self, shape: Shape) -> None:
        if shape in self.parked:
            del self.parked[shape]
            first = self.first_of(shape)
            if first is not None:
                heapq.heappush(self._ready, (first.place, shape.number, shape))
        self._sweep()

    def _sweep(self) -> None:
        most = most_entries(len(self._rows))
        if len(self._ready) > most:
            self._ready = heap_of(self._entries(parked=False))
        if len(self._all) > most:
            self._all = heap_of(self._entries(parked=True))

    def _entries(self, *, parked: bool) -> list[_Entry]:
        """Each shape once."""
        firsts = (self.first_of(shape) for shape in list(self._rows) if parked or shape not in self.parked)
        return [(each.place, each.shape.number, each.shape) for each in firsts if each is not None]

    def first_of(self, shape: Shape) -> Claim | None:
        row = self._rows.get(shape)
        while row:
            if row[0].line:
                return row[0]
            row.popleft()
        if self._rows.pop(shape, None) is not None:
            self.parked.pop(shape, None)
        return None

    def _enter(self, claim: Claim) -> None:
        entry = (claim.place, claim.shape.number, claim.shape)
        heapq.heappush(self._all, entry)
        if claim.shape not in self.parked:
            heapq.heappush(self._ready, entry)
        self._sweep()

    def _top(self, heap: list[_Entry], *, parked: bool) -> Claim | None:
        while heap:
            place, number, shape = heap[0]
            first = self.first_of(shape) if parked or shape not in self.parked else None
            if first is None:
                heapq.heappop(heap)
            elif first.place == place:
                return first
            else:
                entry = (first.place, number, shape)
                heapq.heapreplace(heap, entry)
                if heap[0] is entry:
                    return first
        return None
