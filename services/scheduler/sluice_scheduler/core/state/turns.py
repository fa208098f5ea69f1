"""Turns: room that is kept for claims whose turn it has been for long."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.stored.entities import Turn

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def turn_of(state: State, claim: str) -> Turn | None:
    return state.turns.get(f"{Turn.kind}/{claim}")


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


def pools_rested_ms(state: State) -> dict[str, int]:
    """By queue, until when the pools rested after they last kept room for it in vain."""
    found: dict[str, int] = {}
    for turn in state.turns:
        if turn.within and turn.rests_ms:
            found[turn.queue] = max(turn.rests_ms, found.get(turn.queue, 0))
    return found


def turn_cost(turn: Turn) -> Cost:
    return tuple(((cluster, pool, resource), amount) for cluster, pool, resource, amount in turn.cost)


def patience_ms(state: State, queue: str) -> int:
    leaf = state.forest.leaves.get(queue)
    facts = leaf.queue.facts if leaf is not None and leaf.queue is not None else None
    if facts is None or facts.patience_ms is None:
        return state.config.patience_ms
    return facts.patience_ms


def lasts_ms(state: State, turn: Turn) -> int:
    """For so long room is kept at first; and so long has what it holds who was let in out of turn."""
    return state.config.tenure_ms + patience_ms(state, turn.queue)


def turn_ends_ms(state: State, claims: Iterable[str]) -> int:
    """Until when those have what they hold who were let in out of turn, because they had waited for so long: they would
    be taken back at once by who deserves it, and have waited for nothing. 0: none of these was."""
    turns = (turn_of(state, claim) for claim in claims) if len(state.turns) else ()
    return max(
        (turn.served_ms + lasts_ms(state, turn) for turn in turns if turn and turn.served_ms), default=0
    )
