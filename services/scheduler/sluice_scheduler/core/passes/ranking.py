"""The order in which branches may have to give: the furthest above what they deserve first."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Generator, Iterable
from typing import TypeAlias

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim, Kind
from sluice_scheduler.core.passes.paper import Paper

#: How far above, its share, who was there last, and who that is.
_Standing: TypeAlias = tuple[int, int, tuple[int, str], int, Branch]
#: Whether any may give something whose share is no larger than that, and that have more than they deserve of no more
#: than these.
MayGive: TypeAlias = Callable[[int, Collection[Kind]], bool]


class _Listed:
    """A branch's children that hold something of a kind. Those that had no more than they deserve when they were listed
    are the rest: of these it is known together how much they have at most, so that a search in vain need not ask
    each of them."""

    def __init__(self, children: Collection[Branch], kind: Kind, paper: Paper) -> None:
        self.heap = [_standing(child, kind, paper) for child in children]
        self.above: dict[Branch, None] = {}
        self.share = 0  # of nobody in the rest is it larger
        self.kinds: dict[Kind, None] = {}  # of no others anybody in the rest has too much
        heapq.heapify(self.heap)
        now = paper.before()
        for child in children:
            if now.apart(child, kind) > 0:
                self.above[child] = None
            else:
                self.count(child, now)

    def count(self, child: Branch, paper: Paper) -> None:
        """What a child has that may be one of the rest."""
        if child in self.above:
            return
        self.share = max(self.share, paper.share(child))
        self.kinds.update((kind, None) for kind in child.held if paper.is_above(child, (kind,)))


class Ranking:
    """The children of each branch by how far they are above what they deserve of a kind, kept while one pass
    takes back. Who holds nothing of what is asked for is not among them, nor who is closed to all."""

    def __init__(self, is_closed: Callable[[Branch], bool] = lambda _: False) -> None:
        self._is_closed = is_closed
        self._lists: dict[Branch, dict[tuple[Kind, tuple[Dim, ...]], _Listed]] = {}

    def in_order(
        self,
        branch: Branch,
        kind: Kind,
        dims: tuple[Dim, ...],
        *,
        paper: Paper,
        own: Branch | None,
        rest_may_give: MayGive,
    ) -> Generator[Branch, None, None]:
        """The furthest above first. `own`: the claimant's leaf, to which what is above it is not closed."""
        listed = self._listed(branch, kind, dims, paper)
        heap, left = listed.heap, len(listed.above)
        mine = next((above for above in own.path if above.parent is branch), None) if own else None
        if mine is not None and self._is_closed(mine):
            heapq.heappush(heap, _standing(mine, kind, paper))
        seen: dict[Branch, _Standing] = {}
        try:
            # An entry may stand too high; it is put right when it comes up.
            while heap:
                if not left and not rest_may_give(listed.share, listed.kinds):
                    if mine is not None and mine not in seen:
                        yield mine
                    return
                entry = heapq.heappop(heap)
                child = entry[4]
                now = _standing(child, kind, paper)
                if now[:2] > entry[:2]:
                    heapq.heappush(heap, now)
                elif child not in seen:
                    seen[child] = now
                    left -= child in listed.above
                    yield child
        finally:
            for entry in seen.values():
                heapq.heappush(heap, entry)

    def anybody_above(self, branch: Branch, kind: Kind, dims: tuple[Dim, ...], paper: Paper) -> bool:
        """Whether a child that holds something of these has more than it deserves of anything."""
        listed = self._listed(branch, kind, dims, paper)
        return bool(listed.above or listed.kinds)

    def _listed(self, branch: Branch, kind: Kind, dims: tuple[Dim, ...], paper: Paper) -> _Listed:
        lists = self._lists.setdefault(branch, {})
        listed = lists.get((kind, dims))
        if listed is None:
            holders = (child for child in branch.children if any(dim in child.usage for dim in dims))
            children = [child for child in holders if not self._is_closed(child)]
            listed = lists[(kind, dims)] = _Listed(children, kind, paper)
        return listed

    def lift(self, branches: Iterable[Branch], paper: Paper) -> None:
        """These stand higher now than they are listed."""
        for branch in branches:
            lists = self._lists.get(branch.parent, {}) if branch.parent is not None else {}
            for (kind, _), listed in lists.items():
                heapq.heappush(listed.heap, _standing(branch, kind, paper))
                listed.count(branch, paper)


def _standing(child: Branch, kind: Kind, paper: Paper) -> _Standing:
    """Of equals who has most goes first: none of them is above what it deserves by what a rounding leaves."""
    newest_first = (-child.order[0], child.order[1])
    return (
        -paper.apart(child, kind),
        -paper.share(child),
        newest_first,
        0 if child.is_implicit else 1,
        child,
    )
