"""A branch: one queue's moving part. What it holds, its share, what it deserves, who of its claims is next.

An inner queue's own pods form an implicit leaf under it. The root above all queues holds the pools'
capacities as its limits.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Claim, Cost, Dim, Group, Kind, KindCost, kind_name
from sluice_scheduler.core.fairness.heaps import heap_of, most_entries
from sluice_scheduler.core.fairness.lines import Line
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.shares import (
    FRACTION_BITS,
    as_percent,
    dominant_share,
    part_of_kind,
    slack,
)

if TYPE_CHECKING:
    from sluice_scheduler.core.fairness.policies import Policy
    from sluice_scheduler.core.fairness.tree import QueueNode

#: In which class a claim is served: a guarantee covers it, its branches deserve it, or neither.
COVERED: Final = 0
DESERVED: Final = 1
BEYOND: Final = 2
#: Class, what the policy says, who was there first. The lowest is served next. Heaps compare little else.
Turn: TypeAlias = tuple[int, Any, tuple[int, str], "Branch"]


class Branch:
    """`usage` is what the branch holds once all that was decided has happened: evicted pods are out of it,
    promised claims are in. `leaving` is the difference to what is held now. `held` is `usage` by kind."""

    __slots__ = (
        "allowed",
        "bounded",
        "children",
        "deserved",
        "floor",
        "guarantees",
        "head",
        "held",
        "held_back",
        "is_implicit",
        "is_leaf",
        "least",
        "leaving",
        "limit",
        "line",
        "name",
        "order",
        "out_of_reach",
        "parent",
        "past_share",
        "path",
        "policy",
        "queue",
        "rooms",
        "rooms_of",
        "share",
        "turn",
        "turns",
        "usage",
        "wants",
        "weight",
    )

    def __init__(
        self, queue: QueueNode | None, parent: Branch | None, *, is_leaf: bool, policy: Policy
    ) -> None:
        self.line = Line(strict=False)
        self.children: list[Branch] = []
        self.is_leaf = is_leaf
        self.stand(queue, parent, policy=policy)

        self.usage: dict[Dim, int] = {}
        self.leaving: dict[Dim, int] = {}
        self.held: dict[Kind, int] = {}
        self.wants: dict[Group, list[int]] = {}  # of a leaf: what it holds and what it waits for
        self.out_of_reach: dict[object, None] = {}  # shapes that its limits never let in: they are no demand
        self.held_back: dict[
            object, list[HeldBack]
        ] = {}  # of a leaf: by shape, where a limit on its path keeps it out
        self.bounded: list[Branch] = []  # of the path below the root, those with rooms

        self.share = 0
        self.deserved: dict[Kind, int] = {}  # in parts of a unit (`FRACTION_BITS`)
        self.allowed: dict[Kind, int] = {}  # the same in whole amounts, with what a rounding leaves
        self.head: Claim | None = None  # who is tried when it is this branch's turn
        self.turn: Turn | None = None  # the one that counts, of all that stand in the parent's heap
        self.turns: list[Turn] = []
        self.least: Claim | None = None  # of what may be next, that which ranks lowest

    def stand(self, queue: QueueNode | None, parent: Branch | None, *, policy: Policy) -> None:
        """Take a place in the tree, with what its queue says of itself."""
        self.queue = queue
        self.name = queue.name if queue else ""
        self.parent = parent
        self.path: tuple[Branch, ...] = (self, *parent.path) if parent else (self,)
        #: Whether this is the leaf of an inner queue's own pods.
        self.is_implicit = parent is not None and parent.queue is queue
        self.weight = queue.facts.weight if queue and not self.is_implicit else 1
        self.order = (queue.facts.created_ms, queue.name) if queue else (0, "")
        self.policy = policy
        self.past_share = 0  # of decayed usage, once a pass remembers; an inner queue's own pods have none
        self.line.strict = queue is not None and queue.facts.ordering == "strictFifo"
        self.rooms: list[Room] = []
        self.rooms_of: dict[Dim, list[Room]] = {}
        self.guarantees: list[Bound] = []
        self.floor: dict[Kind, int] = {}  # the guarantee, by kind
        self.limit: dict[Kind, int] = {}  # the limit, by kind

    def add_up(self) -> None:
        """Hold what the children hold."""
        for child in self.children:
            add(self.usage, child.usage.items())
            add(self.leaving, child.leaving.items())
            add(self.held, child.held.items())
        for held in (self.usage, self.leaving):
            for dim in [dim for dim, amount in held.items() if not amount]:
                del held[dim]

    # ---- shares

    def measure(self, capacity: Mapping[Kind, int]) -> None:
        self.share = dominant_share(self.held, capacity, self.weight)

    def share_with(self, kinds: KindCost, capacity: Mapping[Kind, int]) -> int:
        """The share as it would be with so much more."""
        share = self.share
        for kind, amount in kinds:
            part = part_of_kind(self.held.get(kind, 0) + amount, capacity.get(kind, 0), self.weight)
            share = max(share, part)
        return share

    def allow(self, capacity: Mapping[Kind, int]) -> None:
        """Reckon how much of each kind the branch may hold within what it deserves."""
        self.allowed = {
            kind: (amount + slack(capacity.get(kind, 0))) >> FRACTION_BITS
            for kind, amount in self.deserved.items()
        }

    def deserves(self, kinds: KindCost) -> bool:
        """Whether the branch would stay within what it deserves of all that is asked for."""
        held, allowed = self.held, self.allowed
        for kind, amount in kinds:  # noqa: SIM110 - this is asked for each admission
            if held.get(kind, 0) + amount > allowed.get(kind, 0):
                return False
        return True

    def is_owed(self, kinds: KindCost, capacity: Mapping[Kind, int]) -> bool:
        """Whether the branch has less than it deserves of all that is asked for."""
        held, deserved = self.held, self.deserved
        for kind, _ in kinds:
            missing = deserved.get(kind, 0) - (held.get(kind, 0) << FRACTION_BITS)
            if missing <= slack(capacity.get(kind, 0)):
                return False
        return True

    def demand(self) -> dict[Kind, int]:
        """What it and those below it hold and wait for; what may go to several supplies stands in the one that it
        prefers."""
        sums: dict[Kind, int] = {}
        for child in self.children:
            add(sums, child.demand().items())
        for (ways, resources), amounts in self.wants.items():
            supply = ways[0][0] if ways else ""
            add(sums, (((supply, each), amount) for each, amount in zip(resources, amounts, strict=True)))
        return sums

    def deserved_share(self, capacity: Mapping[Kind, int]) -> int:
        """The dominant share of what the branch deserves."""
        return dominant_share(self.deserved, capacity, self.weight) >> FRACTION_BITS

    def shares_told(self, whole: Mapping[Kind, int], kind: Kind) -> tuple[str, str]:
        """What it has and what it deserves, by weight: of all kinds that of which it is most. Of several supplies each
        may be another, so there both are of one kind."""
        if len({supply for supply, _ in whole}) < 2:
            return as_percent(self.share), as_percent(self.deserved_share(whole))
        there, deserved = whole.get(kind, 0), self.deserved.get(kind, 0) >> FRACTION_BITS
        parts = (part_of_kind(amount, there, self.weight) for amount in (self.held.get(kind, 0), deserved))
        held, deserves = map(as_percent, parts)
        return f"{held} of {kind_name(kind)}", deserves

    # ---- turns

    def rank(self, claim: Claim, at: int) -> tuple[int, Any]:
        """Where the branch stands with a claim of this class, as its parent's policy sees it."""
        assert self.parent is not None
        policy = self.parent.policy
        return (at if policy.reclaims or at == COVERED else BEYOND, policy.rank(self, claim))

    def least_rank(self, at: int) -> tuple[int, Any]:
        """The lowest rank that any of its claims may have, if it fits."""
        assert self.parent is not None
        assert self.head is not None
        policy = self.parent.policy
        self.least = self.head
        if not getattr(policy, "by_line", False):
            self.least = min(self._may_be_next(), key=partial(policy.rank, self))
        return at if policy.reclaims or at == COVERED else BEYOND, policy.rank(self, self.least)

    def _may_be_next(self) -> Iterable[Claim]:
        """Claims of which one ranks lowest, whichever fits."""
        if self.is_leaf:
            return (self.head,) if self.line.is_uniform and self.head is not None else self.line.ready()
        return [each.least for each in self.children if each.turn is not None and each.least is not None]

    @property
    def may_cover(self) -> bool:
        return any(self.used(bound) < bound.amount for bound in self.guarantees)

    @property
    def may_deserve(self) -> bool:
        """Whether it has less than it deserves of anything."""
        held = self.held
        return any(held.get(kind, 0) << FRACTION_BITS < amount for kind, amount in self.deserved.items())

    @property
    def has_allowance(self) -> bool:
        """Whether a claim may be small enough to stay within what it deserves."""
        held = self.held
        return any(held.get(kind, 0) < amount for kind, amount in self.allowed.items())

    def take_turn(self, at: int) -> None:
        """Stand among the siblings no later than any claim could; without a claim, stand back."""
        parent = self.parent
        if parent is None:
            return
        if self.head is None:
            self.turn = None
            return
        turn = (*self.least_rank(at), self.order, self)
        if self.turn == turn:
            return
        turns = parent.turns
        if turns and turns[0] is self.turn:  # it has just been served
            heapq.heapreplace(turns, turn)
        else:
            heapq.heappush(turns, turn)
            if len(turns) > most_entries(len(parent.children)):
                self.turn = turn
                parent.turns = heap_of(entry for entry in turns if entry[3].turn is entry)
        self.turn = turn

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
        """Whether the branch would be within its guarantee in each resource that the guarantee names and
        `cost` asks for, of which there is one at least."""
        covered = False
        for bound in self.guarantees:
            part = bound.part(cost)
            if part:
                if part + self.used(bound) > bound.amount:
                    return False
                covered = True
        return covered

    def covering(self, cost: Cost) -> list[Branch]:
        """The branches on the path whose guarantees cover it."""
        return [branch for branch in self.path if branch.guarantees and branch.is_covered(cost)]

    def used(self, bound: Bound) -> int:
        if len(bound.dims) == 1:
            return self.usage.get(bound.dims[0], 0)
        return sum(self.usage.get(dim, 0) for dim in bound.dims)


class HeldBack:
    """A leaf's claims of one shape that a limit keeps out of one spot."""

    __slots__ = ("leaf", "serial", "shape", "watching")

    def __init__(self, leaf: Branch, shape: Any) -> None:
        self.leaf = leaf
        self.shape = shape
        self.serial = 0
        self.watching: Room | None = None


def below_common(one: Branch, other: Branch) -> tuple[Branch, Branch]:
    """The branches of two leaves right under their lowest common ancestor."""
    pairs = zip(reversed(one.path), reversed(other.path), strict=False)
    return next((mine, theirs) for mine, theirs in pairs if mine is not theirs)


def up_to(branch: Branch, leaf: Branch) -> tuple[Branch, ...]:
    """A leaf's path as far as a branch on it."""
    return leaf.path[: leaf.path.index(branch) + 1]
