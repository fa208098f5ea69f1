"""Why something waits: one answer, which `sluice explain` tells at length and statuses tell in short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sluice.decisions import GrantedPods
from sluice.quantities import format_amount
from sluice.texts import few

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Bound, Room
from sluice_scheduler.core.passes.claimants import is_barred
from sluice_scheduler.core.passes.kept import spot_at
from sluice_scheduler.core.passes.lifted import rule_in_the_way
from sluice_scheduler.core.passes.session import LOST_WORK, RECLAIM_OFF, Rule
from sluice_scheduler.core.reports.granted import granted_pods, is_short
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.conditions import set_aside_because
from sluice_scheduler.core.state.kinship import controlled
from sluice_scheduler.core.state.members import set_aside_by, workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import turn_of
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Turn

NO_POOL: Final = "no pool has a node that its node selector allows: change the selector, or add a pool"
#: Nobody came for what an application was granted.
NO_SHOW: Final = "NobodyCame"
#: Its minimum did not come up in time.
GANG_DEADLINE: Final = "GangDeadline"
#: Others in a strict line stand before it.
BEHIND_FIRST: Final = "BehindFirst"
_UNWRITTEN: Final = (
    "its {} could not be written, or was refused: it is tried again; `sluice audit tail` shows the answer"
)
#: It would push others out, but for a rule of their queues.
_RULES: Final[dict[Rule, tuple[str, str]]] = {
    LOST_WORK: (
        "LostWorkBound",
        "no more running time may be lost there within this hour (reclaim.lostWorkPerHourSeconds)",
    ),
    RECLAIM_OFF: ("ReclaimOff", "nothing may be taken back there (reclaim.enabled is false)"),
}
RULES: Final = frozenset(reason for reason, _ in _RULES.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why something waits, or that it does not wait.

    The sentence stays true for long, because a status that shows it is not written anew with each pod that ends.
    """

    reason: str  # a code, CamelCase
    sentence: str
    waits: bool = True
    more: str = ""  # goes on where the sentence ends, when it is told at length
    claim: Claim | None = None  # what stands in line
    spot: Spot | None = None  # where it waits for others to end
    never_fits: bool = False  # whatever ends
    promised: bool = False  # what leaves makes room for it
    eta_ms: int | None = None  # when it may be served at the earliest, where that is known

    @property
    def in_short(self) -> str:
        """Empty for what does not wait."""
        return self.sentence if self.waits else ""


def reason_of(state: State, key: str) -> Why:
    """Why the pod or workload with this key is not admitted, or that it is."""
    found = (set_aside_because(state, each) for each in set_aside_by(state, key))
    aside = next(filter(None, found), "")
    if aside:
        return Why(reason="SetAside", sentence=aside)
    workload = state.workloads.get(key)
    if workload is not None:
        return _of_workload(state, workload)
    in_line = _in_line(state, key)
    if in_line is not None:
        return in_line
    pod = state.pods.get(key)
    return (
        _of_pod(state, pod) if pod is not None else Why(reason="Unknown", sentence=f"{key} is not known here")
    )


# ---- applications


def _of_workload(state: State, workload: Workload) -> Why:
    app = state.applications.get(workload.place)
    if app is None or app.workload is not workload:
        return Why(reason="NextPass", sentence=f"{workload.name} has just arrived")
    if controlled(state, workload):
        return Why(
            reason="Controlled",
            sentence="the application that controls it is charged for its pods, and waits for both",
            waits=False,
        )
    return reason_of_application(state, app, workload, granted_pods(state, workload, app))


def reason_of_application(
    state: State, app: Application, workload: Workload, sets: Sequence[GrantedPods]
) -> Why:
    """Why an application waits, or some of its pods do."""
    waiting = [key for _, book in sorted(app.books.items()) for key in sorted(book.waiting)]
    if workload.facts.finished:
        return Why(reason="Ended", sentence="its application has ended", waits=False)
    if workload.problem:
        return Why(reason="Problem", sentence=workload.problem)
    if app.silent and waiting:
        return _silent()
    keys = [workload.key, *map(app.replica_key, sorted(app.replicated)), *waiting]
    in_line = _first_in_line(state, keys)
    if in_line is not None:
        before = f"; before that, {workload.no_show}" if workload.no_shows else ""
        return replace(in_line, sentence=in_line.sentence + before)
    return _out_of_line(state, workload, sets, waits=bool(waiting))


def _silent() -> Why:
    sentence = "an executor has failed, and its driver has asked for no other since"
    return Why(reason="DriverSilent", sentence=sentence)


