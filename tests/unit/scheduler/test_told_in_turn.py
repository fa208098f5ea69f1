"""Of much that changes at once, so much is told at each tick: the rest later, and everything in the end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from one_cell import OneCell
from sluice.decisions import (
    CreateWorkload,
    ObjectDecision,
    ReportJob,
    ReportPool,
    ReportQueue,
    ReportWorkload,
)
from sluice.events import JobFacts
from sluice_scheduler.core.reports.report import TOLD_MAX
from sluice_scheduler.core.reports.shown import WAITING_TOLD_MAX
from sluice_scheduler.simulator.cell import outcome


def told_at_next_tick(cell: OneCell, kind: type[ObjectDecision]) -> list[str]:
    before = len(cell.decisions)
    cell.tick()
    return [each.name for each in cell.decisions[before:] if isinstance(each, kind)]


def test_queues_take_turns() -> None:
    cell = OneCell()
    cell.pool(cpu=1_000_000)
    names = [f"q{number:02}" for number in range(2 * TOLD_MAX + 5)]
    for name in names:
        cell.queue(name)
        cell.namespace(name)
    ticks = [told_at_next_tick(cell, ReportQueue) for _ in range(4)]
    assert [len(told) for told in ticks] == [TOLD_MAX, TOLD_MAX, 5, 0]
    assert sorted(name for told in ticks for name in told) == names


def test_who_was_told_of_last_waits_longest() -> None:
    cell = OneCell()
    cell.pool(cpu=1_000_000)
    names = [f"q{number:02}" for number in range(TOLD_MAX + 5)]
    for name in names:
        cell.queue(name)
        cell.namespace(name)
    first = told_at_next_tick(cell, ReportQueue)
    for name in names:
        cell.pod(f"pod-{name}", name)
    second = told_at_next_tick(cell, ReportQueue)
    assert second[:5] == [name for name in names if name not in first]


def test_of_those_that_wait_some_are_told_at_each_tick_and_of_those_that_run_all() -> None:
    cell = Applications(cpu=3000)
    cell.application("runs", pod_set("main", 3, 3, 3))
    for number in range(WAITING_TOLD_MAX + 7):
        cell.application(f"waits-{number:02}", pod_set("main", 3, 3, 3))
    first = told_at_next_tick(cell, CreateWorkload)
    assert len(first) == WAITING_TOLD_MAX + 1
    assert any("-runs-" in name for name in first)
    assert len(told_at_next_tick(cell, CreateWorkload)) == 7
    assert told_at_next_tick(cell, ReportWorkload) == []


# ---- what could not be written

JOB = JobFacts(restart_limit=None, backoff_limit=6, backoff_ms=10_000)


@pytest.mark.parametrize("kind", [ReportQueue, ReportPool, ReportWorkload, ReportJob])
@pytest.mark.parametrize("result", ["Conflict", "Failed", "Rejected", "Gone"])
def test_what_could_not_be_written_is_told_again_and_nothing_else_is(
    kind: type[ObjectDecision], result: Any
) -> None:
    cell = Applications("team", "other")
    for name in ("one", "two"):
        cell.application(name, pod_set("main", 1, 1, 1, completions=1), kind="QueueJob", job=JOB)
    cell.pass_seconds(4)
    last: Any = next(each for each in reversed(cell.decisions) if isinstance(each, kind))
    before = len(cell.decisions)
    cell.cell.feed([replace(outcome(last, 0), result=result, uid=last.uid)])
    cell.pass_seconds(2)
    again = [each for each in cell.decisions[before:] if not isinstance(each, CreateWorkload)]
    assert [replace(each, time_ms=last.time_ms, sentence=last.sentence) for each in again] == [last]
    made = [each for each in cell.decisions[before:] if isinstance(each, CreateWorkload)]
    assert len(made) == (kind is ReportWorkload and result == "Gone")


@pytest.mark.parametrize("result", ["Applied", "AlreadyApplied", "Superseded"])
def test_what_was_written_is_not_told_again(result: Any) -> None:
    cell = Applications()
    cell.pass_seconds(2)
    last = next(each for each in reversed(cell.decisions) if isinstance(each, ReportQueue))
    cell.cell.feed([replace(outcome(last, 0), result=result, uid=last.uid)])
    assert told_at_next_tick(cell, ReportQueue) == []
