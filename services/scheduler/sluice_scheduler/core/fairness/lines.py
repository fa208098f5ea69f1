"""The lines of waiting claims, one a queue, kept by shape: claims of one shape fit or fail together."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from operator import attrgetter
from typing import TypeAlias

from sluice_scheduler.core.fairness.claims import Claim, Demand, Place, Shape
from sluice_scheduler.core.fairness.heaps import heap_of, most_entries
from sluice_scheduler.core.fairness.hopeless import Hopeless
from sluice_scheduler.core.fairness.rooms import Room

_by_place = attrgetter("place")
#: A shape by the place of its first claim, or of one that was its first before.
_Entry: TypeAlias = tuple[Place, int, Shape]


class Line:
    """One queue's waiting claims.

    Heaps hold each shape by its first claim: `_all` every shape, `_ready` those that may fit, `_hopeful` those that
    could if nobody held anything. An entry may come too early, never too late: whoever meets it puts it right.
    """

    __slots__ = ("_all", "_hopeful", "_hopeless", "_ready", "_rows", "_size", "brief", "parked", "strict")

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict  # nobody passes the first
        #: By shape, in order of place. A claim that left is dropped when it comes up.
        self._rows: dict[Shape, deque[Claim]] = {}
        self._size = 0
        self._all: list[_Entry] = []
        self._ready: list[_Entry] = []
        #: By what they ask for, because who may not have that need not be looked at.
        self._hopeful: dict[Demand, list[_Entry]] = {}
        #: Shapes that were found to fit nowhere whoever leaves, until a bound has grown or `hope` is called.
        self._hopeless = Hopeless()
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
        return self._top(self._ready, self.parked)

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
        return self._top(self._all, ())

    def in_order(self, shapes: Iterable[Shape]) -> Iterator[Claim]:
        """The claims of these shapes by place, whether or not they fit; of a strict line those of all."""
        if self.strict:
            return self._all_in_order()
        firsts = [first for shape in shapes if (first := self.first_of(shape)) is not None]
        if len(firsts) == 1:
            return self.row(firsts[0].shape)
        return heapq.merge(*(self.row(first.shape) for first in firsts), key=_by_place)

    def _all_in_order(self) -> Iterator[Claim]:
        """Every claim by place. A shape costs something once its first claim comes up."""
        rows: list[tuple[Place, int, Claim, Iterator[Claim]]] = []  # of shapes that came up, by who is next
        with closing(self._by_first(self._all)) as firsts:
            coming = next(firsts, None)
            while rows or coming is not None:
                if coming is not None and (not rows or coming.place < rows[0][0]):
                    claim, row = coming, self.row(coming.shape)
                    next(row)
                    coming = next(firsts, None)
                else:
                    _, _, claim, row = heapq.heappop(rows)
                yield claim
                following = next(row, None)
                if following is not None:
                    heapq.heappush(rows, (following.place, claim.shape.number, following, row))

    def hopeful(
        self, asks: Callable[[Demand], bool], lacks: Callable[[Shape], Mapping[Room, int] | None]
    ) -> Generator[Claim, None, None]:
        """The first claim of each shape that asks for this or that and could ever fit, by place. `lacks`: which
        rooms would have to be how large before one could, or None."""
        self.hope(self._hopeless.take_grown())
        with closing(self._asking(asks)) as firsts:
            for first in firsts:
                short = lacks(first.shape)
                if short is None:
                    yield first
                else:
                    self._hopeless.add(first.shape, short)

    def _asking(self, asks: Callable[[Demand], bool]) -> Generator[Claim, None, None]:
        """The first claim of each shape that asks for this or that and is not known to be hopeless, by place."""
        if self.is_uniform:
            for shape in list(self._rows):
                first = self.first_of(shape)
                if first is not None and shape not in self._hopeless and asks(shape.demand):
                    yield first
            return
        heaps = [self._by_first(heap, demand) for demand, heap in list(self._hopeful.items()) if asks(demand)]
        try:
            yield from heaps[0] if len(heaps) == 1 else heapq.merge(*heaps, key=_by_place)
        finally:
            for each in heaps:
                each.close()

    def hope(self, shapes: Iterable[Shape]) -> None:
        """These may go elsewhere now, or under other bounds."""
        for shape in shapes:
            self._hopeless.discard(shape)
            first = self.first_of(shape)
            if first is not None:
                self._enter_hopeful((first.place, shape.number, shape))

    def hope_for_spreads(self) -> None:
        """Bounds are others."""
        self.hope(self._hopeless.take_spreads())

    def hope_anew(self) -> None:
        """There are other rooms."""
        self.hope(self._hopeless.clear())

    def _by_first(self, heap: list[_Entry], demand: Demand | None = None) -> Generator[Claim, None, None]:
        """The first claim of each shape in a heap, by place; what came up is put back in the end. `demand`: shapes that
        ask for something else by now, and hopeless ones, do not belong there any more."""
        met: dict[Shape, _Entry] = {}
        try:
            while (first := self._top(heap, ())) is not None:
                entry, shape = heapq.heappop(heap), first.shape
                if shape in met or (
                    demand is not None and (shape in self._hopeless or shape.demand != demand)
                ):
                    continue
                met[shape] = entry
                yield first
        finally:
            for entry in met.values():
                heapq.heappush(heap, entry)

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
            self._ready = heap_of(self._entries(self.parked))
        if len(self._all) > most:
            self._all = heap_of(self._entries(()))

    def _entries(self, without: Container[Shape]) -> list[_Entry]:
        """Each shape once."""
        firsts = (self.first_of(shape) for shape in list(self._rows) if shape not in without)
        return [(each.place, each.shape.number, each.shape) for each in firsts if each is not None]

    def first_of(self, shape: Shape) -> Claim | None:
        row = self._rows.get(shape)
        while row:
            if row[0].line:
                return row[0]
            row.popleft()
        if self._rows.pop(shape, None) is not None:
            self.parked.pop(shape, None)
            self._hopeless.discard(shape)
        return None

    def _enter(self, claim: Claim) -> None:
        entry = (claim.place, claim.shape.number, claim.shape)
        heapq.heappush(self._all, entry)
        if claim.shape not in self.parked:
            heapq.heappush(self._ready, entry)
        if claim.shape not in self._hopeless:
            self._enter_hopeful(entry)
        self._sweep()

    def _enter_hopeful(self, entry: _Entry) -> None:
        heap = self._hopeful.setdefault(entry[2].demand, [])
        heapq.heappush(heap, entry)
        if len(heap) > most_entries(len(self._rows)):
            self._hopeful = {}
            for each in self._entries(self._hopeless):
                self._enter_hopeful(each)

    def _top(self, heap: list[_Entry], without: Container[Shape]) -> Claim | None:
        while heap:
            place, number, shape = heap[0]
            first = self.first_of(shape) if shape not in without else None
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