def _first_in_line(state: State, keys: Sequence[str]) -> Why | None:
    """Why the first of these in line waits. If none stands in line, why the one with a promise does."""
    claims = [claim for key in keys if (claim := state.forest.claims.get(key)) is not None]
    if claims:
        return _of_claim(state, min(claims, key=lambda claim: claim.place))
    return next((found for key in keys if (found := _in_line(state, key)) is not None), None)


def _out_of_line(state: State, workload: Workload, sets: Sequence[GrantedPods], *, waits: bool) -> Why:
    if workload.admitted and workload.job.refusal:
        return Why(reason="PodRefused", sentence=workload.job.refusal)
    if not workload.admitted and workload.seq in state.evicting:
        return Why(reason="Leaving", sentence="it was taken back, and its pods are still leaving")
    if workload.no_show and workload.admitted:
        return Why(reason=NO_SHOW, sentence=workload.no_show)
    if workload.retry_ms:
        return replace(_of_pause(workload), eta_ms=workload.retry_ms)
    if not workload.admitted or waits:
        return Why(reason="NextPass", sentence="it is about to be decided")
    return _of_admitted(workload, sets)


def _of_pause(workload: Workload) -> Why:
    if workload.no_show:
        pauses = "; it pauses, and is in line again then, or when a pod of it comes"
        return Why(reason=NO_SHOW, sentence=workload.no_show, more=pauses)
    if workload.late_starts:
        late = "its minimum did not run within its deadline after its admission"
        return Why(reason=GANG_DEADLINE, sentence=late, more="; it pauses, and is in line again then")
    return Why(reason="Retry", sentence=_UNWRITTEN.format("release"))


def _of_admitted(workload: Workload, sets: Sequence[GrantedPods]) -> Why:
    """Nothing of it that is there waits."""
    if is_short(sets):
        sentence = "the others have not been created: each stands in line from its creation on"
        return Why(reason="NotAskedFor", sentence=sentence)
    come = "1 pod" if workload.unclaimed == 1 else f"{workload.unclaimed} pods"
    still = f"; {come} that it was granted still must come" if workload.unclaimed else ""
    sentence = f"{workload.name} is admitted in {workload.queue}{still}"
    return Why(reason="Admitted", sentence=sentence, waits=False)


# ---- pods


def _of_pod(state: State, pod: Pod) -> Why:
    if pod.holds:
        leaving = ", and is being taken back" if pod.evicting else ""
        sentence = f"{pod.name} is admitted in pool {pod.pool}{leaving}"
        return Why(reason="Admitted", sentence=sentence, waits=False)
    if pod.phase == "Withdrawn":
        return Why(reason="Ended", sentence=f"{pod.name} has ended", waits=False)
    if pod.problem:
        return Why(reason="Problem", sentence=pod.problem)
    if pod.retry_ms:
        left = "its application is gone, and it should go too; if it does not, it stands for itself"
        written = _UNWRITTEN.format("admission")
        return Why(reason="Retry", sentence=written if pod.admitted_ms else left, eta_ms=pod.retry_ms)
    return _of_member(state, pod)


def _of_member(state: State, pod: Pod) -> Why:
    """Why a pod waits that stands in no line itself: its application does, or lacks something."""
    app = state.application_of(pod)
    if app is not None and app.admitted and pod.pod_set in app.replicated:
        return _in_replica(state, app, pod.pod_set)
    workload = workload_of(state, pod.key)
    if workload is None:
        return _alone(state, pod, app)
    whole = reason_of(state, workload.key)
    if not workload.admitted:
        return replace(
            whole,
            reason="WaitsForGang",
            sentence=f"{workload.name} is not admitted yet: {whole.sentence}",
            waits=True,
        )
    return whole if whole.waits else Why(reason="NextPass", sentence="it is about to be decided")


def _alone(state: State, pod: Pod, app: Application | None) -> Why:
    """It stands in no line, and no application of its own is known."""
    if app is None:
        return Why(reason="NextPass", sentence=f"{pod.name} has just arrived")
    whole = _in_line(state, app.claim_key)
    if whole is not None:
        return replace(
            whole,
            reason="WaitsForGroup",
            sentence=f"all of {pod.application} open together: {whole.sentence}",
        )
    if pod.facts.group_size:
        there = sum(len(book.waiting) + len(book.holding) for book in app.books.values())
        sentence = f"{there} of the {app.group_size} pods of its group {pod.application} are there"
        return Why(reason="WaitsForGroup", sentence=sentence)
    if pod.application.startswith("PodGroup/"):
        sentence = (
            f"its group {pod.application} has no size: create its pods anew with the annotation "
            "sluice.dev/pod-group-size"
        )
        return Why(reason="NoGroupSize", sentence=sentence)
    sentence = (
        f"it names the workload {pod.application}, which does not exist: create it, or take the label off"
    )
    return Why(reason="NoWorkload", sentence=sentence)


