"""Shedding: capacity or a limit has shrunk below what is held, and what is over is taken back.

By the rules of every reclaim, but for one: nobody's pods are out of reach of this. Who has more than he deserves gives
first, unless more of what is deserved were lost by that; nobody is put below a guarantee while somebody above one can
give.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import TOLERANCE
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.potential import Worth
from sluice_scheduler.core.passes.ranking import Ranking
from sluice_scheduler.core.passes.search import Search
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
    """Units to take back from a room that holds too much: those of who has more than he deserves, unless others' lose
    less of what is held within that, as one pod does beside a gang."""
    worth = Worth(state, budget)
    above = _find(state, budget, room, worth, spares_deserved=True)
    lost = _lost(state, worth, above)
    if above and (lost <= 0 or budget.is_spent):
        return above
    others = _find(state, budget, room, worth)
    if above and (not others or lost <= _lost(state, worth, others) + TOLERANCE):
        return above
    return others or _find(state, budget, room, worth, spares_guaranteed=False)


def _find(
    state: State,
    budget: Budget,
    room: Room,
    worth: Worth,
    *,
    spares_deserved: bool = False,
    spares_guaranteed: bool = True,
) -> list[Unit]:
    """All that it takes, or as far as the budget goes, and one at least: or the next pass would come no further than
    this."""
    paper = Paper(state.forest)
    kinds = [state.forest.kind_of(dim) for dim in room.bound.dims]

    def short() -> Iterator[Room]:
        return iter((room,) if paper.used(room.branch, room.bound) > room.bound.amount else ())

    def may_take_from(branch: Branch) -> bool:
        return not spares_deserved or paper.is_above(branch, kinds)

    def may_take(unit: Unit) -> bool:
        return not (spares_guaranteed and any(worth.loses_guaranteed([unit]).values()))

    search = Search(
        state,
        budget,
        Ranking(),
        paper=paper,
        short=short,
        may_take_from=may_take_from,
        may_take=may_take,
        in_parts=True,
    )
    if search.small_units() or (search.taken and budget.is_spent):
        return list(search.taken)
    search.give_back_all()
    if enough := search.enough_by_itself():
        return enough[:1]
    return list(search.taken) if search.any_units() or search.taken else []


def _lost(state: State, worth: Worth, units: list[Unit]) -> int:
    """How much less would be held within what is deserved."""
    before, after = Paper(state.forest), Paper(state.forest)
    for unit in units:
        after.move(unit.leaf, unit.cost, -1)
    leaves = dict.fromkeys(unit.leaf for unit in units)
    return sum(worth.deserved(before, leaf, ()) - worth.deserved(after, leaf, units) for leaf in leaves)
