"""The long answer to why something waits, and what it stands behind: for `sluice explain` and simulations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Final, NamedTuple

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Shape, pod_cost
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.shares import as_percent
from sluice_scheduler.core.reports.why import Why, reason_of
from sluice_scheduler.core.state.members import queue_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Drain

#: From fewer ends nothing is estimated.
DRAIN_MIN: Final = 3
UNCOUNTED: Final = "; the devices of its resourceClaims are not counted: no queue is charged for them"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    reason: str  # a code, CamelCase
    sentence: str
    position: int | None = None  # in its queue, from 1; None: it stands in no line
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
        reason=found.reason, sentence=_at_length(state, key, found), position=position, eta_ms=eta_ms
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
    if found.claim is not None and found.bound is not None:
        leaf = state.forest.leaves[found.claim.line]
        before = [other for other in leaf.line if other.place < found.claim.place]
        sentence += _standing(state, leaf) + _ends_before(state, leaf, found.claim, before)
    if pod is not None and pod.facts.claims_devices:
        sentence += UNCOUNTED
    return sentence


def _standing(state: State, leaf: Branch) -> str:
    """How far its queue is from what it deserves."""
    if not leaf.deserved:
        return f"; {leaf.name} deserves nothing yet"
    held, deserved = as_percent(leaf.share), as_percent(leaf.deserved_share(state.forest.whole))
    return f"; {leaf.name} has {held} by weight and deserves {deserved}"


def _ends_before(state: State, leaf: Branch, claim: Claim, before: Iterable[Claim]) -> str:
    """How many of its queue's pods must have ended for it to fit under every bound, whichever of them end and
    whatever those before it in line take; nothing where that alone does not make room."""
    spot = state.forest.any_spot(claim.shape)
    assert spot is not None, f"{claim.key} is short of a bound without a place"
    cost = spot.cost
    shapes = Counter(other.shape for other in before)
    missing: dict[Room, int] = {}
    for room, asked in state.forest.rooms_for(leaf, cost):
        taken = sum(times * _most_of(shape, room.bound) for shape, times in shapes.items())
        if asked and asked + taken > room.left:
            missing[room] = asked + taken - room.left
    pods = [state.pod(key) for key in state.holders.get(leaf.name, ())]
    costs = [pod_cost(pod) for pod in pods if not pod.evicting]
    costs = [each for each in costs if any(room.bound.part(each) for room in missing)]
    ends = [_ends_for(amount, (room.bound.part(each) for each in costs)) for room, amount in missing.items()]
    if not ends or None in ends:
        return ""
    count = max(end for end in ends if end is not None)
    resources = " or ".join(sorted({room.bound.dims[0][2] for room in missing}))
    have = "has" if count == 1 else "have"
    condition = ", if others leave it the room" if _is_contested(state, leaf, claim, missing) else ""
    return f"; it fits once {count} of {leaf.name}'s pods with {resources} {have} ended{condition}"


def _most_of(shape: Shape, bound: Bound) -> int:
    return max((bound.part(spot.cost) for spot in shape.spots), default=0)


def _ends_for(missing: int, held: Iterable[int]) -> int | None:
    """How many ends free so much even if the smallest end first; None if all together do not."""
    freed = accumulate(sorted(held))
    return next((count for count, total in enumerate(freed, start=1) if total >= missing), None)


def _is_contested(state: State, leaf: Branch, claim: Claim, rooms: Iterable[Room]) -> bool:
    """Whether somebody who does not stand before it in line might take the room."""
    for shape in state.forest.shapes.values():
        asks = any(room.bound.part(spot.cost) for spot in shape.spots for room in rooms)
        if asks and any(
            other is not leaf and _shares(other, room) for other in shape.lines for room in rooms
        ):
            return True
    behind = (other for other in leaf.line if other.place > claim.place)
    return not leaf.line.strict and any(other.shape is not claim.shape for other in behind)


def _shares(leaf: Branch, room: Room) -> bool:
    return room.branch in leaf.path


def _eta(state: State, queue: str, position: int) -> int | None:
    """By how fast its queue's pods have ended in the last minutes; nothing where too few have."""
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
    branch = state.forest.branch(queue)
    found: list[str] = []
    for name, leaf in state.forest.leaves.items():
        if branch is not None and branch in leaf.path:
            promised = sorted((p for p in state.promises if p.queue == name), key=attrgetter("made"))
            misdirected = sorted(key for key in state.misdirected if state.pod(key).queue == name)
            in_line = sorted(leaf.line, key=lambda claim: claim.place)
            aside = sorted(each.what for each in state.asides if queue_of(state, each.what) == name)
            found += [*(p.claim for p in promised), *(claim.key for claim in in_line), *misdirected, *aside]
    return found


def keys_of(state: State, namespace: str, name: str) -> list[str]:
    """Keys of the workloads and pods that bear this name, workloads first."""
    accounts: tuple[Workload | Pod, ...] = (*state.workloads, *state.pods)
    return [each.key for each in accounts if (each.namespace, each.name) == (namespace, name)]
