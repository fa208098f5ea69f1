"""Back-fill: room that is kept for a claim is used until the claim starts, by pods that say when they end.

When the claim starts is worked out from those that hold and say when they end; who does not say ends never. A
pod that ends before that does not put the claim off, so it is let in. One that outlives what it said is the first
to be evicted once the claim waits for it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, TypeAlias

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot, pod_cost
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keep_rooms, keepers, turn_cost
from sluice_scheduler.core.state.units import unit_of
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import Turn

#: So many ends are added up, and so many claims of one line looked at.
_ENDS_MAX: Final = 4_096
_LOOKS_MAX: Final = 64

#: Admit a claim at a spot, on its word that it ends by then.
LetIn: TypeAlias = Callable[[Branch, Claim, Spot, int], None]


def back_fill(state: State, budget: Budget, let_in: LetIn) -> bool:
    """With each tick, let in pods that end in time, and evict those that should have ended. Returns whether nothing is
    left to do."""
    turn = next((turn for turn in keepers(state) if turn.within), None)
    if turn is None:
        return True
    _foresee(state, budget, turn)
    _evict_late(state, budget, turn)
    while (found := _next_in_time(state, budget, turn)) is not None:
        claim = found[1]
        state.forest.keep_nothing()
        let_in(*found, state.now_ms + claim.ends_in_ms)
        keep_rooms(state)
        state.forest.settle()
        budget.spend()
    return turn.start_ms <= state.now_ms or not budget.is_spent


def late_ms(state: State) -> list[int]:
    """When those should have ended that were let in, while room is kept."""
    return list(state.endings.let_in.values()) if any(turn.cost for turn in state.turns) else []


def _foresee(state: State, budget: Budget, turn: Turn) -> None:
    found_ms = _foreseen_ms(state, budget, turn)
    if found_ms and not 0 < turn.start_ms <= found_ms:
        turn.start_ms = found_ms
        state.turns.put(turn)


def _foreseen_ms(state: State, budget: Budget, turn: Turn) -> int:
    """When the claim fits if everybody ends as they say; 0: it needs some who do not say."""
    short = _short(state, turn)
    if not short:
        return state.now_ms
    for number, (ends_ms, key) in enumerate(islice(state.endings, _ENDS_MAX)):
        budget.spend(number % 16 == 0)
        _free(state, short, state.pod(key))
        if not short:
            return max(ends_ms, state.now_ms)
    return 0


def _short(state: State, turn: Turn) -> dict[Room, int]:
    """What the claim lacks once those are gone that leave already, by room."""
    leaf = state.forest.leaves[state.forest.claims[turn.claim].line]
    lacks = {
        room: need + room.branch.used(room.bound) - room.bound.amount
        for room, need in state.forest.rooms_for(leaf, turn_cost(turn))
    }
    return {room: lack for room, lack in lacks.items() if lack > 0}


def _free(state: State, short: dict[Room, int], pod: Pod) -> bool:
    """Count a pod out; whether that was of use."""
    leaf = state.forest.leaves.get(pod.queue)
    path = leaf.path if leaf is not None else (state.forest.root,)
    cost, serves = pod_cost(pod), False
    for room in list(short):
        part = room.bound.part(cost) if room.branch in path else 0
        if part:
            serves = True
            short[room] -= part
            if short[room] <= 0:
                del short[room]
    return serves


def _evict_late(state: State, budget: Budget, turn: Turn) -> None:
    """If the claim waits for nobody else: those that were let in and should have ended, the latest first."""
    short = _short(state, turn)
    late = sorted(
        (until_ms, key) for key, until_ms in state.endings.let_in.items() if until_ms <= state.now_ms
    )
    pods = [state.pod(key) for _, key in late] if short else []
    chosen = [pod for pod in pods if short and not pod.retry_ms and _free(state, short, pod)]
    if short or not chosen:
        return
    for pod in chosen:
        leaf = state.forest.leaves.get(pod.queue)
        if leaf is not None:
            why = "it said that it ends in time, and has not; room is kept for whose turn it is"
            evict(state, unit_of(state, leaf, pod.key), reason="Overstayed", sentence=why)
            budget.spend(3)
    turn.start_ms = state.now_ms  # nobody else comes into what they leave
    state.turns.put(turn)
    state.settle_applications()
    state.forest.settle()


def _next_in_time(state: State, budget: Budget, turn: Turn) -> tuple[Branch, Claim, Spot] | None:
    """The claim that is served first among those that fit into what is kept and end before the other starts."""
    if turn.start_ms <= state.now_ms:
        return None
    best: tuple[tuple[Any, ...], tuple[Branch, Claim, Spot]] | None = None
    for leaf in state.forest.leaves.values():
        if not leaf.line.brief:
            continue
        for claim in _in_time(state, leaf, turn):
            if budget.is_spent:
                return None
            budget.spend()
            spot = _spot(state, leaf, claim.shape.spots, turn)
            if spot is None:
                continue
            at = state.forest.class_of(leaf, spot.kinds, spot.cost)
            along = tuple((*branch.rank(claim, at), branch.order) for branch in reversed(leaf.path[:-1]))
            if best is None or (along, claim.place) < best[0]:
                best = ((along, claim.place), (leaf, claim, spot))
            break
    return best[1] if best is not None else None


def _in_time(state: State, leaf: Branch, turn: Turn) -> Iterator[Claim]:
    """Nobody passes the first of a strict line."""
    line = leaf.line
    claims = [line.first()] if line.strict else line.brief
    return (
        claim
        for claim in islice(claims, _LOOKS_MAX)
        if claim is not None
        and claim.key != turn.claim
        and claim.ends_in_ms
        and state.now_ms + claim.ends_in_ms <= turn.start_ms
    )


def _spot(state: State, leaf: Branch, spots: list[Spot], turn: Turn) -> Spot | None:
    """The first with room, kept for this turn or for nobody."""

    def left_in(room: Room) -> int:
        return room.left_beside((turn.claim,))

    return next((spot for spot in spots if state.forest.has_room(leaf, spot.cost, left_in)), None)
