"""Reservation by turn: so that large claims start, whatever stream of small ones there is.

The claim whose turn it is, and that does not fit, is noted. If it is its turn still, or again, after its
queue's patience, what becomes free is kept for it until it fits; others are served with what it does not need,
or if they say that they end before it starts (backfill.py). What a guarantee covers passes it. Who waits for its size
alone has its turn out of order once it has waited for a tenure beside its patience.

The pools keep room for one claim at a time. Behind limits of its own queues that keep it out, room is kept for one
claim of each queue beside that: it stands in nobody's way but theirs.

Nobody has room kept for ever, for those whom it waits for may never end. After a while it is given up, its queue rests
for three times as long, and the next time its room is kept for twice as long: so what has an end is waited out, and no
more than a quarter of the time is lost to what has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Dim, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import FRACTION_BITS, slack
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keep_rooms, keepers, turn_cost
from sluice_scheduler.core.stored.entities import Turn

#: So many of a queue's shapes are looked at for one that can ever fit, and so many spreads of a gang over pools.
_SHAPES_MAX: Final = 8
_SPREADS_MAX: Final = 16
#: Room is kept for twice as long each time, but no longer than this many times as long as at first.
_DOUBLINGS_MAX: Final = 5
#: A queue rests for so many times as long as room was kept for it in vain.
_REST: Final = 3


def turn_of(state: State, claim: Claim) -> Turn | None:
    return state.turns.get(f"{Turn.kind}/{claim.key}")


# ---- turns that stand


def forget_turns(state: State) -> None:
    """Claims that have left their lines need nothing kept, and nothing is kept for who can't fit any more."""
    guarantees = Guarantees(state)
    for turn in sorted(state.turns, key=lambda turn: turn.key):
        if turn.claim not in state.forest.claims:
            if turn.rests_ms <= state.now_ms:
                drop_turn(state, turn)
            elif turn.cost:
                _keep_no_more(state, turn)
        elif turn.cost and not _still_stands(state, guarantees, turn):
            _keep_no_more(state, turn)


def drop_turn(state: State, turn: Turn) -> None:
    state.turns.drop(turn.key)
    if turn.cost:
        keep_rooms(state)
        state.pass_due = True


def served(state: State, claim: Claim) -> None:
    """A claim was admitted. If that was out of turn, because it had waited for so long, its queue has no second one
    at once."""
    turn = turn_of(state, claim)
    if turn is None:
        return
    if turn.cost and turn.is_late:
        turn.rests_ms, turn.in_vain = state.now_ms + _first_term_ms(state, turn), 0
        _keep_no_more(state, turn)
    else:
        drop_turn(state, turn)


def _keep_no_more(state: State, turn: Turn) -> None:
    turn.pools, turn.cost, turn.start_ms, turn.within, turn.is_late = (), (), 0, False, False
    state.turns.put(turn)
    keep_rooms(state)
    state.pass_due = True


def _still_stands(state: State, guarantees: Guarantees, turn: Turn) -> bool:
    """Whether the claim still asks for what is kept, at a place that could hold it, in a queue that wants that."""
    claim = state.forest.claims[turn.claim]
    leaf = state.forest.leaves[claim.line]
    spot = _spot_at(state, claim.shape, turn.pools)
    return (
        spot is not None
        and spot.cost == turn_cost(turn)
        and _wants_room(leaf)
        and guarantees.let_in(leaf, spot)
    )


def reserved_that_fits(state: State) -> tuple[Branch, Claim, Spot] | None:
    """The claim that room is kept for, once it fits into that."""
    for turn in keepers(state):
        claim = state.forest.claims[turn.claim]
        leaf = state.forest.leaves[claim.line]
        spot = _spot_at(state, claim.shape, turn.pools)
        if spot is not None and _fits(state, leaf, spot, claim.key):
            return leaf, claim, spot
    return None


