"""Who may push others out, in the order in which they would be served."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from contextlib import closing
from functools import partial
from itertools import islice
from typing import Any, Final

from sluice_scheduler.core.fairness.branch import COVERED, Branch
from sluice_scheduler.core.fairness.claims import Claim, Demand, Kind, KindCost, Shape, Spot
from sluice_scheduler.core.fairness.shares import slack
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.core.state.state import State

NEVER_MS: Final = 1 << 62
#: So many of a queue's first shapes are tried in each round, and so many that could ever fit are looked at for them.
_SHAPES_MAX: Final = 8
_LOOKS_MAX: Final = 32
#: So many of the shapes behind these are tried in a round: others in the next. So many take part in that.
_OTHERS_MAX: Final = 4
_ALL_MAX: Final = 512


class Ripens:
    """The first time at which a claim has waited, or a victim has run, for as long as it must."""

    def __init__(self, now_ms: int) -> None:
        self._now_ms = now_ms
        self.first_ms = NEVER_MS

    def has(self, time_ms: int) -> bool:
        """Whether that time has come; if not, it is noted."""
        if time_ms <= self._now_ms:
            return True
        self.first_ms = min(self.first_ms, time_ms)
        return False


def is_barred(state: State, claim: Claim) -> bool:
    """Whether a claim's workload lost pods, and nothing has changed since that lets it push others out."""
    workload = workload_of(state, claim.key)
    if workload is None or workload.barred < state.cell.grounds:
        return False
    if state.coarse_now_ms - workload.barred_ms >= state.config.tenure_ms:
        return False  # who takes turns waits for no more than a tenure
    leaf = state.forest.leaves[claim.line]
    return not any(leaf.covering(spot.cost) for spot in state.forest.spots_of(claim.shape))


