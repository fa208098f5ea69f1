"""Shedding: capacity or a limit has shrunk below what is held, and what is over is taken back.

By the rules of every reclaim, but for one: nobody's pods are out of reach of this. Nobody is put below a
guarantee while somebody above one can give.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.potential import Worth
from sluice_scheduler.core.passes.search import Ranking, Search
from sluice_scheduler.core.state.promises import give_up, promised_cost
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit


def shed(state: State, budget: Budget) -> bool:
    """Take back what is over; whether all of it was."""
    for room in state.forest.overfull():
        for promise in sorted(state.promises, key=attrgetter("made"), reverse=True):
            if room.is_over and room.bound.part(promised_cost(promise)):
                give_up(state, promise)
        while room.is_over and not budget.is_spent and (units := _to_shed(state, budget, room)):
            for unit in units:
                sentence = f"more is held than {room.bound.name} allows"
                evict(state, unit, reason="Overcommitted", sentence=sentence)
                budget.spend(2)
            state.settle_applications()
            state.forest.settle()
        if budget.is_spent and room.is_over:
            return False
    return True


def _to_shed(state: State, budget: Budget, room: Room) -> list[Unit]:
    """Units to take back from a room that holds too much: all that it takes, or as far as the budget goes, and one
    at least: or the next pass would come no further than this."""
    worth = Worth(state, budget)
    for spares_guaranteed in (True, False):
        paper = Paper(state.forest)

        def short(paper: Paper = paper) -> Iterator[Room]:
            return iter((room,) if paper.used(room.branch, room.bound) > room.bound.amount else ())

        def may_take(unit: Unit, spares: bool = spares_guaranteed) -> bool:
            return not (spares and any(worth.loses_guaranteed([unit]).values()))

        search = Search(
            state,
            budget,
            Ranking(),
            paper=paper,
            short=short,
            may_take_from=lambda _branch: True,
            may_take=may_take,
            in_parts=True,
        )
        if search.small_units() or (search.taken and budget.is_spent):
            return list(search.taken)
        search.give_back_all()
        if enough := search.enough_by_itself():
            return enough[:1]
        if search.any_units() or search.taken:
            return list(search.taken)
    return []
