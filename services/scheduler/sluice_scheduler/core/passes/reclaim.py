"""Taking back: between queues where it raises the potential, inside a queue by priority.

A *move* (move.py) is a set of victims and the set of claims that come in by it: a claim first in its line, and what
else deserved then fits into what they leave. Here is who may try one, in which order, and for how long.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.claimants import Claimants, Ripens, is_barred
from sluice_scheduler.core.passes.move import Move
from sluice_scheduler.core.passes.session import Session
from sluice_scheduler.core.state.cell import Barren
from sluice_scheduler.core.state.rounds import place_of
from sluice_scheduler.core.state.state import State

#: So many spots of each claim are tried in one round; but all where somebody has too much.
_SPOTS_MAX: Final = 8


def reclaim(state: State, budget: Budget) -> bool:
    """Let claims push others out where the rules allow it; whether that goes on with the next record. If the budget was
    used up and nobody was let in, it can wait for the next tick. It goes on behind those who were tried in vain."""
    state.forest.settle()
    stands_on = _stands_on(state)
    known = state.barren
    if known is not None and known[:4] == stands_on and state.now_ms < known.until_ms:
        return False
    ripens = Ripens(state.now_ms)
    claimants = Claimants(state, ripens)
    session = Session(state, budget, ripens)
    resumed = state.cell.in_vain
    in_vain = sum(1 for _ in islice(iter(claimants.next, None), resumed))
    while (found := claimants.next()) is not None:
        leaf, claims = found
        if budget.is_spent:
            state.leave_in_vain(in_vain)
            return stands_on != _stands_on(state)
        before = budget.left
        if any(_may_still(state, claim) and _let_in(session, leaf, claim) for claim in claims):
            state.forest.settle()
            budget.spend(claimants.again(leaf) // 16)
        else:
            in_vain += 1
            budget.spend(before - budget.left)  # twice: others' records can't wait for that
    state.leave_in_vain(0)
    found_none = stands_on == _stands_on(state)
    leave_out = claimants.leave_out or budget.leaves_out
    if leave_out:
        state.next_round()
    # What took several passes is not remembered: a restart would search again, and leave something unfinished.
    remembered = found_none and not resumed and not leave_out
    state.barren = Barren(*stands_on, ripens.first_ms) if remembered else None
    return False


def _may_still(state: State, claim: Claim) -> bool:
    """Whether a claim has not lost pods itself since the pass began."""
    return bool(claim.line) and not is_barred(state, claim)


def _stands_on(state: State) -> tuple[int, int, int, int]:
    return (state.forest.version, state.cell.grounds, state.coarse_now_ms, state.now_ms // 60_000)


def _let_in(session: Session, leaf: Branch, claim: Claim) -> bool:
    """Let a claim push others out; whether it did."""
    move = find_move(session, leaf, claim)
    if move is not None:
        move.carry_out()
    return move is not None


def find_move(session: Session, leaf: Branch, claim: Claim) -> Move | None:
    """How a claim may push others out, at any of its spots. First where nothing is taken that somebody deserves: how
    nodes are cut into pools is not to decide who loses."""
    session.budget.spend()
    spots = session.state.forest.spots_of(claim.shape)
    sparing, others = (spots if len(spots) > 1 else []), spots
    if len(spots) > _SPOTS_MAX:
        sparing, others = [spot for spot in spots if session.anybody_is_above(spot)], _some_of(session, spots)
    for spares, where in ((True, sparing), (False, others)):
        for spot in where:
            move = Move(session, leaf, claim, spot, spares=spares)
            if move.find():
                return move
    return None


def _some_of(session: Session, spots: list[Spot]) -> list[Spot]:
    """Others in each round, and not in step with which claims are tried."""
    session.budget.leaves_out = True
    windows = -(-len(spots) // _SPOTS_MAX)
    begin = place_of(session.state.cell.rounds, windows) * _SPOTS_MAX
    return spots[begin : begin + _SPOTS_MAX]