def covered_that_fits(state: State) -> tuple[Branch, Claim, Spot] | None:
    """A claim that a guarantee covers, and that fits into what is kept for those whom none does."""
    uncovered = {turn.claim for turn in keepers(state) if not _is_covered(state, turn)}
    if not uncovered:
        return None
    for leaf in state.forest.leaves.values():
        if not len(leaf.line) or not any(branch.guarantees for branch in leaf.path):
            continue
        for claim in islice(state.forest.firsts(leaf), _SHAPES_MAX):
            for spot in claim.shape.spots:
                if leaf.covering(spot.cost) and _fits(state, leaf, spot, "", beside=uncovered):
                    return leaf, claim, spot
    return None


def _is_covered(state: State, turn: Turn) -> bool:
    leaf = state.forest.leaves[state.forest.claims[turn.claim].line]
    return bool(leaf.covering(turn_cost(turn)))


def _fits(state: State, leaf: Branch, spot: Spot, claim: str, beside: set[str] | None = None) -> bool:
    """Whether there is room for it with what is kept for the claim, and for those whom it may pass."""

    def free(room: Room) -> int:
        passed = sum(room.kept_for.get(other, 0) for other in beside) if beside else 0
        return room.free_for(claim) + passed

    return all(need <= free(room) for room, need in state.forest.rooms_for(leaf, spot.cost))


# ---- whose turn it is


def take_turns(state: State) -> None:
    """With each tick: note whose turn it is, and keep room for who has waited for long."""
    _give_up(state)
    for turn in keepers(state):
        _come_within(state, turn)
    guarantees = Guarantees(state)
    taken = {turn.queue for turn in keepers(state)}
    first: tuple[tuple[Any, ...], Candidate] | None = None
    for candidate in _candidates(state, guarantees, taken):
        if candidate.is_limited:
            _note(state, guarantees, candidate)
        else:
            rank = _rank(state, candidate)
            if first is None or rank < first[0]:
                first = rank, candidate
    if first is not None and not _pools_are_kept(state):
        _note(state, guarantees, first[1])


class Candidate(NamedTuple):
    leaf: Branch
    claim: Claim
    spot: Spot
    is_late: bool  # it has waited for so long that it waits for no turn any more
    is_limited: bool  # its own queues' limits keep it out


def _candidates(state: State, guarantees: Guarantees, taken: set[str]) -> Iterator[Candidate]:
    """The first claim of each queue that could ever fit, where none of the queue has room kept already."""
    resting = {turn.queue: turn for turn in state.turns if turn.rests_ms > state.now_ms}
    for leaf in state.forest.leaves.values():
        rest = resting.get(leaf.name)
        if leaf.name in taken or (rest is not None and rest.in_vain):
            continue
        found = _first_that_could_fit(state, guarantees, leaf)
        if found is not None:
            claim, spot = found
            is_late = rest is None and _is_late(state, leaf, claim) and _starves(state, leaf, claim, spot)
            limit = _limit_in_the_way(state, leaf, claim, spot)
            if limit is None or limit.branch is not leaf or not leaf.line.is_uniform:
                yield Candidate(leaf, claim, spot, is_late, is_limited=limit is not None)


def _rank(state: State, candidate: Candidate) -> tuple[Any, ...]:
    """Of all that wait, fit or not. Who has waited for a tenure beside its patience comes first: no stream of claims
    that deserve more keeps it out for ever."""
    leaf, claim, spot, is_late, _ = candidate
    at = state.forest.class_of(leaf, spot.kinds, spot.cost)
    along = tuple((*branch.rank(claim, at), branch.order) for branch in reversed(leaf.path[:-1]))
    return (not is_late, claim.created_ms if is_late else 0, along, claim.place)


