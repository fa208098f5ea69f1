"""Gangs that do not come up in time: put back whole, or content with what runs."""

from __future__ import annotations

from sluice.events import Gang

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.minima import minimum_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import whole_of


def judge_gangs(state: State) -> None:
    for key in sorted(state.gangs):
        app = state.applications.get(key)
        gang = app.gang if app is not None else None
        if app is None or gang is None or not app.admitted or _is_judged(state, app):
            del state.gangs[key]
        elif _is_up(state, app):
            del state.gangs[key]
            _mark_judged(state, app)
        elif state.cell.time_ms >= _admitted_ms(state, app) + gang.deadline_ms:
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


def _judge(state: State, app: Application, gang: Gang) -> None:
    workload, running = app.workload, _running(state, app)
    if not gang.hard:
        if workload is not None:
            workload.minima = {name: min(least, running.get(name, 0)) for name, least in _minima(app).items()}
            state.workload_changed(workload)
        return
    leaf = state.forest.leaves.get(_queue(state, app))
    if leaf is None:
        return
    unit = whole_of(state, leaf, app)
    if workload is not None:
        workload.requeued_ms = state.cell.time_ms
    so_far = f"{sum(running.values())} of {sum(_minima(app).values())} pods"
    seconds = gang.deadline_ms // 1000
    why = f"{seconds} s after its admission only {so_far} ran: it goes back into its queue"
    evict(state, unit, reason="GangDeadline", sentence=why)


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


def _queue(state: State, app: Application) -> str:
    if app.workload is not None:
        return app.workload.queue
    return next((state.pod(key).queue for book in app.books.values() for key in sorted(book.holding)), "")


def _admitted_ms(state: State, app: Application) -> int:
    if app.workload is not None:
        return app.workload.admitted_ms
    return max(state.pod(key).admitted_ms for book in app.books.values() for key in book.holding)
