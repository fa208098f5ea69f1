"""Reservation by turn: so that large claims start, whatever stream of small ones there is.

The claim whose turn it is, and that does not fit, is noted. If it is its turn still, or again, after its
queue's patience, what becomes free is kept for it until it fits; others are served with what it does not need.
"""

from __future__ import annotations

from typing import Any

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Cost, Spot
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keep_room, turn_cost
from sluice_scheduler.core.stored.entities import Turn


def forget_turns(state: State) -> None:
    """Claims that have left their lines need nothing kept, and where one can fit no more nothing is kept for it."""
    for turn in sorted(state.turns, key=lambda turn: turn.key):
        claim = state.forest.claims.get(turn.claim)
        if claim is None or not _can_fit(state, state.forest.leaves[claim.line], turn_cost(turn)):
            drop_turn(state, turn)


def drop_turn(state: State, turn: Turn) -> None:
    state.turns.drop(turn.key)
    if turn.cost:
        state.forest.keep_nothing()
        state.pass_due = True


def reserved_that_fits(state: State) -> tuple[Branch, Claim, Spot] | None:
    """The claim that room is kept for, once it fits into that."""
    for turn in state.turns:
        claim = state.forest.claims.get(turn.claim)
        if claim is None or not turn.cost:
            continue
        leaf = state.forest.leaves[claim.line]
        spot = next((spot for spot in claim.shape.spots if spot.pools == turn.pools), None)
        if spot is not None and all(
            need <= room.left + room.kept for room, need in state.forest.rooms_for(leaf, spot.cost)
        ):
            return leaf, claim, spot
    return None


def take_turns(state: State) -> None:
    """With each tick: note whose turn it is, and keep room for who has waited for long."""
    found = _whose_turn(state)
    standing = [turn for turn in state.turns if turn.cost]
    if found is None or standing:
        return
    leaf, claim = found
    turn = state.turns.get(f"{Turn.kind}/{claim.key}")
    if turn is None:
        turn = Turn(claim=claim.key, since_ms=state.now_ms)
        state.turns.put(turn)
    if state.now_ms - turn.since_ms >= _patience_ms(state, leaf):
        spots = (spot for spot in claim.shape.spots if _can_fit(state, leaf, spot.cost))
        spot = min(spots, key=lambda spot: (_missing(state, leaf, spot), spot.pools))
        turn.pools = spot.pools
        turn.cost = tuple((*dim, amount) for dim, amount in spot.cost)
        state.turns.put(turn)
        keep_room(state, turn)


def first_turns_ms(state: State) -> list[int]:
    """When room may be kept for those whose turn was noted."""
    claims = ((turn, state.forest.claims.get(turn.claim)) for turn in state.turns if not turn.cost)
    return [
        turn.since_ms + _patience_ms(state, state.forest.leaves[claim.line])
        for turn, claim in claims
        if claim is not None
    ]


def _patience_ms(state: State, leaf: Branch) -> int:
    facts = leaf.queue.facts if leaf.queue is not None else None
    if facts is None or facts.patience_ms is None:
        return state.config.patience_ms
    return facts.patience_ms


def _missing(state: State, leaf: Branch, spot: Spot) -> int:
    return sum(max(0, need - room.left) for room, need in state.forest.rooms_for(leaf, spot.cost))


def _whose_turn(state: State) -> tuple[Branch, Claim] | None:
    """Whose turn it is of all that wait, fit or not. Who has waited for a tenure beside its patience comes first:
    no stream of claims that deserve more keeps it out for ever."""
    forest = state.forest
    best: tuple[tuple[Any, ...], Branch, Claim] | None = None
    for leaf in forest.leaves.values():
        claim = leaf.line.first()
        if claim is None or not _may_reserve(state, leaf, claim):
            continue
        waited_ms = state.now_ms - claim.created_ms
        is_old = waited_ms >= state.config.tenure_ms + _patience_ms(state, leaf)
        spot = claim.shape.spots[0]
        at = forest.class_of(leaf, spot.kinds, spot.cost)
        along = tuple((*branch.rank(claim, at), branch.order) for branch in reversed(leaf.path[:-1]))
        rank = (not is_old, claim.created_ms if is_old else 0, along, claim.place)
        if best is None or rank < best[0]:
            best = (rank, leaf, claim)
    return (best[1], best[2]) if best is not None else None


def _may_reserve(state: State, leaf: Branch, claim: Claim) -> bool:
    """Whether it could ever fit, and its queue wants room to be kept."""
    if leaf.queue is not None and not leaf.queue.facts.reserves:
        return False
    return any(_can_fit(state, leaf, spot.cost) for spot in claim.shape.spots)


def _can_fit(state: State, leaf: Branch, cost: Cost) -> bool:
    """Whether there would be room if everybody else left."""
    return all(need <= room.bound.amount for room, need in state.forest.rooms_for(leaf, cost))