def _in_replica(state: State, app: Application, pod_set: str) -> Why:
    missing = Why(reason="", sentence="some of the next one are not there yet")
    whole = (_silent() if app.silent else None) or _in_line(state, app.replica_key(pod_set)) or missing
    together = f"{app.replica_size(pod_set)} {pod_set} pods are one replica and open together"
    return replace(whole, reason="WaitsForReplica", sentence=f"{together}: {whole.sentence}")


# ---- what stands in line


def _in_line(state: State, key: str) -> Why | None:
    """None if nothing stands in line under a key, and nothing was promised to it."""
    claim = state.forest.claims.get(key)
    if claim is not None:
        return _of_claim(state, claim)
    if state.promise_for(key) is None:
        return None
    sentence = "room was made for it: evicted pods are still leaving"
    return Why(reason="VictimsLeaving", sentence=sentence, promised=True)


def _of_claim(state: State, claim: Claim) -> Why:
    """What a claim in line is short of."""
    leaf = state.forest.leaves[claim.line]
    spot = state.forest.any_spot(claim.shape)
    if spot is None:
        reason, sentence = _why_nowhere(state, claim.shape)
        return Why(reason=reason, sentence=sentence, never_fits=True, claim=claim)
    whole = _smaller_than(state, claim.shape, leaf)
    if whole is not None:
        return Why(reason="TooLarge", sentence=_too_large(spot, whole), never_fits=True, claim=claim)
    if leaf.line.strict and leaf.line.first() is not claim:
        sentence = f"{leaf.name} serves strictly in order, and others stand before it"
        return Why(reason=BEHIND_FIRST, sentence=sentence, claim=claim)
    turn = turn_of(state, claim.key)
    if turn is not None and turn.cost:
        spot = spot_at(state, claim.shape, turn.pools) or spot
    short = _short_of(state, leaf, spot, claim)
    if short is None:
        return Why(reason="NextPass", sentence="it fits, and is served when its turn comes", claim=claim)
    return _of_short(state, claim, spot, turn, short)


def _of_short(state: State, claim: Claim, spot: Spot, turn: Turn | None, short: tuple[Room, bool]) -> Why:
    """What keeps it out until others end, and why it does not push them out."""
    room, only_kept = short
    resource = room.bound.dims[0][2]
    reason = "NoRoom" if room.branch is state.forest.root else "OverLimit"
    sentence = (
        f"waits for {format_amount(resource, room.bound.part(spot.cost))} {resource} under {room.bound.name}"
    )
    more = "; there is room, but it is kept for a claim whose turn came before" * only_kept
    if is_barred(state, claim):
        sentence += "; it lost pods before and takes none from others now"
    if turn is not None and turn.cost:
        more = "; its turn has come, and room is kept for it"
    elif turn is not None and turn.rests_ms > state.now_ms:
        reason = "RoomRests"
        sentence += "; room was kept for it in vain and given up, and is kept for it again after a rest"
        more += f"; that ends in {(turn.rests_ms - state.now_ms) // 1000} s"
    rule = None if only_kept else rule_in_the_way(state, claim)
    if rule is not None:
        reason, because = _RULES[rule.rule]
        sentence += f"; it is owed room that {few(rule.queues)} holds, and {because}"
    eta_ms = turn.start_ms if turn is not None else 0
    return Why(reason=reason, sentence=sentence, more=more, claim=claim, spot=spot, eta_ms=eta_ms or None)


def _short_of(state: State, leaf: Branch, spot: Spot, claim: Claim) -> tuple[Room, bool] | None:
    """The first room that is too small, and whether only because room is kept there for another."""
    for room, need in state.forest.rooms_for(leaf, spot.cost):
        if need > room.free_for(claim.key):
            return room, need <= room.left + room.kept
    return None


def _why_nowhere(state: State, shape: Shape) -> tuple[str, str]:
    """Why no pool has a node for some part of it."""
    places = state.places
    for part in shape.parts:
        pools = places.pools_for(part.cluster, dict(part.node_selector))
        if not pools:
            return "NoPool", NO_POOL
        if places.pools_holding(part.cluster, part.node_selector, part.requests):
            continue
        has, where = "has", f"pool {pools[0]}"
        if len(pools) > 1:
            has, where = "have", f"pools {', '.join(pools)}"
        for resource, amount in part.requests:
            largest = places.largest(part.cluster, part.node_selector, resource)
            if amount and not largest:
                return "NoSuchResource", f"{where} {has} no {resource}: take it out, or add nodes with it"
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
