"""Room that is kept, and who comes into it: those whom it is kept for, and those whom a guarantee covers."""

from __future__ import annotations

from functools import partial
from itertools import islice
from operator import contains
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keepers, turn_cost

#: So many of a queue's shapes are tried that a guarantee covers, and so many looked at for them.
_SHAPES_MAX: Final = 8
_LOOKS_MAX: Final = 256


def spot_at(state: State, shape: Shape, pools: tuple[str, ...]) -> Spot | None:
    """The place with these pools, if a shape may still go there: it may have other parts by now."""
    if shape.scattered:
        allowed = len(pools) == len(shape.scattered) and all(map(contains, shape.scattered, pools))
        return state.forest.spot(shape, pools) if allowed else None
    return next((spot for spot in shape.spots if spot.pools == pools), None)


def reserved_that_fits(state: State) -> tuple[Branch, Claim, Spot] | None:
    """The first claim that fits into what is kept for it."""
    ahead: dict[Room, int] = {}  # kept for those before it
    for turn in keepers(state):
        claim = state.forest.claims[turn.claim]
        leaf = state.forest.leaves[claim.line]
        rooms = state.forest.rooms_for(leaf, turn_cost(turn))
        if all(need <= room.left + room.kept - ahead.get(room, 0) for room, need in rooms):
            spot = spot_at(state, claim.shape, turn.pools)
            if spot is not None and spot.cost == turn_cost(turn):
                return leaf, claim, spot
        for room, need in rooms:
            if turn.within or room.branch is not state.forest.root:
                ahead[room] = ahead.get(room, 0) + need
    return None


def passable(state: State) -> set[str]:
    """The claims that room is kept for and no guarantee covers."""
    return {
        turn.claim
        for turn in keepers(state)
        if not state.forest.leaves[state.forest.claims[turn.claim].line].covering(turn_cost(turn))
    }


def covered_that_fits(state: State, leaf: Branch, passed: set[str]) -> tuple[Claim, Spot] | None:
    """A claim of a queue that a guarantee covers, and that fits into what is kept for those whom it may pass."""
    covered = (
        (claim, spots)
        for claim in islice(state.forest.firsts(leaf), _LOOKS_MAX)
        if (spots := [spot for spot in state.forest.spots_of(claim.shape) if leaf.covering(spot.cost)])
    )
    left_in = partial(Room.left_beside, claims=passed)
    for claim, spots in islice(covered, _SHAPES_MAX):
        for spot in spots:
            if state.forest.has_room(leaf, spot.cost, left_in):
                return claim, spot
    return None
