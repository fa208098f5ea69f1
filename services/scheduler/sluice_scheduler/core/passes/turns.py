"""Reservation by turn: so that large claims start, whatever stream of small ones there is.

The claim whose turn it is, and that does not fit, is noted. If it is its turn still, or again, after its
queue's patience, what becomes free is kept for it until it fits; others are served with what it does not need,
or if they say that they end before it starts (backfill.py).
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Shape, Spot
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keep_room, turn_cost
from sluice_scheduler.core.stored.entities import Turn

#: So many of a queue's shapes are looked at for one that can ever fit, and so many spreads of a gang over pools.
_SHAPES_MAX: Final = 8
_SPREADS_MAX: Final = 16


def forget_turns(state: State) -> None:
    """Claims that have left their lines need nothing kept, and nothing is kept for who can't fit any more."""
    for turn in sorted(state.turns, key=lambda turn: turn.key):
        if turn.claim not in state.forest.claims:
            drop_turn(state, turn)
        elif turn.cost and not _still_stands(state, turn):
            turn.pools, turn.cost, turn.start_ms, turn.within = (), (), 0, False
            state.turns.put(turn)
            state.forest.keep_nothing()
            state.pass_due = True


def drop_turn(state: State, turn: Turn) -> None:
    state.turns.drop(turn.key)
    if turn.cost:
        state.forest.keep_nothing()
        state.pass_due = True


def _still_stands(state: State, turn: Turn) -> bool:
    """Whether the claim still asks for what is kept, at a place that could hold it, in a queue that wants that."""
    claim = state.forest.claims[turn.claim]
    leaf = state.forest.leaves[claim.line]
    spot = _spot_at(state, claim.shape, turn.pools)
    return (
        spot is not None
        and spot.cost == turn_cost(turn)
        and _wants_room(leaf)
        and _could_fit(state, leaf, spot)
    )


def reserved_that_fits(state: State) -> tuple[Branch, Claim, Spot] | None:
    """The claim that room is kept for, once it fits into that."""
    for turn in state.turns:
        claim = state.forest.claims.get(turn.claim)
        if claim is None or not turn.cost:
            continue
        leaf = state.forest.leaves[claim.line]
        spot = _spot_at(state, claim.shape, turn.pools)
        if spot is not None and all(
            need <= room.left + room.kept for room, need in state.forest.rooms_for(leaf, spot.cost)
        ):
            return leaf, claim, spot
    return None


def take_turns(state: State) -> None:
    """With each tick: note whose turn it is, and keep room for who has waited for long."""
    standing = next((turn for turn in state.turns if turn.cost), None)
    if standing is not None:
        _come_within(state, standing)
        return
    found = _whose_turn(state)
    if found is None:
        return
    leaf, claim = found
    turn = state.turns.get(f"{Turn.kind}/{claim.key}")
    if turn is None:
        turn = Turn(claim=claim.key, since_ms=state.now_ms)
        state.turns.put(turn)
    if _is_old(state, leaf, claim) or state.now_ms - turn.since_ms >= _patience_ms(state, leaf):
        spots = [spot for spot in _spots(state, claim.shape) if _could_fit(state, leaf, spot)]
        spot = min(spots, key=lambda spot: (_missing(state, leaf, spot), spot.pools))
        turn.pools = spot.pools
        turn.cost = tuple((*dim, amount) for dim, amount in spot.cost)
        state.turns.put(turn)
        keep_room(state, turn)
        _come_within(state, turn)


def _come_within(state: State, turn: Turn) -> None:
    """Once its queues' limits let the claim in, the pools keep room for it too."""
    leaf = state.forest.leaves[state.forest.claims[turn.claim].line]
    rooms = state.forest.rooms_for(leaf, turn_cost(turn))
    if not turn.within and all(need <= room.left + room.kept for room, need in rooms if room.branch.parent):
        turn.within = True
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
        found = _first_that_could_fit(state, leaf)
        if found is None:
            continue
        claim, spot = found
        is_old = _is_old(state, leaf, claim)
        at = forest.class_of(leaf, spot.kinds, spot.cost)
        along = tuple((*branch.rank(claim, at), branch.order) for branch in reversed(leaf.path[:-1]))
        rank = (not is_old, claim.created_ms if is_old else 0, along, claim.place)
        if best is None or rank < best[0]:
            best = (rank, leaf, claim)
    return (best[1], best[2]) if best is not None else None


def _is_old(state: State, leaf: Branch, claim: Claim) -> bool:
    """Whether it has waited for a tenure beside its patience: then it waits for no turn any more."""
    return state.now_ms - claim.created_ms >= state.config.tenure_ms + _patience_ms(state, leaf)


def _first_that_could_fit(state: State, leaf: Branch) -> tuple[Claim, Spot] | None:
    """The first claim of a line that could ever fit, and where: one that can't stands in the way of nobody, unless
    the line is strict."""
    if not len(leaf.line) or not _wants_room(leaf):
        return None
    for claim in islice(state.forest.firsts(leaf), _SHAPES_MAX):
        for spot in _spots(state, claim.shape):
            if _could_fit(state, leaf, spot):
                return claim, spot
    return None


def _wants_room(leaf: Branch) -> bool:
    return leaf.queue is None or leaf.queue.facts.reserves


def _could_fit(state: State, leaf: Branch, spot: Spot) -> bool:
    """Whether it would fit if nobody else held anything."""
    return all(need <= room.bound.amount for room, need in state.forest.rooms_for(leaf, spot.cost))


def _spots(state: State, shape: Shape) -> list[Spot]:
    """Where a shape may go; where each of its parts needs a pool of its own, some of the ways to do that."""
    if not shape.scattered:
        return shape.spots
    return [state.forest.spot(shape, pools) for pools in islice(shape.spreads(), _SPREADS_MAX)]


def _spot_at(state: State, shape: Shape, pools: tuple[str, ...]) -> Spot | None:
    return next((spot for spot in _spots(state, shape) if spot.pools == pools), None)
