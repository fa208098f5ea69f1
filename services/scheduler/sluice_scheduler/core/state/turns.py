"""Turns: room that is kept for the claim whose turn it has been for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.stored.entities import Turn

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def keep_room(state: State, turn: Turn) -> None:
    """Keep the free part of a claim's spot for it: others find that much less."""
    claim = state.forest.claims.get(turn.claim)
    if claim is not None and turn.cost:
        state.forest.keep_for(claim.line, turn_cost(turn), turn.within)


def keep_rooms(state: State) -> None:
    state.forest.settle()
    for turn in state.turns:
        keep_room(state, turn)


def turn_cost(turn: Turn) -> Cost:
    return tuple(((cluster, pool, resource), amount) for cluster, pool, resource, amount in turn.cost)
