"""Why something waits: pure functions of the state, for `sluice explain` and statuses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, NamedTuple

from sluice.quantities import format_amount

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Shape, Spot, pod_cost
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.fairness.shares import as_percent
from sluice_scheduler.core.passes.claimants import is_barred
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.conditions import set_aside_because
from sluice_scheduler.core.state.members import part_of_application, queue_of, workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Drain

#: From fewer ends nothing is estimated.
DRAIN_MIN: Final = 3
NO_POOL: Final = "no pool has a node that its node selector allows: change the selector, or add a pool"
#: Of what no pod's end lets in nothing is estimated.
NEVER_FITS: Final = frozenset({"NoPool", "NoSuchResource", "TooLarge"})
#: Nobody came for what an application was granted.
NO_SHOW: Final = "NobodyCame"
UNCOUNTED: Final = "; the devices of its resourceClaims are not counted: no queue is charged for them"
STILL_LEAVING: Final = "it was taken back, and its pods are still leaving"


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
    answer, pod = _why(state, key), state.pods.get(key)
    if pod is not None and pod.facts.claims_devices:
        return replace(answer, sentence=answer.sentence + UNCOUNTED)
    return answer


def _why(state: State, key: str) -> Answer:
    aside = set_aside_because(state, key) or set_aside_because(state, part_of_application(state, key))
    if aside:
        return Answer(reason="SetAside", sentence=aside)
    claim = state.forest.claims.get(key)
    if claim is not None:
        return _why_in_line(state, claim)
    promise = state.promise_for(key)
    if promise is not None:
        return _why_promised(state)
    account = state.pods.get(key) or state.workloads.get(key)
    if account is None:
        return Answer(reason="Unknown", sentence=f"{key} is not known here")
    if account.problem:
        return Answer(reason="Problem", sentence=account.problem)
    return _why_workload(state, account) if isinstance(account, Workload) else _why_pod(state, account)


def _why_in_line(state: State, claim: Claim) -> Answer:
    state.forest.settle()
    leaf = state.forest.leaves[claim.line]
    before = [other for other in leaf.line if other.place < claim.place]
    position = 1 + len(before)
    reason, sentence = why_short(state, leaf, claim)
    if reason in NEVER_FITS:
        return Answer(reason=reason, sentence=sentence, position=position)
    spot = state.forest.any_spot(claim.shape)
    bound = state.forest.short_of(leaf, spot.cost) if spot is not None else None
    if leaf.line.strict and before:
        reason = "BehindFirst"
        stand = "1 claim stands" if len(before) == 1 else f"{len(before)} claims stand"
        sentence = f"{leaf.name} serves strictly in order, and {stand} before it"
    elif bound is not None:
        sentence += _standing(state, leaf) + _ends_before(state, leaf, claim, before)
    sentence += had_its_turn(state.workloads.get(claim.key))
    return Answer(
        reason=reason, sentence=sentence, position=position, eta_ms=_eta(state, claim.line, position)
    )


def had_its_turn(workload: Workload | None) -> str:
    """That nobody came for what was granted to one that is in line again."""
    return f"; before that, {workload.no_show}" if workload is not None and workload.no_shows else ""


def why_short(state: State, leaf: Branch, claim: Claim) -> tuple[str, str]:
    """What a claim in line is short of: a reason, and a sentence that stays true for long."""
    spot = state.forest.any_spot(claim.shape)
    if spot is None:
        return _why_nowhere(state, claim.shape)
    bound = state.forest.short_of(leaf, spot.cost)
    if bound is None:
        return "NextPass", "it fits, and is served when its turn comes"
    resource = bound.dims[0][2]
    whole = _smaller_than(state, claim.shape, leaf)
    if whole is not None:
        return "TooLarge", _too_large(spot, whole)
    asked = format_amount(resource, bound.part(spot.cost))
    may_push = "; it lost pods before and takes none from others now" if is_barred(state, claim) else ""
    return (
        "NoRoom" if bound.name.startswith("pool ") else "OverLimit",
        f"waits for {asked} {resource} under {bound.name}{may_push}",
    )


def _why_nowhere(state: State, shape: Shape) -> tuple[str, str]:
    """Why no pool has a node for some part of it."""
    places = state.places
    for part in shape.parts:
        pools = places.pools_for(part.cluster, dict(part.node_selector))
        if not pools:
            return "NoPool", NO_POOL
        if places.pools_holding(part.cluster, part.node_selector, part.requests):
            continue
        where = f"pool {pools[0]}" if len(pools) == 1 else f"pools {', '.join(pools)}"
        for resource, amount in part.requests:
            largest = places.largest(part.cluster, part.node_selector, resource)
            if amount and not largest:
                return "NoSuchResource", f"{where} has no {resource}: take it out, or add nodes with it"
            if amount > largest:
                asked, there_is = format_amount(resource, amount), format_amount(resource, largest)
                return "TooLarge", (
                    f"a pod of it asks for {asked} {resource}, more than any node of {where} can hold "
                    f"({there_is} at most): ask for less, or add larger nodes"
                )
        return "TooLarge", f"no node of {where} is large enough for a pod of it in every resource at once"
    return "NoPool", NO_POOL


def _smaller_than(state: State, shape: Shape, leaf: Branch) -> Bound | None:
    """The bound of the first place that a claim could never get under; none where one would let it in."""
    found = [
        next((r.bound for r, need in state.forest.rooms_for(leaf, spot.cost) if need > r.bound.amount), None)
        for spot in shape.spots
    ]
    return found[0] if found and None not in found else None


def _too_large(spot: Spot, bound: Bound) -> str:
    resource = bound.dims[0][2]
    asks = f"asks for {format_amount(resource, bound.part(spot.cost))} {resource} at once, more than"
    if bound.name.startswith("pool "):
        there_is = format_amount(resource, max(0, bound.amount))
        return f"{asks} {bound.name}, {there_is} in all: ask for less, or add nodes"
    return f"{asks} {bound.name}: ask for less, or raise that"


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


def _why_promised(state: State) -> Answer:
    leaving = sum(1 for keys in state.evicting.values() for key in keys if state.pod(key).holds)
    return Answer(
        reason="VictimsLeaving",
        sentence=f"room was made for it: {leaving} evicted pods are still leaving",
    )


def _why_workload(state: State, workload: Workload) -> Answer:
    if workload.facts.finished:
        return Answer(reason="Finished", sentence=f"{workload.name} has ended")
    if workload.admitted and workload.job.refusal:
        return Answer(reason="PodRefused", sentence=workload.job.refusal)
    if workload.no_show and (workload.admitted or workload.retry_ms):
        again = (
            "" if workload.admitted else "; it pauses, and is in line again then, or when a pod of it comes"
        )
        return Answer(reason=NO_SHOW, sentence=workload.no_show + again, eta_ms=workload.retry_ms or None)
    if workload.admitted:
        come = "1 pod" if workload.unclaimed == 1 else f"{workload.unclaimed} pods"
        still = f"; {come} that it was granted still must come" if workload.unclaimed else ""
        return Answer(reason="Admitted", sentence=f"{workload.name} is admitted in {workload.queue}{still}")
    if workload.seq in state.evicting:
        return Answer(reason="Leaving", sentence=f"{workload.name} waits: {STILL_LEAVING}")
    return Answer(reason="Starting", sentence=f"{workload.name} has just arrived")


def _why_pod(state: State, pod: Pod) -> Answer:
    if pod.holds:
        leaving = ", and is being taken back" if pod.evicting else ""
        return Answer(reason="Admitted", sentence=f"{pod.name} is admitted in pool {pod.pool}{leaving}")
    if pod.phase == "Withdrawn":
        return Answer(reason="Finished", sentence=f"{pod.name} has ended")
    if pod.retry_ms:
        left = "its application is gone, and it should go too; if it does not, it stands for itself"
        return Answer(
            reason="Retry",
            sentence="its admission could not be written; it is offered again" if pod.admitted_ms else left,
            eta_ms=pod.retry_ms,
        )
    app = state.application_of(pod)
    if app is not None and app.admitted and pod.pod_set in app.replicated:
        return _why_in_replica(state, app, pod.pod_set)
    workload = workload_of(state, pod.key)
    if workload is not None:
        whole = why(state, workload.key)
        return Answer(
            reason="WaitsForGang",
            sentence=f"{workload.name} is not admitted yet: {whole.sentence}",
            position=whole.position,
            eta_ms=whole.eta_ms,
        )
    return _why_alone(pod, app)


def _why_alone(pod: Pod, app: Application | None) -> Answer:
    """It stands in no line, and no application of its own is known."""
    if app is None:
        reason, sentence = "Starting", f"{pod.name} has just arrived"
    elif pod.facts.group_size:
        there = sum(len(book.waiting) + len(book.holding) for book in app.books.values())
        reason = "WaitsForGroup"
        sentence = f"{there} of the {app.group_size} pods of its group {pod.application} are there"
    elif pod.application.startswith("PodGroup/"):
        reason = "NoGroupSize"
        sentence = (
            f"its group {pod.application} has no size: create its pods anew with the annotation "
            "sluice.dev/pod-group-size"
        )
    else:
        reason = "NoWorkload"
        sentence = (
            f"it names the workload {pod.application}, which does not exist: create it, or take the label off"
        )
    return Answer(reason=reason, sentence=sentence)


def _why_in_replica(state: State, app: Application, pod_set: str) -> Answer:
    key = app.replica_key(pod_set)
    claim = state.forest.claims.get(key)
    sentence = "some of the next one are not there yet"
    if claim is not None:
        _, sentence = why_short(state, state.forest.leaves[claim.line], claim)
    elif state.promise_for(key) is not None:
        sentence = _why_promised(state).sentence
    return Answer(
        reason="WaitsForReplica",
        sentence=f"{app.replica_size(pod_set)} {pod_set} pods are one replica and open together: {sentence}",
    )


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

    def standing(self, claim: Claim | None) -> Standing:
        if claim is None:
            return Standing()
        if claim.line not in self._positions:
            line = sorted(self._state.forest.leaves[claim.line].line, key=lambda each: each.place)
            self._positions[claim.line] = {each.key: at for at, each in enumerate(line, start=1)}
        position = self._positions[claim.line][claim.key]
        reason, _ = why_short(self._state, self._state.forest.leaves[claim.line], claim)
        eta_ms = None if reason in NEVER_FITS else _eta(self._state, claim.line, position)
        return Standing(position=position, eta_ms=eta_ms)


def waiting(state: State, queue: str) -> list[str]:
    """Keys of what waits in a queue and below it: what has a promise, what stands in line, what can't,
    and what is set aside."""
    state.forest.settle()
    branch = state.forest.branch(queue)
    found: list[str] = []
    for name, leaf in state.forest.leaves.items():
        if branch is not None and branch in leaf.path:
            promised = sorted((p for p in state.promises if p.queue == name), key=lambda promise: promise.seq)
            misdirected = sorted(key for key in state.misdirected if state.pod(key).queue == name)
            in_line = sorted(leaf.line, key=lambda claim: claim.place)
            aside = sorted(each.what for each in state.asides if queue_of(state, each.what) == name)
            found += [*(p.claim for p in promised), *(claim.key for claim in in_line), *misdirected, *aside]
    return found


def keys_of(state: State, namespace: str, name: str) -> list[str]:
    """Keys of the workloads and pods that bear this name, workloads first."""
    accounts: tuple[Workload | Pod, ...] = (*state.workloads, *state.pods)
    return [each.key for each in accounts if (each.namespace, each.name) == (namespace, name)]
