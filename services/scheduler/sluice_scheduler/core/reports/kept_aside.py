"""Statuses of things that are set aside: the last figures, and a condition that says so.

They are not worked out anew, because that may be what raised. So this does not raise for the same reason.
"""

from __future__ import annotations

from typing import Any, Final

from sluice.decisions import Condition, GrantedPods, ReportWorkload
from sluice.texts import few

from sluice_scheduler.core.reports.figures import PoolFigures, QueueFigures
from sluice_scheduler.core.state.cell import StampAbout
from sluice_scheduler.core.state.conditions import condition, set_aside_because, since, told_no_more_because
from sluice_scheduler.core.state.members import queue_of, set_aside_by
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import STATUS, Pool, Queue, Report

REASON: Final = "SetAside"
_OF_QUEUE: Final[QueueFigures] = {
    "usage": {},
    "demand": {},
    "fair_share": {},
    "dominant_share": "0.0000",
    "dominant_resource": "",
    "pending": 0,
    "running": 0,
    "pending_workloads": 0,
    "admitted_workloads": 0,
    "lost_work_ms": 0,
    "lost_work_hour_ms": 0,
}
_OF_POOL: Final[PoolFigures] = {"nodes": 0, "capacity": {}, "reserved": {}, "unmanaged": {}}
_OF_WORKLOAD: Final[dict[str, Any]] = {"phase": "Pending", "pod_sets": [], "reclaimed": {}}


def all_are_silent(state: State) -> bool:
    """Whether no statuses are told, because what raised was nobody's in particular."""
    return state.is_aside(STATUS)


def is_plain(state: State, about: Workload | Queue | Pool) -> bool:
    """Whether no more is told of something than was before. A queue that is set aside can still be told of."""
    if not len(state.asides):
        return False
    key = about.key
    if isinstance(about, Workload):
        is_out = any(state.is_aside(each) for each in set_aside_by(state, key))
    else:
        is_out = state.is_stuck(key)
    return is_out or state.is_aside(STATUS + key)


def is_silent(state: State, key: str) -> bool:
    """Whether even that raised."""
    return bool(len(state.asides)) and state.is_stuck(STATUS + key)


def why_aside(state: State, key: str) -> str:
    found = (set_aside_because(state, each) for each in set_aside_by(state, key))
    return next(filter(None, found), "") or told_no_more_because(state, key)


def conditions_of(state: State, key: str, named: str = "") -> list[Condition]:
    """A condition while something is set aside: the object, its status, or things in it that `named` names."""
    problem = "; ".join(part for part in (why_aside(state, key), named) if part)
    return [condition(state, REASON, good=False, problem=problem, reason=REASON)] if problem else []


def by_queue(state: State) -> dict[str, str]:
    """A sentence for each queue in which something is set aside."""
    found: dict[str, list[str]] = {}
    for what in sorted(aside.what for aside in state.asides):
        if queue := queue_of(state, what):
            found.setdefault(queue, []).append(what)
    return {queue: _sentence(state, keys) for queue, keys in found.items()}


def _sentence(state: State, keys: list[str]) -> str:
    asides = [aside for key in keys if (aside := state.aside(key)) is not None]
    names = few([aside.name or aside.what for aside in asides])
    return f"set aside: {names}; {set_aside_because(state, keys[0])}"


def plain_queue(state: State, queue: Queue) -> tuple[QueueFigures, list[Condition]]:
    """A status that says what was said before, and why it says no more."""
    last = state.reports.get(f"{Report.kind}/{queue.kind}/{queue.name}")
    return {**_OF_QUEUE, **_said_by(last)}, _plain_conditions(state, queue, last)  # type: ignore[typeddict-item]


def plain_pool(state: State, pool: Pool) -> tuple[PoolFigures, list[Condition]]:
    last = state.reports.get(f"{Report.kind}/{pool.kind}/{pool.name}")
    return {**_OF_POOL, **_said_by(last)}, _plain_conditions(state, pool, last)  # type: ignore[typeddict-item]


def _said_by(last: Report | None) -> dict[str, Any]:
    if last is None:
        return {}
    return {name: value for name, value in last.figures.items() if name != "generation"}


def _plain_conditions(state: State, about: Queue | Pool, last: Report | None) -> list[Condition]:
    return [*_others(last), *conditions_of(state, about.key)]


def about_shown(state: State, workload: Workload) -> StampAbout:
    """What the statuses of an application's DynamicWorkload are made with."""
    return {**state.status_about(workload), "name": workload.shown}


def _others(last: Report | None) -> list[Condition]:
    return [each for each in last.conditions if each.type != REASON] if last is not None else []


def report_plainly(state: State, workload: Workload) -> None:
    """The same for an application, on its DynamicWorkload."""
    last = state.reports.get(f"{Report.kind}/{workload.key}")
    why = why_aside(state, workload.key)
    shown = {"generation": 1, **_OF_WORKLOAD, **(last.figures if last is not None else {}), "why": why}
    conditions = since(last, (*_others(last), *conditions_of(state, workload.key)))
    if not workload.shown or (last is not None and last.says(shown, conditions)):
        return
    decision = state.decide(
        ReportWorkload(
            **about_shown(state, workload),
            generation=shown["generation"],
            phase=shown["phase"],
            pod_sets=tuple(
                GrantedPods(name=name, desired=desired, admitted=admitted, running=running, taken=taken)
                for name, desired, admitted, running, taken in shown["pod_sets"]
            ),
            reclaimed=shown["reclaimed"],
            why=why,
            conditions=conditions,
            reason=REASON,
            sentence=f"{workload.title} is set aside",
        )
    )
    state.reports.put(
        Report(about=workload.key, told_ms=decision.time_ms, figures=shown, conditions=conditions)
    )