class Claimants:
    """The queues whose claims may push others out, in the order in which they would be served."""

    def __init__(self, state: State, ripens: Ripens) -> None:
        self._state = state
        self._ripens = ripens
        self._forest = state.forest
        self._heap: list[tuple[tuple[Any, ...], Branch, list[Claim]]] = []
        #: The two largest shares among each branch's children: nobody's rises above them while a pass takes back.
        self._richest: dict[Branch, list[tuple[int, Branch]]] = {}
        #: The children of each branch that had more than they deserve of a kind, when the pass began.
        self._above: dict[tuple[Branch, Kind], dict[Branch, None]] = {}
        self._apart: dict[Shape, list[Spot]] = {}
        #: Whether some of the claims are tried in other rounds only.
        self.leave_out = False
        self._paper = Paper(state.forest)
        for leaf in self._forest.leaves.values():
            self.again(leaf)

    def next(self) -> tuple[Branch, list[Claim]] | None:
        if not self._heap:
            return None
        _, leaf, claims = heapq.heappop(self._heap)
        return leaf, claims

    def again(self, leaf: Branch) -> int:
        """Let a queue stand there with its claims as they are now; how many were looked at."""
        if not len(leaf.line) or leaf.parent is None:
            return 0
        looks, claims = self._tried(leaf)
        if claims:
            heapq.heappush(self._heap, (self._rank(leaf, claims[0]), leaf, claims))
        return looks

    def _tried(self, leaf: Branch) -> tuple[int, list[Claim]]:
        """The first claims that may push others out, one of each shape, and how many were looked at."""
        with closing(self._forest.firsts(leaf, partial(self._may_ask, leaf))) as firsts:
            looks, found = self._pushers(leaf, islice(firsts, _LOOKS_MAX), _SHAPES_MAX)
            behind = min(leaf.line.variety, _ALL_MAX) - looks
            if behind <= 0 or not (found or looks == _LOOKS_MAX):
                return looks, found
            self.leave_out = True
            windows = -(-behind // _OTHERS_MAX)
            skipped = self._state.cell.rounds % windows * _OTHERS_MAX
            others = islice(firsts, skipped, skipped + _OTHERS_MAX)
            return looks + skipped, found + self._pushers(leaf, others, _OTHERS_MAX)[1]

    def _pushers(self, leaf: Branch, firsts: Iterable[Claim], most: int) -> tuple[int, list[Claim]]:
        looks, found = 0, []
        for first in firsts:
            looks += 1
            claim = self._first_unbarred(leaf, first)
            if claim is not None and self._may_push(leaf, claim):
                found.append(claim)
                if len(found) == most:
                    break
        return looks, found

    def _may_ask(self, leaf: Branch, demand: Demand) -> bool:
        """Whether a queue's claim might push others out, judged by what it asks for. In a line of one shape the claim
        itself is looked at, which costs no more."""
        supplies, resources, apart = demand
        if apart or leaf.line.is_uniform or any(branch.guarantees for branch in leaf.path) or _preempts(leaf):
            return True
        kinds = (tuple(((supply, resource), 0) for resource in resources) for supply in supplies)
        return any(leaf.is_owed(each, self._forest.whole) for each in kinds)

    def _first_unbarred(self, leaf: Branch, first: Claim) -> Claim | None:
        """The first of its shape that is not barred; nobody passes a barred one in a strict line."""
        row = (first,) if leaf.line.strict else leaf.line.row(first.shape)
        return next((claim for claim in row if not is_barred(self._state, claim)), None)

    def _may_push(self, leaf: Branch, claim: Claim) -> bool:
        state = self._state
        if not claim.shape.placeable:
            return False
        if not self._ripens.has(claim.created_ms + state.config.reclaim_after_ms):
            return False
        if _preempts(leaf):
            return True
        if any(branch.guarantees for branch in leaf.path) and any(
            leaf.covering(spot.cost) for spot in self._forest.spots_of(claim.shape)
        ):
            return True
        return any(self._may_push_for(leaf, spot) for spot in self._spots_apart(claim.shape))

    def _spots_apart(self, shape: Shape) -> list[Spot]:
        """Of the spots that shares do not tell apart only the first, for a shape that many wait with."""
        spots = self._apart.get(shape)
        if spots is None:
            by_kinds: dict[KindCost, Spot] = {}
            for spot in self._forest.spots_of(shape):
                by_kinds.setdefault(spot.kinds, spot)
            spots = self._apart[shape] = list(by_kinds.values())
        return spots

    def _may_push_for(self, leaf: Branch, spot: Spot) -> bool:
        if not leaf.is_owed(spot.kinds, self._forest.whole):
            return False
        return any(self._may_gain(branch, spot) for branch in leaf.path[:-1])

    def _may_gain(self, branch: Branch, spot: Spot) -> bool:
        """Whether some sibling has more than the branch would have, or more than it deserves."""
        assert branch.parent is not None
        if not any(scope.policy.reclaims for scope in branch.parent.path):
            return False
        richest = self._richest.get(branch.parent)
        if richest is None:
            top = heapq.nlargest(2, branch.parent.children, key=lambda child: child.share)
            richest = self._richest[branch.parent] = [(child.share, child) for child in top]
        others = max((share for share, child in richest if child is not branch), default=0)
        if branch.share_with(spot.kinds, self._forest.whole) < others:
            return True
        return branch.deserves(spot.kinds) and self._anybody_above(branch, spot)

    def _anybody_above(self, branch: Branch, spot: Spot) -> bool:
        assert branch.parent is not None
        for kind, _ in spot.kinds:
            above = self._above.get((branch.parent, kind))
            if above is None:
                least = slack(self._forest.whole.get(kind, 0))
                children = branch.parent.children
                above = {child: None for child in children if self._paper.surplus(child, kind) > least}
                self._above[(branch.parent, kind)] = above
            if len(above) > (branch in above):
                return True
        return False

    def _rank(self, leaf: Branch, claim: Claim) -> tuple[Any, ...]:
        spot = self._spots_apart(claim.shape)[0]
        at = self._forest.class_of(leaf, spot.kinds, spot.cost)
        along = tuple((branch.rank(claim, COVERED)[1], branch.order) for branch in reversed(leaf.path[:-1]))
        return (at, along, claim.place)


def _preempts(leaf: Branch) -> bool:
    """Whether a queue lets its claims push out pods of lower priority in it."""
    return leaf.queue is not None and leaf.queue.facts.preemption != "never"
