"""Turns: room that is kept for claims whose turn it has been for long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.stored.entities import Turn

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def keepers(state: State) -> list[Turn]:
    """The turns that room is kept for, who came first first."""
    kept = [turn for turn in state.turns if turn.cost and turn.claim in state.forest.claims]
    return sorted(kept, key=lambda turn: (turn.kept_ms, turn.key))


def keep_rooms(state: State) -> None:
    """Keep the free part of each such claim's spot for it: others find that much less."""
    state.forest.keep_nothing()
    for turn in keepers(state):
        claim = state.forest.claims[turn.claim]
        state.forest.keep_for(claim.key, claim.line, turn_cost(turn), turn.within)


def restore_rooms(state: State) -> None:
    """The same, after branches have taken a new shape."""
    state.forest.settle()
    keep_rooms(state)


def turn_cost(turn: Turn) -> Cost:
    return tuple(((cluster, pool, resource), amount) for cluster, pool, resource, amount in turn.cost)
