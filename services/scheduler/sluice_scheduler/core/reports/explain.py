"""The long answer to why something waits, and what it stands behind: for `sluice explain` and simulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Cost, Shape, Spot, pod_cost
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.shares import dominant_kind
from sluice_scheduler.core.passes.kept import passable
from sluice_scheduler.core.reports.untaken import why_no_room_is_kept, why_nothing_is_taken
from sluice_scheduler.core.reports.why import RULES, Why, reason_of
from sluice_scheduler.core.state.members import queue_of, workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import turn_of
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Drain

#: From fewer ends nothing is estimated.
DRAIN_MIN: Final = 3
UNCOUNTED: Final = "; the devices of its resourceClaims are not counted: no queue is charged for them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    reason: str  # a code, CamelCase
    sentence: str
    line: str = ""  # the queue in whose line it stands; empty: in none
    position: int | None = None  # in that line, from 1
    eta_ms: int | None = None  # when it is expected to be served; None: nothing to go by


class Standing(NamedTuple):
    """Where a claim stands in its queue, from 1, and when it is expected to be served."""

    position: int | None = None
    eta_ms: int | None = None


def why(state: State, key: str) -> Answer:
    """Why the pod or workload with this key is not admitted, or that it is."""
    state.forest.settle()
    found = reason_of(state, key)
    position, eta_ms = Lines(state).standing(found)
    return Answer(
        reason=found.reason,
        sentence=_at_length(state, key, found),
        line=found.claim.line if found.claim is not None else "",
        position=position,
        eta_ms=eta_ms,
    )


def _at_length(state: State, key: str, found: Why) -> str:
    """The short answer, and what changes with each pod that ends."""
    sentence = found.sentence + found.more
    workload, pod = state.workloads.get(key), state.pods.get(key)
    if workload is not None and workload.admitted and (found.claim is not None or found.promised):
        sentence = f"{workload.name} is admitted in {workload.queue}; {sentence}"
    if found.promised:
        leaving = sum(1 for keys in state.evicting.values() for each in keys if state.pod(each).holds)
        sentence += f", {leaving} in all"
    if found.claim is not None and found.spot is not None:
        leaf = state.forest.leaves[found.claim.line]
        sentence += _standing(state, leaf, found.spot)
        if found.reason not in RULES:
            sentence += why_nothing_is_taken(state, leaf, found.claim, found.spot)
            sentence += why_no_room_is_kept(state, leaf, found.claim, found.spot)
        sentence += _ends_before(state, leaf, found.claim, found.spot)
    if pod is not None and pod.facts.claims_devices:
        sentence += UNCOUNTED
    return sentence


def _standing(state: State, leaf: Branch, spot: Spot) -> str:
    """How far its queue is from what it deserves."""
    if not leaf.deserved:
        return f"; {leaf.name} deserves nothing yet"
    whole = state.forest.whole
    kind = dominant_kind(dict(spot.kinds), whole)
    held, deserved = leaf.shares_told(whole, kind or ("", ""))
    return f"; {leaf.name} has {held} by weight and deserves {deserved}"


def _ends_before(state: State, leaf: Branch, claim: Claim, spot: Spot) -> str:
    """How many of its queue's pods must have ended for it to fit under every bound, whichever of them end and
    whatever those before it in line take; nothing where that alone does not make room. What is evicted or deleted
    leaves in any case: its room is not waited for once more."""
    pods = [state.pod(key) for key in state.holders.get(leaf.name, ())]
    deleted = [pod_cost(pod) for pod in pods if pod.facts.deleting and not pod.evicting]
    needs = _missing(state, leaf, claim, spot)
    missing = {room: amount - _leaving(room, deleted) for room, amount in needs.items()}
    missing = {room: amount for room, amount in missing.items() if amount > 0}
    if needs and not missing:
        return "; it fits once those are gone that leave already" + _if_left(state, leaf, claim, needs)
    costs = [pod_cost(pod) for pod in pods if not (pod.evicting or pod.facts.deleting)]
    costs = [each for each in costs if any(room.bound.part(each) for room in missing)]
    ends = [_ends_for(amount, (room.bound.part(each) for each in costs)) for room, amount in missing.items()]
    if not ends or None in ends:
        return ""
    count = max(end for end in ends if end is not None)
    resources = " or ".join(sorted({room.bound.dims[0][2] for room in missing}))
    have = "has" if count == 1 else "have"
    condition = _if_left(state, leaf, claim, missing)
    return f"; it fits once {count} of {leaf.name}'s pods with {resources} {have} ended{condition}"


def _leaving(room: Room, deleted: Iterable[Cost]) -> int:
    """How much of a room evicted pods still take, beyond what is promised to others, and these."""
    evicted = sum(max(0, room.branch.leaving.get(dim, 0)) for dim in room.bound.dims)
    return evicted + sum(map(room.bound.part, deleted))


def _if_left(state: State, leaf: Branch, claim: Claim, rooms: Collection[Room]) -> str:
    return ", if others leave it the room" if _is_contested(state, leaf, claim, rooms) else ""


def _missing(state: State, leaf: Branch, claim: Claim, spot: Spot) -> dict[Room, int]:
    """What a claim lacks, by room. Those before it in line take what they ask for, or what is kept for them: not
    both. While room is kept for the claim itself, it waits for none of them."""
    turn = turn_of(state, claim.key)
    has_turn = turn is not None and bool(turn.cost)
    before = [] if has_turn else [other for other in leaf.line if other.place < claim.place]
    passed = passable(state) if leaf.covering(spot.cost) else set()
    missing: dict[Room, int] = {}
    for room, asked in state.forest.rooms_for(leaf, spot.cost):
        kept = room.kept_for.keys() - passed
        shapes = Counter(other.shape for other in before if other.key not in kept)
        taken = sum(times * _most_of(state, shape, room.bound) for shape, times in shapes.items())
        left = room.free_for(claim.key) if has_turn else room.left_beside(passed)
        if asked and asked + taken > left:
            missing[room] = asked + taken - left
    return missing


def _most_of(state: State, shape: Shape, bound: Bound) -> int:
    return max((bound.part(spot.cost) for spot in state.forest.spots_of(shape)), default=0)


def _ends_for(missing: int, held: Iterable[int]) -> int | None:
    """How many ends free so much even if the smallest end first; None if all together do not."""
    freed = accumulate(sorted(held))
    return next((count for count, total in enumerate(freed, start=1) if total >= missing), None)


def _is_contested(state: State, leaf: Branch, claim: Claim, rooms: Collection[Room]) -> bool:
    """Whether somebody who does not stand before it in line might take the room."""
    for shape in state.forest.shapes.values():
        asked = [room for room in rooms if _most_of(state, shape, room.bound)]
        others = [other for other in shape.lines if other is not leaf]
        if any(_may_take(other, room, claim) for other in others for room in asked):
            return True
    if leaf.line.strict or all(claim.key in room.kept_for for room in rooms):
        return False
    return any(other.place > claim.place and other.shape is not claim.shape for other in leaf.line)


def _may_take(leaf: Branch, room: Room, claim: Claim) -> bool:
    """What is kept for a claim is passed by nobody but those whom a guarantee covers."""
    if room.branch not in leaf.path:
        return False
    return claim.key not in room.kept_for or any(branch.may_cover for branch in leaf.path)


def _eta(state: State, queue: str, position: int) -> int | None:
    """By how fast its queue's pods have ended in the last minutes; nothing where too few have, or none is left."""
    if not state.forest.leaves[queue].usage:
        return None
    drain = state.drains.get(f"{Drain.kind}/{queue}")
    ends, in_ms = drain.pace(state.cell.time_ms) if drain is not None else (0, 0)
    return state.cell.time_ms + position * in_ms // ends if ends >= DRAIN_MIN else None


