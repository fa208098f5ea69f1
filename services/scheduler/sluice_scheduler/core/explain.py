"""Why something waits: pure functions of the state, for `sluice explain` and statuses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from sluice.quantities import format_amount

from sluice_scheduler.core.applications import Application
from sluice_scheduler.core.branch import Branch
from sluice_scheduler.core.claims import Claim, Option
from sluice_scheduler.core.entities import Drain, Pod, Workload
from sluice_scheduler.core.reclaim import is_barred
from sluice_scheduler.core.shares import as_percent
from sluice_scheduler.core.state import State

#: From fewer ends nothing is estimated.
DRAIN_MIN: Final = 3
NO_POOL: Final = "no pool has a node that its node selector allows: change the selector, or add a pool"


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
    return _why_workload(account) if isinstance(account, Workload) else _why_pod(state, account)


def _why_in_line(state: State, claim: Claim) -> Answer:
    state.forest.settle()
    leaf = state.forest.leaves[claim.line]
    position = 1 + sum(1 for other in leaf.line if other.place < claim.place)
    eta_ms = _eta(state, claim.line, position)
    if not claim.shape.options:
        return Answer(
            reason="NoPool",
            sentence=NO_POOL,
            position=position,
        )
    if leaf.line.strict and position > 1:
        return Answer(
            reason="BehindFirst",
            sentence=f"{leaf.name} serves strictly in order, and {position - 1} claims stand before it",
            position=position,
            eta_ms=eta_ms,
        )
    reason, sentence = why_short(state, leaf, claim)
    return Answer(reason=reason, sentence=sentence, position=position, eta_ms=eta_ms)


def why_short(state: State, leaf: Branch, claim: Claim) -> tuple[str, str]:
    """What a claim in line is short of: a reason and a sentence."""
    if not claim.shape.options:
        return "NoPool", NO_POOL
    option = claim.shape.options[0]
    bound = state.forest.short_of(leaf, option)
    if bound is None:
        return "NextPass", "it fits, and is served when its turn comes"
    resource = bound.dims[0][2]
    if not any(dim in state.forest.capacity for dim in bound.dims):
        return (
            "NoSuchResource",
            f"pool {bound.dims[0][1]} has no {resource}: take it out, or add nodes with it",
        )
    asked = format_amount(resource, bound.part(option.cost))
    standing = f"{leaf.name} holds {as_percent(leaf.share)} of what it has most of, by weight"
    may_push = "; it lost pods before and takes none from others now" if is_barred(state, claim) else ""
    ends = _ends_first(state, leaf, option)
    return (
        "NoRoom" if bound.name.startswith("pool ") else "OverLimit",
        f"waits for {asked} {resource} under {bound.name}; {standing}{may_push}{ends}",
    )


def _ends_first(state: State, leaf: Branch, option: Option) -> str:
    """How many of its own queue's pods would have to end, if that alone were to make room."""
    missing = {
        dim: amount - _left(state, dim) for dim, amount in option.cost if 0 <= _left(state, dim) < amount
    }
    if not missing:
        return ""
    for count, key in enumerate(sorted(state.holders.get(leaf.name, ())), start=1):
        pod = state.pod(key)
        for resource, amount in pod.facts.requests.items():
            dim = (pod.cluster, pod.pool, resource)
            if dim in missing:
                missing[dim] -= amount
        if max(missing.values()) <= 0:
            return f"; it fits when {count} of its queue's pods have ended"
    return ""


def _left(state: State, dim: tuple[str, str, str]) -> int:
    rooms = state.forest.root.rooms_of.get(dim, [])
    return min((room.left for room in rooms), default=0)


def _why_promised(state: State) -> Answer:
    leaving = sum(1 for keys in state.evicting.values() for key in keys if state.pod(key).holds)
    return Answer(
        reason="VictimsLeaving",
        sentence=f"room was made for it: {leaving} evicted pods are still leaving",
    )


def _why_workload(workload: Workload) -> Answer:
    if workload.facts.finished:
        return Answer(reason="Finished", sentence=f"{workload.name} has ended")
    if workload.admitted:
        return Answer(reason="Admitted", sentence=f"{workload.name} is admitted in {workload.queue}")
    return Answer(reason="Starting", sentence=f"{workload.name} has just arrived")


def _why_pod(state: State, pod: Pod) -> Answer:
    if pod.holds:
        leaving = ", and is being taken back" if pod.evicting else ""
        return Answer(reason="Admitted", sentence=f"{pod.name} is admitted in pool {pod.pool}{leaving}")
    if pod.phase == "Withdrawn":
        return Answer(reason="Finished", sentence=f"{pod.name} has ended")
    if pod.retry_ms > state.cell.time_ms:
        return Answer(
            reason="Retry",
            sentence="its admission could not be written; it is offered again",
            eta_ms=pod.retry_ms,
        )
    app = state.application_of(pod)
    if app is not None and app.admitted and pod.pod_set in app.replicated:
        return _why_in_replica(state, app, pod.pod_set)
    workload = state.workload_of(pod.key)
    if workload is not None:
        whole = why(state, workload.key)
        return Answer(
            reason="WaitsForGang",
            sentence=f"{workload.name} is not admitted yet: {whole.sentence}",
            position=whole.position,
            eta_ms=whole.eta_ms,
        )
    if pod.facts.group_size or not pod.application:
        reason, sentence = "WaitsForGroup", f"its group {pod.application} is not complete"
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
        return Standing(position=position, eta_ms=_eta(self._state, claim.line, position))


def waiting(state: State, queue: str) -> list[str]:
    """Keys of what waits in a queue and below it: what has a promise, what stands in line, what can't."""
    state.forest.settle()
    branch = state.forest.branch(queue)
    found: list[str] = []
    for name, leaf in state.forest.leaves.items():
        if branch is not None and branch in leaf.path:
            promised = sorted((p for p in state.promises if p.queue == name), key=lambda promise: promise.seq)
            misdirected = sorted(key for key in state.misdirected if state.pod(key).queue == name)
            in_line = sorted(leaf.line, key=lambda claim: claim.place)
            found += [*(p.claim for p in promised), *(claim.key for claim in in_line), *misdirected]
    return found


def keys_of(state: State, namespace: str, name: str) -> list[str]:
    """Keys of the workloads and pods that bear this name, workloads first."""
    accounts: tuple[Workload | Pod, ...] = (*state.workloads, *state.pods)
    return [each.key for each in accounts if (each.namespace, each.name) == (namespace, name)]
