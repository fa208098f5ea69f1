"""One pass: keep what was promised, take back what is over, serve whose turn it is until nothing fits, and
then take from those who have most for those who have least, where that strictly improves."""

from __future__ import annotations

from functools import partial
from typing import Final

from sluice.decisions import Admit, AdmitWorkload

from sluice_scheduler.core.applications.evict import overdue_ms
from sluice_scheduler.core.applications.queuejobs import run_jobs
from sluice_scheduler.core.applications.release import admit_workload, compare_with_objects, release_of
from sluice_scheduler.core.applications.workloads import clean_up
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot, part_of
from sluice_scheduler.core.fairness.shares import as_percent
from sluice_scheduler.core.passes.backfill import back_fill, late_ms
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.deserved import work_out_deserved
from sluice_scheduler.core.passes.history import remember
from sluice_scheduler.core.passes.reclaim import reclaim
from sluice_scheduler.core.passes.shed import shed
from sluice_scheduler.core.passes.turns import first_turns_ms, forget_turns, reserved_that_fits, take_turns
from sluice_scheduler.core.state.books import PodSetBook
from sluice_scheduler.core.state.members import group_of
from sluice_scheduler.core.state.minima import fill_kept, give_back, is_within, minimum_of
from sluice_scheduler.core.state.promises import break_promise, give_up, promised_cost
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Promise

#: What a pass may leave to be done by the next ones.
SERVE: Final = "serve"
RECLAIM: Final = "reclaim"


def schedule(state: State, *, ticks: bool) -> None:
    """One pass. Room is taken from others with ticks alone: before that nobody has waited for a moment."""
    budget = Budget()
    takes_back = ticks or state.cell.unfinished == RECLAIM
    state.leave_unfinished("")
    _settle(state)
    compare_with_objects(state)
    state.forest.settle()
    start_free(state)
    if ticks:
        work_out_deserved(state)
    remember(state)
    forget_turns(state)
    done = shed(state, budget)
    keep_promises(state)
    clean_up(state)
    run_jobs(state)
    open_reserved(state)
    if not (serve(state, budget) and done):
        state.leave_unfinished(RECLAIM if takes_back else SERVE)
        _settle(state)
        return
    if takes_back:
        state.settle_applications()
        if not reclaim(state, budget):
            state.leave_unfinished(RECLAIM)
        forget_turns(state)
        state.settle_applications()
        keep_promises(state)
        serve(state, budget)
        take_turns(state)
        if not back_fill(state, budget, partial(_let_in, state)):
            state.leave_unfinished(RECLAIM)
    _settle(state)  # another worker that takes over begins with settled ones


def _settle(state: State) -> None:
    """What is not reserved any more is given back at once: not if a later pass happens to come by, when it may be
    wanted again."""
    state.settle_applications()
    settled, state.settled = state.settled, {}
    for key in sorted(settled):
        give_back(state, settled[key])


def waits_for_time(state: State) -> bool:
    """Whether the mere passing of time may change what a pass decides."""
    return bool(len(state.promises) or state.forest.claims or state.unsettled)


def next_due_ms(state: State) -> int:
    """When the next tick may change what is decided, if nothing happens until then. Ticks may come more often."""
    soon_ms = state.now_ms + 1_000
    waits = (state.retries, state.pauses, state.resting, state.gangs, state.failing)
    ripens = state.config.reclaim_after_ms or any(q.facts.minimum_run_ms for q in state.tree.values())
    if len(state.promises) or any(waits) or ripens or state.starting or state.cell.unfinished:
        return soon_ms
    times = [
        state.coarse_now_ms + state.pace_ms,
        *first_turns_ms(state),
        *late_ms(state),
        *state.starting.values(),
        *overdue_ms(state),
    ]
    return max(soon_ms, min(time_ms for time_ms in times if time_ms > state.now_ms))


def serve(state: State, budget: Budget) -> bool:
    """Serve the branch that comes first, as often as its turn comes, until nothing fits; whether it came to that."""
    any_turns = len(state.turns) > 0  # none is taken meanwhile
    while not budget.is_spent:
        if state.free:
            start_free(state)
        kept = reserved_that_fits(state) if any_turns else None
        if kept is not None:
            state.forest.keep_nothing()
        found = kept or state.forest.next()
        if found is None:
            return True
        admit(state, *found, was_kept=kept is not None)
        if any_turns:
            forget_turns(state)
        budget.spend()
    return False


def _let_in(state: State, leaf: Branch, claim: Claim, spot: Spot, until_ms: int) -> None:
    admit(state, leaf, claim, spot, until_ms=until_ms)


def admit(
    state: State, leaf: Branch, claim: Claim, spot: Spot, *, was_kept: bool = False, until_ms: int = 0
) -> None:
    """Reserve from this moment on, and decide that the gates be opened."""
    short = state.forest.short_of(leaf, spot.cost)
    assert short is None, f"no decision passes {short}"
    why = _why_first(leaf, spot, was_kept=was_kept)
    if until_ms:
        why = f"fits into pool {spot.where} for as long as it says: room is kept there for whose turn it is"
    if not claim.gang:
        pod = state.pod(claim.key)
        open_gate(state, pod, spot.pools[0], spot=spot, reason="Fits", sentence=why, until_ms=until_ms)
        app = state.application_of(pod)
        if app is not None and any(book.reserved for book in app.books.values()):
            state.settle_application(app)  # it may fill what is missing of the minimum
        return
    state.forest.leave(claim.key)
    workload = state.workloads.get(claim.key)
    if workload is not None:
        start(state, workload, spot.pools, why)
        return
    pools = {part._replace(pods=1): pool for part, pool in zip(spot.shape.parts, spot.pools, strict=True)}
    for pod in group_of(state, claim.key):
        open_gate(state, pod, pools[part_of(pod)], reason="GangFits", sentence=why)
    state.settle_applications()