class Lines:
    """Where claims stand in their queues: worked out once for all that is told at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._positions: dict[str, dict[str, int]] = {}  # by queue and claim

    def standing(self, found: Why) -> Standing:
        claim = found.claim
        if claim is None:
            return Standing(eta_ms=found.eta_ms)
        if claim.line not in self._positions:
            line = sorted(self._state.forest.leaves[claim.line].line, key=lambda each: each.place)
            self._positions[claim.line] = {each.key: at for at, each in enumerate(line, start=1)}
        position = self._positions[claim.line][claim.key]
        if found.never_fits:
            return Standing(position)
        return Standing(position, found.eta_ms or _eta(self._state, claim.line, position))


def waiting(state: State, queue: str) -> list[str]:
    """Keys of what waits in a queue and below it: what has a promise, what stands in line, what can't,
    and what is set aside."""
    state.forest.settle()
    found: list[str] = []
    for name, leaf in _leaves_of(state, queue).items():
        promised = sorted((p for p in state.promises if p.queue == name), key=attrgetter("made"))
        misdirected = sorted(key for key in state.misdirected if state.pod(key).queue == name)
        in_line = sorted(leaf.line, key=lambda claim: claim.place)
        aside = sorted(each.what for each in state.asides if queue_of(state, each.what) == name)
        found += [*(p.claim for p in promised), *(claim.key for claim in in_line), *misdirected, *aside]
    return found


def by_application(state: State, waits: Iterable[str]) -> dict[str, int]:
    """What waits, and as how many claims: the growth of an application is told of with it, and once."""
    told: Counter[str] = Counter()
    for key in waits:
        stands = key in state.forest.claims or state.promise_for(key) is not None
        workload = workload_of(state, key) if stands else None
        told[workload.key if workload is not None else key] += 1
    return dict(told)


def pausing(state: State, queue: str) -> list[str]:
    """Keys of what stands in no line for a while, in a queue and below it: applications that pause, or whose pods are
    refused, and pods that could not be admitted."""
    leaves = _leaves_of(state, queue)
    applications = [each for each in state.workloads if each.queue in leaves and not each.facts.finished]
    pauses = [each.key for each in applications if (each.job.refusal if each.admitted else each.retry_ms)]
    pods = (state.pod(key) for key in state.retries)
    return sorted(pauses) + sorted(pod.key for pod in pods if pod.queue in leaves and pod.phase == "Waiting")


def _leaves_of(state: State, queue: str) -> dict[str, Branch]:
    branch = state.forest.branch(queue)
    leaves = state.forest.leaves.items()
    return {name: leaf for name, leaf in leaves if branch is not None and branch in leaf.path}


def keys_of(state: State, namespace: str, name: str) -> list[str]:
    """Keys of the workloads and pods that bear this name, workloads first."""
    accounts: tuple[Workload | Pod, ...] = (*state.workloads, *state.pods)
    return [each.key for each in accounts if (each.namespace, each.name) == (namespace, name)]
