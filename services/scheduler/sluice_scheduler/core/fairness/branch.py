"""A branch: one queue's moving part. What it holds, its share, who of its claims is next.

An inner queue's own pods form an implicit leaf under it. The root above all queues holds the pools'
capacities as its limits.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Option
from sluice_scheduler.core.fairness.lines import Line
from sluice_scheduler.core.fairness.rooms import Bound, Fit, Room
from sluice_scheduler.core.fairness.shares import (
    Vector,
    direction,
    dominant,
    inner_vector,
    leaf_vector,
    rounded,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sluice_scheduler.core.fairness.policies import Policy
    from sluice_scheduler.core.fairness.tree import QueueNode

#: Whether no guarantee covers what is asked for, then what the policy says.
Rank = tuple[bool, Any]
#: A branch's turn among its siblings: by rank, then who was there first. The lowest is served next. It is
#: flat because the heaps compare little else.
Turn = tuple[bool, Any, tuple[int, str], "Branch"]
#: A blocked leaf by its share if it got the least of what it asks for.
Hope = tuple[int, tuple[int, str], "Branch"]


class Branch:
    """`usage` is what the branch holds once all that was decided has happened: evicted pods are out of it,
    promised claims are in. `leaving` is the difference to what is held now."""

    __slots__ = (
        "_fixed",
        "_minima",
        "_scaled",
        "blocked",
        "bounded",
        "children",
        "covered",
        "fine",
        "fits",
        "guarantees",
        "head",
        "hope",
        "hope_is_known",
        "hopes",
        "is_implicit",
        "is_leaf",
        "leaving",
        "line",
        "name",
        "option",
        "order",
        "parent",
        "past_share",
        "path",
        "policy",
        "queue",
        "rooms",
        "rooms_of",
        "share",
        "told",
        "turn",
        "turns",
        "usage",
        "vector",
        "weight",
    )

    def __init__(
        self, queue: QueueNode | None, parent: Branch | None, *, is_leaf: bool, policy: Policy
    ) -> None:
        self.queue = queue
        self.name = queue.name if queue else ""
        self.parent = parent
        self.path: tuple[Branch, ...] = (self, *parent.path) if parent else (self,)
        self.children: list[Branch] = []
        self.is_leaf = is_leaf
        #: Whether this is the leaf of an inner queue's own pods.
        self.is_implicit = parent is not None and parent.queue is queue
        self.weight = queue.facts.weight if queue and not self.is_implicit else 1
        self.order = (queue.facts.created_ms, queue.name) if queue else (0, "")
        self.policy = policy
        self.line = Line(strict=queue is not None and queue.facts.ordering == "strictFifo")

        self.usage: dict[Dim, int] = {}
        self.leaving: dict[Dim, int] = {}
        self.past_share = 0  # of decayed usage, for policies that look back
        self.rooms: list[Room] = []
        self.rooms_of: dict[Dim, list[Room]] = {}
        self.fits: dict[Option, Fit] = {}
        self.guarantees: list[Bound] = []
        self.bounded: list[Branch] = []  # of the path, those with rooms

        self.vector: Vector = {}
        self.fine = 0
        self.share = 0
        self.blocked = True
        self._scaled: Vector = {}  # sum of the non-blocked children's directions
        self._fixed: Vector = {}  # sum of the blocked children's vectors
        self._minima: list[tuple[int, tuple[int, str], Branch]] = []
        self.told: tuple[bool, int, Vector] | None = None  # what the parent has added up of this one

        self.head: Claim | None = None  # who is served when it is this branch's turn
        self.option: Option | None = None
        self.covered = False  # by a guarantee, here or below
        #: Of a leaf with a line: its share if it got the least of what it asks for.
        self.hope: int | None = None
        self.hope_is_known = False
        #: Of leaves that are blocked; only their latest hopes count.
        self.hopes: list[Hope] = []
        self.turn: Turn | None = None  # the one that counts, of all that stand in the parent's heap
        self.turns: list[Turn] = []

    def add(self, amounts: dict[Dim, int], cost: Cost, sign: int, concerned: dict[Room, None]) -> None:
        """Change `usage` or `leaving`; the rooms that this concerns are noted."""
        rooms_of = self.rooms_of
        for dim, amount in cost:
            total = amounts.get(dim, 0) + sign * amount
            if total:
                amounts[dim] = total
            else:
                del amounts[dim]
            for room in rooms_of.get(dim, ()):
                concerned[room] = None

    # ---- shares

    def measure(self, capacity: Mapping[Dim, int], saturated: Collection[Dim]) -> None:
        """Compute the share anew from the usage, or from what the children have told."""
        if self.is_leaf:
            self.vector = leaf_vector(self.usage, capacity)
            self.fine = dominant(self.vector, self.weight)
        else:
            self.vector = inner_vector(self._smallest(), self._scaled, self._fixed)
            self.fine = dominant(self.vector, self.weight, saturated)
        self.share = rounded(self.fine)

    def tell(self, root: Branch) -> None:
        """Let the parent add this branch up as it is now, in the place of what it was. Nobody asks for the
        root's share."""
        parent = self.parent
        if parent is None or parent is root:
            return
        parts = self.vector if self.blocked else direction(self.vector, self.fine)
        if self.told is not None:
            was_blocked, _, before = self.told
            add(parent._fixed if was_blocked else parent._scaled, before.items(), -1)
        self.told = (self.blocked, self.fine, parts)
        add(parent._fixed if self.blocked else parent._scaled, parts.items())
        if not self.blocked:
            heapq.heappush(parent._minima, (self.fine, self.order, self))

    def _smallest(self) -> int:
        """The smallest share among the non-blocked children."""
        while self._minima:
            fine, _, child = self._minima[0]
            if child.told is not None and child.told[:2] == (False, fine):
                return fine
            heapq.heappop(self._minima)
        return 0

    # ---- turns

    def take_turn(self) -> None:
        """Stand among the siblings as the policy ranks this branch's head; without one, stand back."""
        parent = self.parent
        if parent is None:
            return
        if self.head is None:
            self.turn = None
            return
        turn = (*self.rank(self.head), self.order, self)
        if self.turn == turn:
            return
        if parent.turns and parent.turns[0] is self.turn:  # it has just been served
            heapq.heapreplace(parent.turns, turn)
        else:
            heapq.heappush(parent.turns, turn)
        self.turn = turn

    def rank(self, claim: Claim) -> Rank:
        """Where the branch stands with this claim: what a guarantee covers goes before all that the parent's
        policy may say."""
        assert self.parent is not None
        return (not self.covered, self.parent.policy.rank(self, claim))

    def first(self) -> Branch | None:
        """The child whose turn it is."""
        turns = self.turns
        while turns:
            child = turns[0][3]
            if child.turn is turns[0]:
                return child
            heapq.heappop(turns)
        return None

    # ---- guarantees

    def is_covered(self, cost: Cost) -> bool:
        """Whether the branch would be within its guarantee in every resource that `cost` names."""
        if not self.guarantees:
            return False
        covered: set[Dim] = set()
        for bound in self.guarantees:
            part = bound.part(cost)
            if part and part + self.used(bound) <= bound.amount:
                covered.update(bound.dims)
            elif part:
                return False
        return all(dim in covered for dim, _ in cost if dim[2] != "pods")  # of which no author thinks

    def used(self, bound: Bound) -> int:
        if len(bound.dims) == 1:
            return self.usage.get(bound.dims[0], 0)
        return sum(self.usage.get(dim, 0) for dim in bound.dims)
