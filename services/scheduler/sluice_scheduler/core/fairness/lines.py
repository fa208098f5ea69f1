"""The lines of waiting claims, one a queue, kept by shape: claims of one shape fit or fail together."""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Callable, Iterator
from operator import attrgetter

from sluice_scheduler.core.fairness.claims import Claim, Option, Shape

_by_place = attrgetter("place")


class Line:
    """One queue's waiting claims."""

    __slots__ = ("_rows", "_size", "strict")

    def __init__(self, *, strict: bool) -> None:
        self.strict = strict  # nobody passes the first
        #: By shape, in order of place: most come last and leave first. Who left is dropped when he comes up.
        self._rows: dict[Shape, deque[Claim]] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Claim]:
        """Every claim, in no order."""
        return (claim for row in self._rows.values() for claim in row if claim.line)

    @property
    def shapes(self) -> list[Shape]:
        return [shape for shape in list(self._rows) if self._first(shape) is not None]

    def join(self, claim: Claim) -> bool:
        """Whether the claim is the first of its shape."""
        self._size += 1
        row = self._rows.get(claim.shape)
        if row is None:
            self._rows[claim.shape] = deque((claim,))
            return True
        if row[-1].place <= claim.place:
            row.append(claim)
        else:
            insort(row, claim, key=_by_place)
        return False

    def leave(self, claim: Claim) -> bool:
        """Whether it was the last of its shape."""
        self._size -= 1
        claim.line = ""
        return self._first(claim.shape) is None

    def firsts(self, skip: Callable[[Claim], bool] | None = None) -> list[Claim]:
        """Who may be tried, in order: in a strict line the first of all, otherwise the first of each shape.

        `skip` passes over those that may not be tried; nobody passes them in a strict line.
        """
        firsts = [first for shape in list(self._rows) if (first := self._first(shape)) is not None]
        firsts.sort(key=_by_place)
        claims = firsts[:1] if self.strict else firsts
        if skip is None:
            return claims
        if self.strict:
            return [claim for claim in claims if not skip(claim)]
        rows = (self._rows[claim.shape] for claim in claims)
        found = [next((claim for claim in row if claim.line and not skip(claim)), None) for row in rows]
        return [claim for claim in found if claim is not None]

    def head(self, find: Callable[[Shape], Option | None]) -> tuple[Claim | None, Option | None]:
        """The first claim that may be tried and for which `find` finds a place, and that place."""
        if len(self._rows) == 1:  # the usual case, and the one that has to be fast
            (shape,) = self._rows
            first = self._first(shape)
            option = find(shape) if first is not None else None
            return (first, option) if option is not None else (None, None)
        for claim in self.firsts():
            option = find(claim.shape)
            if option is not None:
                return claim, option
        return None, None

    def _first(self, shape: Shape) -> Claim | None:
        row = self._rows.get(shape)
        while row:
            if row[0].line:
                return row[0]
            row.popleft()
        self._rows.pop(shape, None)
        return None
