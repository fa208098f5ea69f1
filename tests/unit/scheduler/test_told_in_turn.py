"""Of much that changes at once, so much is told at each tick: the rest later, and everything in the end."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set
from one_cell import OneCell
from sluice.decisions import CreateWorkload, ObjectDecision, ReportQueue, ReportWorkload
from sluice_scheduler.core.reports.report import TOLD_MAX
from sluice_scheduler.core.reports.shown import WAITING_TOLD_MAX


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
