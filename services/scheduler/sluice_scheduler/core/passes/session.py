"""What one pass knows while it takes back."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice
from typing import Final, Literal, TypeAlias

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Spot
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.claimants import Ripens
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.potential import Worth
from sluice_scheduler.core.passes.ranking import Ranking
from sluice_scheduler.core.passes.search import lost_work_left_ms
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import in_victims_order

#: What a Queue may say that keeps others from taking its pods, however much they are owed.
Rule: TypeAlias = Literal["reclaim", "lostWork"]
RECLAIM_OFF: Final = "reclaim"
LOST_WORK: Final = "lostWork"
#: Of so many of a queue's units it is looked at whether they may go.
_LOOKS_MAX: Final = 256


class Session:
    """For all moves that it tries."""

    def __init__(
        self, state: State, budget: Budget, ripens: Ripens, *, lifted: Collection[Rule] = ()
    ) -> None:
        """`lifted`: moves are tried on paper, as if no queue had such a rule."""
        self.lifted = lifted
        self.state = state
        self.budget = budget
        self.ripens = ripens
        self.worth = Worth(state, budget)
        self.ranking = Ranking(self.is_closed)
        self._paper = Paper(state.forest)
        self._worked_out: dict[Branch, bool] = {}

    def anybody_is_above(self, spot: Spot) -> bool:
        """Whether in each pool room that is too small somebody stands who has more than he deserves of something."""
        root, kind_of = self.state.forest.root, self.state.forest.kind_of
        for room, need in spot.needs:
            dims = room.bound.dims
            if self._paper.missing(room) + need > 0:
                self.budget.spend()
                if not self.ranking.anybody_above(root, kind_of(dims[0]), dims, self._paper):
                    return False
        return True

    def is_closed(self, branch: Branch) -> bool:
        """Whether nobody may take anything from a branch now, but for who is below it."""
        queue = branch.queue
        if queue is not None and not queue.facts.reclaim and RECLAIM_OFF not in self.lifted:
            return True
        return branch.is_leaf and self._is_unripe(branch)

    def ripe_since_ms(self, leaf: Branch) -> int | None:
        """A queue's units may be taken if they were admitted by this time; None if their age does not matter. When the
        next becomes old enough is noted."""
        minimum_ms = leaf.queue.facts.minimum_run_ms if leaf.queue is not None else 0
        units = self.state.units.get(leaf.name)
        if not minimum_ms or units is None:
            return None
        since_ms = self.state.now_ms - minimum_ms
        following_ms = units.first_after(since_ms)
        if following_ms is not None:
            self.ripens.has(following_ms + minimum_ms)
        return since_ms

    def is_worked_out(self, leaf: Branch) -> bool:
        """Whether a queue may lose no more running time in this hour, and each of its units has run. Of very many that
        is not known. What a guarantee covers is owed all the same."""
        queue = leaf.queue
        if queue is None or queue.facts.lost_work_per_hour_ms is None or LOST_WORK in self.lifted:
            return False
        if leaf not in self._worked_out:
            left_ms = lost_work_left_ms(self.state, leaf)
            units = list(islice(in_victims_order(self.state, leaf, by_ms=None), _LOOKS_MAX + 1))
            self._worked_out[leaf] = len(units) <= _LOOKS_MAX and all(
                unit.work_ms(self.state.now_ms) > left_ms for unit in units
            )
        return self._worked_out[leaf]

    def _is_unripe(self, leaf: Branch) -> bool:
        """Whether nothing of a queue has run for as long as it wants."""
        minimum_ms = leaf.queue.facts.minimum_run_ms if leaf.queue is not None else 0
        units = self.state.units.get(leaf.name)
        if not minimum_ms or not units or units.any_from(self.state.now_ms - minimum_ms):
            return False
        self.ripens.has(units.none_before_ms + minimum_ms)
        return True
