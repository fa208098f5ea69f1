"""What one pass knows while it takes back."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Literal, TypeAlias

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.claimants import Ripens
from sluice_scheduler.core.passes.potential import Worth
from sluice_scheduler.core.passes.ranking import Ranking
from sluice_scheduler.core.state.state import State

#: What a Queue may say that keeps others from taking its pods, however much they are owed.
Rule: TypeAlias = Literal["reclaim", "lostWork"]
RECLAIM_OFF: Final = "reclaim"
LOST_WORK: Final = "lostWork"


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

    def is_closed(self, branch: Branch) -> bool:
        """Whether nobody may take anything from a branch now, but for who is below it."""
        queue = branch.queue
        if queue is not None and not queue.facts.reclaim and RECLAIM_OFF not in self.lifted:
            return True
        return branch.is_leaf and self._is_unripe(branch)

    def ripe_since_ms(self, leaf: Branch) -> int | None:
        """A queue's growth may be taken if it was admitted by this time; None if its age does not matter. When the next
        growth becomes old enough is noted."""
        minimum_ms = leaf.queue.facts.minimum_run_ms if leaf.queue is not None else 0
        units = self.state.units.get(leaf.name)
        if not minimum_ms or units is None:
            return None
        since_ms = self.state.now_ms - minimum_ms
        following_ms = units.first_grown_after(since_ms)
        if following_ms is not None:
            self.ripens.has(following_ms + minimum_ms)
        return since_ms

    def _is_unripe(self, leaf: Branch) -> bool:
        """Whether nothing of a queue has run for as long as it wants."""
        minimum_ms = leaf.queue.facts.minimum_run_ms if leaf.queue is not None else 0
        units = self.state.units.get(leaf.name)
        if not minimum_ms or not units or units.any_from(self.state.now_ms - minimum_ms):
            return False
        self.ripens.has(units.none_before_ms + minimum_ms)
        return True