def _note(state: State, guarantees: Guarantees, candidate: Candidate) -> None:
    leaf, claim, _, is_late, is_limited = candidate
    turn = turn_of(state, claim)
    if turn is None:
        turn = Turn(claim=claim.key, queue=leaf.name, since_ms=state.now_ms)
        state.turns.put(turn)
    has_waited = state.now_ms - turn.since_ms >= _patience_ms(state, leaf)
    if is_late or (has_waited and not _asks_for_more(state, candidate)):
        spots = [spot for spot in _spots(state, claim.shape) if guarantees.let_in(leaf, spot)]
        spot = min(spots, key=lambda spot: (_missing(state, leaf, spot), spot.pools))
        turn.pools, turn.cost = spot.pools, tuple((*dim, amount) for dim, amount in spot.cost)
        turn.kept_ms, turn.is_late, turn.within = state.now_ms, is_late, not is_limited
        state.turns.put(turn)
        keep_rooms(state)


def _asks_for_more(state: State, candidate: Candidate) -> bool:
    """Whether it is more by itself than its queue deserves, where that counts: room is kept for it after a tenure only,
    as long as others who do the same may hold it."""
    leaf, _, spot, *_ = candidate
    if not any(scope.policy.reclaims for scope in leaf.path[1:]):
        return False
    whole = state.forest.whole
    return any(
        (amount << FRACTION_BITS) > branch.deserved.get(kind, 0) + slack(whole.get(kind, 0))
        for branch in leaf.path[:-1]
        for kind, amount in spot.kinds
    )


def _give_up(state: State) -> None:
    for turn in keepers(state):
        term_ms = _term_ms(state, turn)
        if state.now_ms - turn.kept_ms >= term_ms:
            turn.in_vain += 1
            turn.since_ms = turn.rests_ms = state.now_ms + _REST * term_ms
            _keep_no_more(state, turn)


def _come_within(state: State, turn: Turn) -> None:
    """Once its queues' limits let the claim in, the pools keep room for it too, if they keep none for another."""
    if turn.within or _pools_are_kept(state):
        return
    claim = state.forest.claims[turn.claim]
    leaf = state.forest.leaves[claim.line]
    rooms = state.forest.rooms_for(leaf, turn_cost(turn))
    if all(need <= room.free_for(claim.key) for room, need in rooms if room.branch.parent):
        turn.within, turn.kept_ms = True, state.now_ms
        state.turns.put(turn)
        keep_rooms(state)


def _pools_are_kept(state: State) -> bool:
    return any(turn.within for turn in keepers(state))


def next_turns_ms(state: State) -> list[int]:
    """When time alone may change for whom room is kept."""
    times = []
    for turn in state.turns:
        claim = state.forest.claims.get(turn.claim)
        if turn.cost:
            times.append(turn.kept_ms + _term_ms(state, turn))
        elif claim is not None:
            times.append(
                max(turn.rests_ms, turn.since_ms + _patience_ms(state, state.forest.leaves[claim.line]))
            )
        times.append(turn.rests_ms)
    return times


def _first_term_ms(state: State, turn: Turn) -> int:
    """For so long room is kept at first."""
    leaf = state.forest.leaves.get(turn.queue)
    return state.config.tenure_ms + (state.config.patience_ms if leaf is None else _patience_ms(state, leaf))


def _term_ms(state: State, turn: Turn) -> int:
    return _first_term_ms(state, turn) << min(turn.in_vain, _DOUBLINGS_MAX)


def _patience_ms(state: State, leaf: Branch) -> int:
    facts = leaf.queue.facts if leaf.queue is not None else None
    if facts is None or facts.patience_ms is None:
        return state.config.patience_ms
    return facts.patience_ms


def _missing(state: State, leaf: Branch, spot: Spot) -> int:
    return sum(max(0, need - room.left) for room, need in state.forest.rooms_for(leaf, spot.cost))


def _is_late(state: State, leaf: Branch, claim: Claim) -> bool:
    """Whether it has waited for a tenure beside its patience, since it came or was taken back."""
    workload = workload_of(state, claim.key)
    since_ms = max(claim.created_ms, workload.barred_ms if workload is not None else 0)
    return state.now_ms - since_ms >= state.config.tenure_ms + _patience_ms(state, leaf)


