"""Reservation by turn: so that large claims start, whatever stream of small ones there is.

The claim whose turn it is, and that does not fit, is noted. If it is its turn still, or again, after its
queue's patience, what becomes free is kept for it until it fits; others are served with what it does not need,
or if they say that they end before it starts (backfill.py). What a guarantee covers passes it. Who waits for its size
alone has its turn out of order once it has waited for a tenure beside its patience. It has what it holds for as long;
and then its queue has no such turn again before it has had, in all that time, no more than it deserves.

The pools keep room for one claim at a time. Behind limits of its own queues that keep it out, room is kept for one
claim of each queue beside that: it stands in nobody's way but theirs.

Nobody has room kept for ever, for those whom it waits for may never end. After a while it is given up, and next time
it is kept for twice as long: so what has an end is waited out. Whenever room was kept for nothing, for whatever reason
that came to an end, the pools rest for three times as long (behind a limit, the queue): so no more than a quarter of
the time is lost. The queue waits anew from then on, with all its claims: each queue has one try before another has two.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import FRACTION_BITS, slack
from sluice_scheduler.core.passes.guarantees import Guarantees
from sluice_scheduler.core.passes.kept import spot_at
from sluice_scheduler.core.state.members import holds, workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import (
    keep_rooms,
    keepers,
    lasts_ms,
    patience_ms,
    pools_rested_ms,
    turn_cost,
    turn_of,
)
from sluice_scheduler.core.stored.entities import Turn

#: So many of a queue's shapes are compared.
_SHAPES_MAX: Final = 256
#: Room is kept for twice as long each time, but no longer than this many times as long as at first.
_DOUBLINGS_MAX: Final = 5
#: After room was kept in vain the pools rest for so many times as long.
_REST: Final = 3
#: Who has had this many times what it deserves rests no longer for more.
_TIMES_MAX: Final = 1_000


# ---- turns that stand


def forget_turns(state: State, *, ticks: bool) -> None:
    """Claims that have left their lines need nothing kept; and with each tick, nothing is kept for who can't fit any
    more, and what time has ended is forgotten: a pass follows each tick while there are turns."""
    guarantees, rested = Guarantees(state), pools_rested_ms(state)
    ended = []
    for turn in sorted(state.turns, key=lambda turn: turn.key):
        if turn.served_ms and not holds(state, turn.claim):
            _settle(state, turn)
        if turn.claim not in state.forest.claims:
            if turn.cost:
                ended.append(turn)
            elif ticks and _is_over(state, turn, rested):
                state.turns.drop(turn.key)
        elif turn.cost and ticks and not _still_stands(state, guarantees, turn):
            ended.append(turn)
    _keep_no_more(state, ended)


def served(state: State, claim: str) -> None:
    """A claim was admitted, or promised what others leave. If that was out of turn, because it had waited for so long,
    its queue has no second one before that is made up for."""
    turn = turn_of(state, claim)
    if turn is None:
        return
    was_kept = bool(turn.cost)
    if was_kept and turn.is_late:
        turn.served_ms = state.now_ms
        turn.even_ms = state.now_ms + lasts_ms(state, turn) * _times_its_share(state, turn)
    _clear(turn)
    state.turns.put(turn)
    if _is_over(state, turn, pools_rested_ms(state)):
        state.turns.drop(turn.key)
    if was_kept:
        keep_rooms(state)
        state.pass_due = True


def _is_over(state: State, turn: Turn, rested: dict[str, int]) -> bool:
    """Whether nothing goes by a turn any more whose claim has left its line. As long as others of its queue wait, these
    stand where its last try in vain has put the queue: or who deletes what had one would have the next at once."""
    if max(turn.rests_ms, turn.even_ms) > state.now_ms:
        return False
    leaf = state.forest.leaves.get(turn.queue)
    is_last = turn.within and turn.rests_ms == rested.get(turn.queue)
    return not is_last or leaf is None or not len(leaf.line)


def _settle(state: State, turn: Turn) -> None:
    """A claim that was let in out of turn holds nothing any more. It makes up only for the time in which it held."""
    had_ms = min(state.now_ms - turn.served_ms, lasts_ms(state, turn))
    turn.even_ms = turn.served_ms + (turn.even_ms - turn.served_ms) * had_ms // max(1, lasts_ms(state, turn))
    turn.served_ms = 0
    state.turns.put(turn)


def _keep_no_more(state: State, ended: list[Turn]) -> None:
    """What was kept for these was kept in vain."""
    for turn in ended:
        turn.rests_ms = turn.since_ms = state.now_ms + _REST * (state.now_ms - turn.kept_ms)
        _clear(turn)
        state.turns.put(turn)
    if ended:
        keep_rooms(state)
        state.pass_due = True


def _clear(turn: Turn) -> None:
    """`within` stays: whether it is the pools that rest."""
    turn.pools, turn.cost, turn.start_ms, turn.is_late = (), (), 0, False


def _times_its_share(state: State, turn: Turn) -> int:
    """How many times as much a claim asks for as its queues deserve, of the kind where that is most. 1 where shares
    don't count."""
    leaf = state.forest.leaves.get(turn.queue)
    if leaf is None or not _reclaims(leaf):
        return 1
    kinds = state.forest.kind_of.cost(turn_cost(turn))
    times = (
        -(-(amount << FRACTION_BITS) // max(1, branch.deserved.get(kind, 0)))
        for branch in leaf.path[:-1]
        for kind, amount in kinds
    )
    return min(_TIMES_MAX, max(times, default=1))


def _still_stands(state: State, guarantees: Guarantees, turn: Turn) -> bool:
    """Whether the claim still asks for what is kept, at a place that could hold it, in a queue that wants that."""
    claim = state.forest.claims[turn.claim]
    leaf = state.forest.leaves[claim.line]
    spot = spot_at(state, claim.shape, turn.pools)
    return (
        spot is not None
        and spot.cost == turn_cost(turn)
        and _wants_room(leaf)
        and guarantees.let_in(leaf, spot.cost)
    )


# ---- whose turn it is


def take_turns(state: State) -> None:
    """With each tick: note whose turn it is, and keep room for who has waited for long."""
    _give_up(state)
    _come_within(state)
    guarantees, rested = Guarantees(state), pools_rested_ms(state)
    first: tuple[tuple[Any, ...], Candidate] | None = None
    limited: list[Candidate] = []
    for candidate in _candidates(state, guarantees):
        if candidate.is_limited:
            limited.append(candidate)
            continue
        rank = _rank(state, candidate, rested.get(candidate.leaf.name, 0))
        if first is None or rank < first[0]:
            first = rank, candidate
    noted = [_note(state, guarantees, candidate) for candidate in limited]
    if first is not None and not _pools_are_kept(state):
        noted.append(_note(state, guarantees, first[1]))
    if any(noted):
        keep_rooms(state)


class Candidate(NamedTuple):
    leaf: Branch
    claim: Claim
    spot: Spot
    is_late: bool  # it has waited for so long that it waits for no turn any more
    is_limited: bool  # its own queues' limits keep it out


def _candidates(state: State, guarantees: Guarantees) -> Iterator[Candidate]:
    """The first claim of each queue that could ever fit, where none of the queue has room kept already."""
    taken = {turn.queue for turn in keepers(state)}
    taken.update(turn.queue for turn in state.turns if turn.rests_ms > state.now_ms and not turn.within)
    ahead = {turn.queue for turn in state.turns if turn.even_ms > state.now_ms}
    for leaf in state.forest.leaves.values():
        found = _first_that_could_fit(state, guarantees, leaf) if leaf.name not in taken else None
        if found is None:
            continue
        claim, spot = found
        may_be = leaf.name not in ahead and state.now_ms >= late_from_ms(state, leaf, claim)
        is_late = may_be and _starves(state, leaf, claim, spot)
        limit = _limit_in_the_way(state, leaf, claim, spot)
        if limit is None or limit.branch is not leaf or not leaf.line.is_uniform:
            yield Candidate(leaf, claim, spot, is_late, is_limited=limit is not None)


def _rank(state: State, candidate: Candidate, rested_ms: int) -> tuple[Any, ...]:
    """Of all that wait, fit or not. Who has waited for a tenure beside its patience comes first: no stream of claims
    that deserve more keeps it out for ever. `rested_ms`: until when the pools rested after its queue's last try."""
    leaf, claim, spot, is_late, _ = candidate
    at = state.forest.class_of(leaf, spot.kinds, spot.cost)
    along = tuple((*branch.rank(claim, at), branch.order) for branch in reversed(leaf.path[:-1]))
    since_ms = max(rested_ms, _waits_since_ms(state, claim))
    return (not is_late, since_ms if is_late else 0, along, claim.place)


def _waits_since_ms(state: State, claim: Claim) -> int:
    """Who had room kept in vain waits anew from the end of the rest on: others had not."""
    turn = turn_of(state, claim.key)
    return max(claim.created_ms, turn.since_ms if turn is not None and turn.rests_ms else 0)


def _note(state: State, guarantees: Guarantees, candidate: Candidate) -> bool:
    """Whether room is kept for it from now on."""
    leaf, claim, _, is_late, is_limited = candidate
    turn = turn_of(state, claim.key)
    if turn is None:
        turn = Turn(claim=claim.key, queue=leaf.name, since_ms=state.now_ms)
        state.turns.put(turn)
    if turn.rests_ms > state.now_ms or (not is_limited and _pools_rest(state)):
        return False
    has_waited = state.now_ms - turn.since_ms >= patience_ms(state, leaf.name)
    if not is_late and (not has_waited or asks_for_more(state, leaf, candidate.spot)):
        return False
    known = (candidate.spot, *state.forest.spots_of(claim.shape))
    spots = [spot for spot in known if guarantees.let_in(leaf, spot.cost)] or [candidate.spot]
    spots = list({spot.pools: spot for spot in spots}.values())
    # Where it was kept in vain, those who stand there may never end: then elsewhere.
    spots.sort(key=lambda spot: (_missing(state, leaf, spot), spot.pools))
    spot = spots[turn.in_vain % len(spots)]
    turn.pools, turn.cost = spot.pools, tuple((*dim, amount) for dim, amount in spot.cost)
    turn.kept_ms, turn.is_late, turn.within = state.now_ms, is_late, not is_limited
    state.turns.put(turn)
    return True


def asks_for_more(state: State, leaf: Branch, spot: Spot) -> bool:
    """Whether it is more by itself than its queue deserves, where that counts: room is kept for it after a tenure only,
    as long as others who do the same may hold it."""
    whole = state.forest.whole
    return _reclaims(leaf) and any(
        (amount << FRACTION_BITS) > branch.deserved.get(kind, 0) + slack(whole.get(kind, 0))
        for branch in leaf.path[:-1]
        for kind, amount in spot.kinds
    )


def _reclaims(leaf: Branch) -> bool:
    return any(scope.policy.reclaims for scope in leaf.path[1:])


def _give_up(state: State) -> None:
    ended = [turn for turn in keepers(state) if state.now_ms - turn.kept_ms >= _term_ms(state, turn)]
    for turn in ended:
        turn.in_vain += 1
    _keep_no_more(state, ended)


def _come_within(state: State) -> None:
    """Once its queues' limits let a claim in, the pools keep room for it too, if they keep none for another."""
    if _pools_are_kept(state) or _pools_rest(state):
        return
    for turn in keepers(state):
        claim = state.forest.claims[turn.claim]
        rooms = state.forest.rooms_for(state.forest.leaves[claim.line], turn_cost(turn))
        if all(need <= room.free_for(claim.key) for room, need in rooms if room.branch.parent):
            turn.within, turn.kept_ms = True, state.now_ms
            state.turns.put(turn)
            keep_rooms(state)
            return


def _pools_are_kept(state: State) -> bool:
    return any(turn.within for turn in keepers(state))


def _pools_rest(state: State) -> bool:
    return any(turn.within and turn.rests_ms > state.now_ms for turn in state.turns)


def next_turns_ms(state: State) -> list[int]:
    """When time alone may change for whom room is kept."""
    times = []
    for turn in state.turns:
        claim = state.forest.claims.get(turn.claim)
        if turn.cost:
            times.append(turn.kept_ms + _term_ms(state, turn))
        elif claim is not None:
            times.append(max(turn.rests_ms, turn.since_ms + patience_ms(state, claim.line)))
        times += [turn.rests_ms, turn.even_ms]
        if turn.served_ms:
            times.append(turn.served_ms + lasts_ms(state, turn))
    return times


def _term_ms(state: State, turn: Turn) -> int:
    return lasts_ms(state, turn) << min(turn.in_vain, _DOUBLINGS_MAX)


def _missing(state: State, leaf: Branch, spot: Spot) -> int:
    return sum(max(0, need - room.left) for room, need in state.forest.rooms_for(leaf, spot.cost))


def late_from_ms(state: State, leaf: Branch, claim: Claim) -> int:
    """When it will have waited for a tenure beside its patience, since it came or was taken back."""
    workload = workload_of(state, claim.key)
    since_ms = max(claim.created_ms, workload.barred_ms if workload is not None else 0)
    return since_ms + state.config.tenure_ms + patience_ms(state, leaf.name)


def _starves(state: State, leaf: Branch, claim: Claim, spot: Spot) -> bool:
    """Whether it waits for its size: its queue has less than it deserves, or has let in what came after it. Who only
    asks for more than its queue deserves waits for its queue's own pods to end."""
    if not _reclaims(leaf) or leaf.is_owed(spot.kinds, state.forest.whole):
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
    """The first claim of a line that could ever fit, and where. Claims for which room was kept in vain less often come
    first. A claim that can never fit is passed over, unless the line is strict."""
    if not len(leaf.line) or not _wants_room(leaf):
        return None
    could_fit = (
        (claim, spot)
        for claim in islice(state.forest.firsts(leaf), _SHAPES_MAX)
        if (spot := guarantees.place(leaf, claim.shape)) is not None
    )
    found: list[tuple[int, Claim, Spot]] = []
    for claim, spot in could_fit:
        turn = turn_of(state, claim.key)
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