def start(state: State, workload: Workload, found: tuple[str, ...], why: str) -> None:
    """Admit a workload's minima, whether or not their pods exist yet: `found` is a pool for each of them."""
    reserved = {
        each.name: minimum for each in workload.facts.pod_sets if (minimum := minimum_of(workload, each))
    }
    pools = dict(zip(reserved, found, strict=True))
    decision = state.decide(
        AdmitWorkload(
            **state.about(workload),
            **release_of(workload),
            pools=pools,
            reserved=reserved,
            reason="GangFits" if reserved else "NothingToReserve",
            sentence=why,
        )
    )
    workload.seq = decision.seq
    state.releasing[decision.seq] = workload.key
    admit_workload(state, workload, pools, reserved)
    state.settle_applications()
    open_reserved(state)


def start_free(state: State) -> None:
    """Workloads whose minima are nothing wait for nothing: their pods are growth claims from the start."""
    free, state.free = state.free, {}
    for key in sorted(free):
        app = free[key]
        if app.free and app.workload is not None and state.is_live(app.workload.cluster):
            start(state, app.workload, (), f"{app.workload.name} needs no minimum to start")
        elif app.free:
            state.free[key] = app


def open_reserved(state: State) -> None:
    """Open pods against what is reserved for them: no claim, no turn."""
    may_open, state.may_open = state.may_open, {}
    for key in sorted(may_open):
        app = may_open[key]
        workload = app.workload
        if workload is None or not app.admitted or app.silent or not state.is_live(workload.cluster):
            continue
        for pod_set in workload.facts.pod_sets:
            book = app.book(pod_set.name)
            for pod in _first_waiting(state, book):
                if book.reserved and is_within(pod, workload.sizes.get(pod_set.name, {})):
                    open_gate(
                        state,
                        pod,
                        workload.pools[pod_set.name],
                        reason="Reserved",
                        sentence=f"{workload.name} was admitted with {minimum_of(workload, pod_set)} "
                        f"{pod_set.name} pods; this is one of them",
                    )
                    fill_kept(state, workload, pod_set.name)
                    app.settle(state)


def _first_waiting(state: State, book: PodSetBook) -> list[Pod]:
    if not book.reserved or not book.waiting:
        return []
    pods = [state.pod(key) for key in book.waiting]
    ready = [pod for pod in pods if not pod.retry_ms]
    return sorted(ready, key=lambda pod: (pod.facts.created_ms, pod.uid))[: book.reserved]


def open_gate(
    state: State,
    pod: Pod,
    pool: str,
    *,
    reason: str,
    sentence: str,
    spot: Spot | None = None,
    until_ms: int = 0,
) -> None:
    """`spot`: where the claim of the pod itself was placed, if that stands in line. `until_ms`: it was let in on its
    word that it ends by then."""
    pod.until_ms = until_ms
    decision = state.decide(
        Admit(
            **state.about(pod),
            queue=pod.queue,
            pool=pool,
            node_selector=state.places.node_selector(pool),
            reason=reason,
            sentence=sentence,
        )
    )
    state.assume(pod, decision, spot)


def _why_first(leaf: Branch, spot: Spot, *, was_kept: bool) -> str:
    where = f"fits into pool {spot.where}"
    if leaf.covering(spot.cost):
        return f"{where}, and a guarantee covers it"
    if was_kept:
        return f"{where}; room was kept for it, for its turn had come long ago"
    held = (
        f"with {as_percent(leaf.share)} of what it has most of, by weight"
        if leaf.share
        else "holding nothing yet"
    )
    return f"{where}; {leaf.name} came first, {held}"


# ---- promises


def keep_promises(state: State) -> None:
    """Admit what was promised once the victims are gone; give up what has waited too long."""
    rows = [sorted(alike.values(), key=_made) for alike in state.promised.values()]
    for row in sorted(rows, key=lambda row: _made(row[0])):
        for promise in row:
            if _has_room(state, promise):
                _keep(state, promise)
            elif promise.until_ms > state.now_ms:
                break
            else:
                give_up(state, promise)
    state.settle_applications()  # who came may fill what was missing of a minimum


def _made(promise: Promise) -> tuple[int, str]:
    """In which order promises were made; those without victims may share a number."""
    return (promise.seq, promise.claim)


def _has_room(state: State, promise: Promise) -> bool:
    """Whether what was promised is there: nothing that others still hold is in the way."""
    leaf = state.forest.leaves.get(promise.queue)
    if leaf is None:
        return False
    return all(room.unheld() >= need for room, need in state.forest.rooms_for(leaf, promised_cost(promise)))


def _keep(state: State, promise: Promise) -> None:
    why = "what was taken back for it is free now"
    break_promise(state, promise.claim)
    workload = state.workloads.get(promise.claim)
    if workload is not None:
        start(state, workload, promise.pools, why)
        return
    pod = state.pods.get(promise.claim)
    if pod is not None:
        open_gate(state, pod, promise.pools[0], reason="Reclaimed", sentence=why)
        return
    group = group_of(state, promise.claim)
    kinds = sorted({part_of(pod) for pod in group})
    pools = dict(zip(kinds, promise.pools, strict=True))
    for pod in group:
        open_gate(state, pod, pools[part_of(pod)], reason="Reclaimed", sentence=why)