def _starves(state: State, leaf: Branch, claim: Claim, spot: Spot) -> bool:
    """Whether it waits for its size: its queue has less than it deserves, or has let in what came after it. Who only
    asks for more than its queue deserves waits for its queue's own pods to end."""
    if not any(scope.policy.reclaims for scope in leaf.path[1:]):
        return True
    if leaf.is_owed(spot.kinds, state.forest.whole):
        return True
    units = state.units_of(leaf.name)
    newest = [entries[-1] for entries in (units.growth, units.gangs) if entries]
    return any(_came_ms(state, key) > claim.created_ms for *_, key in newest)


def _came_ms(state: State, key: str) -> int:
    pod = state.pods.get(key)
    if pod is not None:
        return pod.facts.created_ms
    workload = state.application_of_claim(key).workload
    return workload.in_line_ms if workload is not None else 0


def _first_that_could_fit(state: State, guarantees: Guarantees, leaf: Branch) -> tuple[Claim, Spot] | None:
    """The first claim of a line that could ever fit, and where, those before for which room was kept in vain least
    often: one that can't stands in the way of nobody, unless the line is strict."""
    if not len(leaf.line) or not _wants_room(leaf):
        return None
    found: list[tuple[int, Claim, Spot]] = []
    for claim in islice(state.forest.firsts(leaf), _SHAPES_MAX):
        spot = next((each for each in _spots(state, claim.shape) if guarantees.let_in(leaf, each)), None)
        if spot is not None:
            turn = turn_of(state, claim)
            found.append((turn.in_vain if turn is not None else 0, claim, spot))
            if not found[-1][0]:
                break
    return min(found, key=lambda each: each[0])[1:] if found else None


def _wants_room(leaf: Branch) -> bool:
    return leaf.queue is None or leaf.queue.facts.reserves


def _limit_in_the_way(state: State, leaf: Branch, claim: Claim, spot: Spot) -> Room | None:
    """Where its own queues' limits keep it out, whatever the pools have."""
    if not leaf.bounded:
        return None
    rooms = state.forest.rooms_for(leaf, spot.cost)
    short = [room for room, need in rooms if room.branch.parent and need > room.free_for(claim.key)]
    return short[-1] if short else None


class Guarantees:
    """Who could fit if nobody else held anything but what is guaranteed to others."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._any = [branch for branch in state.forest.all_branches() if branch.guarantees]

    def let_in(self, leaf: Branch, spot: Spot) -> bool:
        return all(
            need <= room.bound.amount - self._held_of(leaf, room)
            for room, need in self._state.forest.rooms_for(leaf, spot.cost)
        )

    def _held_of(self, leaf: Branch, room: Room) -> int:
        """How much of a room others hold within their guarantees. A guarantee within another counts with it."""
        if not self._any:
            return 0
        return sum(self._held_in(leaf, child, room.bound.dims) for child in room.branch.children)

    def _held_in(self, leaf: Branch, branch: Branch, dims: tuple[Dim, ...]) -> int:
        own = 0
        if branch not in leaf.path:
            for bound in branch.guarantees:
                if set(dims) <= set(bound.dims):
                    own = min(bound.amount, sum(branch.usage.get(dim, 0) for dim in dims))
        return own or sum(self._held_in(leaf, child, dims) for child in branch.children)


def _spots(state: State, shape: Shape) -> list[Spot]:
    """Where a shape may go; where each of its parts needs a pool of its own, some of the ways to do that."""
    if not shape.scattered:
        return shape.spots
    return [state.forest.spot(shape, pools) for pools in islice(shape.spreads(), _SPREADS_MAX)]


def _spot_at(state: State, shape: Shape, pools: tuple[str, ...]) -> Spot | None:
    return next((spot for spot in _spots(state, shape) if spot.pools == pools), None)
