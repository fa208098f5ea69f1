"""Gangs that do not come up in time: put back whole (requeue.py), or content with what runs."""

from __future__ import annotations

from sluice.events import Gang

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.applications.requeue import JUDGED_MAX, requeue
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.minima import minimum_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import whole_of
from sluice_scheduler.core.stored.accounts import Pod


def judge_gangs(state: State) -> None:
    late = 0
    for key in sorted(state.gangs):
        app = state.applications.get(key)
        gang = app.gang if app is not None else None
        if app is None or gang is None or not app.admitted or _is_judged(state, app):
            del state.gangs[key]
        elif _is_up(state, app):
            del state.gangs[key]
            _mark_judged(state, app)
            _forgive(state, app)
        elif late < JUDGED_MAX and state.cell.time_ms >= _admitted_ms(state, app) + gang.deadline_ms:
            late += 1
            del state.gangs[key]
            _mark_judged(state, app)
            _judge(state, app, gang)


def _is_judged(state: State, app: Application) -> bool:
    """Once is enough: pods that end later are no failure of the start."""
    if app.workload is not None:
        return app.workload.judged
    return any(state.pod(key).judged for book in app.books.values() for key in book.holding)


def _mark_judged(state: State, app: Application) -> None:
    if app.workload is not None:
        app.workload.judged = True
        state.workloads.put(app.workload)
        return
    for key in sorted(key for book in app.books.values() for key in book.holding):
        pod = state.pod(key)
        pod.judged = True
        state.pods.put(pod)


def _forgive(state: State, app: Application) -> None:
    """A gang that came up may fail later as if it never had before."""
    if app.workload is not None and app.workload.late_starts:
        app.workload.late_starts = 0
        state.workload_changed(app.workload)


def _judge(state: State, app: Application, gang: Gang) -> None:
    workload, running = app.workload, _running(state, app)
    if not gang.hard:
        if workload is not None:
            workload.minima = {name: min(least, running.get(name, 0)) for name, least in _minima(app).items()}
            state.workload_changed(workload)
        return
    so_far = f"{sum(running.values())} of {sum(_minima(app).values())} pods"
    seconds = gang.deadline_ms // 1000
    why = f"{seconds} s after its admission only {so_far} ran: it goes back into its queue"
    if workload is None:  # its pods go, and who makes them decides when there are others
        leaf = state.forest.leaves.get(_first(state, app).queue, state.forest.root)
        evict(state, whole_of(state, leaf, app), reason="GangDeadline", sentence=why)
        return
    workload.late_starts += 1
    requeue(
        state,
        app,
        workload,
        failures=workload.late_starts,
        deadline_ms=gang.deadline_ms,
        reason="GangDeadline",
        sentence=why,
    )


def _is_up(state: State, app: Application) -> bool:
    running = _running(state, app)
    return all(running.get(name, 0) >= minimum for name, minimum in _minima(app).items())


def _running(state: State, app: Application) -> dict[str, int]:
    return {
        name: sum(1 for key in book.holding if state.pod(key).facts.phase == "Running")
        for name, book in app.books.items()
    }


def _minima(app: Application) -> dict[str, int]:
    if app.workload is None:
        return {"": app.group_size}
    return {each.name: minimum_of(app.workload, each) for each in app.workload.facts.pod_sets}


def _first(state: State, app: Application) -> Pod:
    """The first pod that a group holds; while it is admitted, it holds some."""
    return state.pod(min(key for book in app.books.values() for key in book.holding))


def _admitted_ms(state: State, app: Application) -> int:
    if app.workload is not None:
        return app.workload.admitted_ms
    return max(state.pod(key).admitted_ms for book in app.books.values() for key in book.holding)
