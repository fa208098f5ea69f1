"""The lines of waiting claims, one a queue, kept by shape: claims of one shape fit or fail together."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from sluice_scheduler.core.claims import Claim, Option, Place, Shape


class Line:
    """One queue's waiting claims."""

    __slots__ = ("_heaps", "_joined", "_size", "strict")

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict  # nobody passes the first
        #: The number of joining keeps apart a claim and itself, back before its old entry was dropped.
        self._heaps: dict[Shape, list[tuple[Place, int, Claim]]] = {}
        self._joined = 0
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Claim]:
        """Every claim, in no order."""
        return (claim for heap in self._heaps.values() for *_, claim in heap if claim.line)

    @property
    def shapes(self) -> list[Shape]:
        return [shape for shape in list(self._heaps) if self._top(shape) is not None]

    def join(self, claim: Claim) -> bool:
        """Whether the claim is the first of its shape."""
        self._size += 1
        self._joined += 1
        entry = (claim.place, self._joined, claim)
        heap = self._heaps.get(claim.shape)
        if heap is None:
            self._heaps[claim.shape] = [entry]
            return True
        heapq.heappush(heap, entry)
        return False

    def leave(self, claim: Claim) -> bool:
        """Whether it was the last of its shape. Its entry in the heap is dropped when it comes up."""
        self._size -= 1
        claim.line = ""
        return self._top(claim.shape) is None

    def firsts(self, skip: Callable[[Claim], bool] | None = None) -> list[Claim]:
        """Who may be tried, in order: in a strict line the first of all, otherwise the first of each shape.

        `skip` passes over those that may not be tried; nobody passes them in a strict line.
        """
        tops = sorted(top for shape in list(self._heaps) if (top := self._top(shape)) is not None)
        claims = [claim for *_, claim in (tops[:1] if self.strict else tops)]
        if skip is None:
            return claims
        if self.strict:
            return [claim for claim in claims if not skip(claim)]
        found = [next((c for c in self._in_order(claim) if not skip(c)), None) for claim in claims]
        return [claim for claim in found if claim is not None]

    def _in_order(self, first: Claim) -> Iterator[Claim]:
        yield first
        yield from (
            claim for *_, claim in sorted(self._heaps[first.shape]) if claim.line and claim is not first
        )

    def head(self, find: Callable[[Shape], Option | None]) -> tuple[Claim | None, Option | None]:
        """The first claim that may be tried and for which `find` finds a place, and that place."""
        if len(self._heaps) == 1:  # the usual case, and the one that has to be fast
            (shape,) = self._heaps
            top = self._top(shape)
            option = find(shape) if top is not None else None
            return (top[2], option) if top is not None and option is not None else (None, None)
        for claim in self.firsts():
            option = find(claim.shape)
            if option is not None:
                return claim, option
        return None, None

    def _top(self, shape: Shape) -> tuple[Place, int, Claim] | None:
        heap = self._heaps.get(shape)
        while heap:
            if heap[0][2].line:
                return heap[0]
            heapq.heappop(heap)
        self._heaps.pop(shape, None)
        return None
