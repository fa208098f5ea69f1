"""One pass: keep what was promised, take back what is over, serve whose turn it is until nothing fits, and
then take from those who have most for those who have least, where that strictly improves."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Final

from sluice.decisions import Admit, AdmitWorkload
from sluice.events import PodSetFacts

from sluice_scheduler.core.applications.evict import overdue_ms
from sluice_scheduler.core.applications.queuejobs import run_jobs
from sluice_scheduler.core.applications.release import admit_workload, compare_with_objects, release_of
from sluice_scheduler.core.applications.workloads import clean_up
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot, part_of
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import as_percent
from sluice_scheduler.core.passes.backfill import back_fill, late_ms
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.passes.deserved import work_out_deserved
from sluice_scheduler.core.passes.history import remember
from sluice_scheduler.core.passes.kept import covered_that_fits, passable, reserved_that_fits
from sluice_scheduler.core.passes.reclaim import reclaim
from sluice_scheduler.core.passes.shed import shed
from sluice_scheduler.core.passes.turns import forget_turns, next_turns_ms, served, take_turns
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.members import group_of
from sluice_scheduler.core.state.minima import fill_kept, give_back, minimum_of
from sluice_scheduler.core.state.promises import break_promise, give_up, promised_cost
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.turns import keep_rooms
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
    clean_up(state)  # before anything starts, and with it opens what may open
    state.forest.settle()
    start_free(state, budget)
    if ticks or state.forest.overfull():
        work_out_deserved(state)  # as much as there is now
    remember(state)
    done = shed(state, budget)
    keep_promises(state, budget, ticks=ticks)
    run_jobs(state)
    open_reserved(state, budget)
    forget_turns(state, ticks=ticks)  # behind what takes claims out of their lines
    if not (serve(state, budget) and done):
        state.leave_unfinished(RECLAIM if takes_back else SERVE)
        _settle(state)
        return
    if takes_back:
        serve_covered(state, budget)
        state.settle_applications()
        if reclaim(state, budget):
            state.leave_unfinished(RECLAIM)
        forget_turns(state, ticks=ticks)
        state.settle_applications()
        keep_promises(state, budget, ticks=ticks)
        serve(state, budget)
        take_turns(state)
        serve(state, budget)  # what was kept in vain, and is given up
        if not back_fill(state, budget, partial(_let_in, state, budget=budget)):
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
    return bool(len(state.promises) or len(state.turns) or state.forest.claims or state.unsettled)


def next_due_ms(state: State) -> int:
    """When the next tick may change what is decided, if nothing happens until then. Ticks may come more often."""
    soon_ms = state.now_ms + 1_000
    waits = (state.retries, state.pauses, state.resting, state.gangs, state.failing)
    ripens = state.config.reclaim_after_ms or any(q.facts.minimum_run_ms for q in state.tree.values())
    if len(state.promises) or any(waits) or ripens or state.starting or state.cell.goes_on:
        return soon_ms
    times = [
        state.coarse_now_ms + state.pace_ms,
        *next_turns_ms(state),
        *late_ms(state),
        *state.starting.values(),
        *overdue_ms(state),
    ]
    return max(soon_ms, min(time_ms for time_ms in times if time_ms > state.now_ms))


def serve(state: State, budget: Budget) -> bool:
    """Serve the branch that comes first, as often as its turn comes, until nothing fits; whether it came to that."""
    serve_kept(state, budget)
    while not budget.is_spent:
        if state.free:
            start_free(state, budget)
        found = state.forest.next()
        if found is None:
            return True
        admit(state, *found, budget=budget)
        budget.spend()
    return False


def serve_kept(state: State, budget: Budget) -> None:
    """Let claims into the room that is kept for them. This comes before serving others, who only take room."""
    while len(state.turns) and not budget.is_spent:
        found = reserved_that_fits(state)
        if found is None:
            return
        state.forest.keep_nothing()
        admit(state, *found, budget=budget, was_kept=True)
        budget.spend(1 + len(state.turns) // 16)


def serve_covered(state: State, budget: Budget) -> None:
    """Let those whom a guarantee covers pass room that is kept for whom none does."""
    passed = passable(state) if len(state.turns) else set()
    for leaf in list(state.forest.leaves.values()) if passed else ():
        if not len(leaf.line) or not any(branch.guarantees for branch in leaf.path):
            continue
        while not budget.is_spent and (found := covered_that_fits(state, leaf, passed)) is not None:
            state.forest.keep_nothing()
            admit(state, leaf, *found, budget=budget)
            keep_rooms(state)
            state.forest.settle()
            budget.spend()


def _let_in(state: State, leaf: Branch, claim: Claim, spot: Spot, until_ms: int, *, budget: Budget) -> None:
    admit(state, leaf, claim, spot, budget=budget, until_ms=until_ms)


def admit(
    state: State,
    leaf: Branch,
    claim: Claim,
    spot: Spot,
    *,
    budget: Budget,
    was_kept: bool = False,
    until_ms: int = 0,
) -> None:
    """Reserve from this moment on, and decide that the gates be opened."""
    short = state.forest.short_of(leaf, spot.cost)
    assert short is None, f"no decision passes {short}"
    why = _why_first(leaf, spot, was_kept=was_kept)
    if until_ms:
        why = f"fits into pool {spot.where} for as long as it says: room is kept there for whose turn it is"
    _admit(state, claim, spot, why, budget=budget, until_ms=until_ms)
    if len(state.turns):
        served(state, claim.key)


def _admit(state: State, claim: Claim, spot: Spot, why: str, *, budget: Budget, until_ms: int) -> None:
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
        start(state, budget, workload, spot.pools, why)
        return
    pools = {part._replace(pods=1): pool for part, pool in zip(spot.shape.parts, spot.pools, strict=True)}
    for pod in group_of(state, claim.key):
        open_gate(state, pod, pools[part_of(pod)], reason="GangFits", sentence=why)
        budget.spend()
    state.settle_applications()


def start(state: State, budget: Budget, workload: Workload, found: tuple[str, ...], why: str) -> None:
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
    open_reserved(state, budget)


def start_free(state: State, budget: Budget) -> None:
    """Workloads whose minima are nothing wait for nothing: their pods are growth claims from the start."""
    free, state.free = state.free, {}
    for key in sorted(free):
        app = free[key]
        if app.free and app.workload is not None and state.is_live(app.workload.cluster):
            start(state, budget, app.workload, (), f"{app.workload.name} needs no minimum to start")
        elif app.free:
            state.free[key] = app


def open_reserved(state: State, budget: Budget) -> None:
    """Open pods for which their application has room reserved: they need no claim and no turn. What exceeds the budget
    opens with the next passes."""
    may_open, state.may_open = state.may_open, {}
    for key in sorted(may_open):
        app = may_open[key]
        workload = app.workload
        if workload is None or not app.admitted or app.silent or not state.is_live(workload.cluster):
            continue
        sets = workload.facts.pod_sets
        if sum(_open_set(state, budget, app, workload, pod_set) for pod_set in sets):
            app.settle(state)
        if budget.is_spent and any(app.book(pod_set.name).usable for pod_set in sets):
            state.may_open[key] = app
            state.leave_unfinished(state.cell.unfinished or SERVE)


def _open_set(
    state: State, budget: Budget, app: Application, workload: Workload, pod_set: PodSetFacts
) -> int:
    """How many pods of a set have come for what is reserved."""
    book = app.book(pod_set.name)
    coming = book.usable[: max(0, budget.left)]
    for key in coming:
        app.use_reserved(state, book)
        open_gate(
            state,
            state.pod(key),
            workload.pools[pod_set.name],
            reason="Reserved",
            sentence=f"{workload.name} was admitted with {minimum_of(workload, pod_set)} "
            f"{pod_set.name} pods; this is one of them",
        )
        fill_kept(state, workload, pod_set.name)
        budget.spend()
    return len(coming)


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


def keep_promises(state: State, budget: Budget, *, ticks: bool) -> None:
    """Admit what was promised once the victims are gone; with ticks, give up what has waited too long."""
    rows = [sorted(alike.values(), key=attrgetter("made")) for alike in state.promised.values()]
    for row in sorted(rows, key=lambda row: row[0].made):
        for promise in row:
            if _has_room(state, promise):
                _keep(state, budget, promise)
            elif promise.until_ms > state.now_ms or not ticks:
                break
            else:
                give_up(state, promise)
    state.settle_applications()  # who came may fill what was missing of a minimum


def _has_room(state: State, promise: Promise) -> bool:
    """Whether what was promised is there: nothing that others still hold is in the way."""
    leaf = state.forest.leaves.get(promise.queue)
    if leaf is None:
        return False
    return state.forest.has_room(leaf, promised_cost(promise), Room.unheld)


def _keep(state: State, budget: Budget, promise: Promise) -> None:
    why = "what was taken back for it is free now"
    break_promise(state, promise.claim)
    workload = state.workloads.get(promise.claim)
    if workload is not None:
        start(state, budget, workload, promise.pools, why)
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
        budget.spend()
