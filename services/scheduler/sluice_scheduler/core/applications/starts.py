"""Start deadlines: what an application was granted and none of its pods has come for goes to others.

What is reserved is measured with each tick. As long as it changes, or a pod comes, nothing is given up.
When it has stood still for the deadline, there are two cases.

* No pod of the application is there: the whole application goes back to its queue, and pauses (requeue.py). So one
  without an operator holds room for half of the time at first, and for less and less later on. The pause ends
  when a pod comes that was missed.
* Some pods are there: they keep what they have. The rest is reserved no longer; those that come later stand in
  line as growth does.
"""

from __future__ import annotations

from typing import Final

from sluice.applications import BY_HAND, QUEUE_JOB, WITHOUT_OPERATOR

from sluice_scheduler.core.applications.release import shows_the_present
from sluice_scheduler.core.applications.requeue import JUDGED_MAX, requeue
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.minima import minimum_of, missing_of
from sluice_scheduler.core.state.offers import pause
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Cluster

#: Whom to look for where no operator makes an application's pods. Who makes them may have been refused.
_MAKERS: Final = {
    BY_HAND: "is what makes its pods running, or are they refused?",
    QUEUE_JOB: "is Sluice's actuator running?",
    WITHOUT_OPERATOR: "does its driver still run, or are they refused?",
    "Job": "is the Job controller running, or are they refused?",
}


def judge_starts(state: State) -> None:
    """With a tick: see who has come since the last one, and give up what nobody has come for in time."""
    measured, state.unmeasured = state.unmeasured, {}
    for app in measured.values():
        if app.workload is not None:
            _measure(state, app, app.workload)
    late = sorted(key for key, due_ms in state.starting.items() if due_ms <= state.now_ms)
    judged = 0
    for key in late:
        found = state.applications.get(key)
        workload = found.workload if found is not None else None
        if found is None or workload is None:
            del state.starting[key]
        elif _due_ms(state, workload) > state.now_ms:
            state.starting[key] = _due_ms(state, workload)
        elif judged < JUDGED_MAX and not _is_blind(state, found, workload):
            judged += 1
            del state.starting[key]
            _give_up(state, found, workload)


def measure_anew(state: State) -> None:
    """Queues were edited: other deadlines may hold."""
    for app in state.applications.values():
        if app.workload is not None and app.workload.unclaimed:
            state.unmeasured[app.key] = app


def somebody_came(state: State, workload: Workload, pod: Pod) -> None:
    """The deadline begins anew with each pod of a set that lacks some; others have nothing to do with it."""
    app = state.application_of(pod)
    if app is None or not workload.unclaimed:
        return
    there = len(app.book(pod.pod_set).holding)
    if any(
        missing_of(workload, each, there) > 0 for each in workload.facts.pod_sets if each.name == pod.pod_set
    ):
        workload.unclaimed_ms = state.now_ms
        state.workload_changed(workload)


def _measure(state: State, app: Application, workload: Workload) -> None:
    reserved = sum(book.reserved for book in app.books.values())
    if reserved != workload.unclaimed:
        workload.unclaimed, workload.unclaimed_ms = reserved, state.now_ms
        state.workloads.put(workload)
    if workload.no_show and _is_back(app, workload):
        workload.no_show, workload.no_shows = "", 0
        state.workload_changed(workload)
        if not workload.admitted and workload.retry_ms:
            pause(state, workload, state.now_ms)
    if reserved and _deadline_ms(state, workload):
        state.starting[app.key] = _due_ms(state, workload)
    else:
        state.starting.pop(app.key, None)


def _is_back(app: Application, workload: Workload) -> bool:
    """Whether pods have come of one that nobody came for, or all that were missing."""
    sets = workload.facts.pod_sets
    if any(app.book(each.name).waiting for each in sets if minimum_of(workload, each)):
        return True
    there = {each.name: len(app.book(each.name).holding) for each in sets}
    return any(there.values()) and all(
        there[each.name] + app.book(each.name).reserved >= minimum_of(workload, each) for each in sets
    )


def _deadline_ms(state: State, workload: Workload) -> int:
    node = state.tree.get(workload.queue)
    own = node.facts.start_deadline_ms if node is not None else None
    return state.config.start_deadline_ms if own is None else own


def _due_ms(state: State, workload: Workload) -> int:
    return workload.unclaimed_ms + _deadline_ms(state, workload)


def _is_blind(state: State, app: Application, workload: Workload) -> bool:
    """Whether its pods may be there without our knowing, or those that came are held up by ourselves."""
    cluster = state.clusters.get(f"{Cluster.kind}/{workload.cluster}")
    if cluster is None or not cluster.live or cluster.open_syncs or workload.job.resume_ms:
        return True
    return any(book.reserved and book.within for book in app.books.values())


def _give_up(state: State, app: Application, workload: Workload) -> None:
    missing = {name: book.reserved for name, book in app.books.items() if book.reserved}
    if not missing:
        return
    deadline_ms = _deadline_ms(state, workload)
    if any(book.holding for book in app.books.values()):
        some = ", ".join(f"{count} {name}".rstrip() for name, count in sorted(missing.items()))
        workload.no_show = _sentence(workload, f"no pod for {some} of", deadline_ms)
        workload.granted = {n: min(g, len(app.book(n).holding)) for n, g in workload.granted.items()}
        workload.kept = {}
        state.workload_changed(workload)
        return
    workload.no_show = _sentence(workload, "no pod of", deadline_ms)
    workload.no_shows += 1
    requeue(
        state,
        app,
        workload,
        failures=workload.no_shows,
        deadline_ms=deadline_ms,
        reason="StartDeadline",
        sentence=workload.no_show,
    )


def _sentence(workload: Workload, who: str, deadline_ms: int) -> str:
    """Says which pods did not come, and whom to ask about it."""
    kind = workload.facts.kind
    came = f"{who} {kind} {workload.name} came within {_span(deadline_ms)}"
    if workload.job.refusal:
        return f"{came}: {workload.job.refusal}"
    released = workload.facts.released and shows_the_present(workload)
    if workload.seq and not released and kind not in (BY_HAND, WITHOUT_OPERATOR):
        return f"{came}, and it does not show that it was released: is Sluice's actuator running?"
    return f"{came}: {_MAKERS.get(kind, 'is its operator running, or are they refused?')}"


def _span(duration_ms: int) -> str:
    minutes, seconds = divmod(duration_ms // 1000, 60)
    return f"{minutes}m" * bool(minutes) + f"{seconds}s" * bool(seconds or not minutes)
