"""What /metrics tells of a cell: by its owner, and of what there is."""

from __future__ import annotations

import pytest
from one_cell import OneCell, shown_metric
from sluice_scheduler.metrics import forget
from sluice_scheduler.simulator.cell import CELL


@pytest.fixture
def cell() -> OneCell:
    forget(CELL)
    cell = OneCell()
    cell.pool(cpu=1000)
    for name in ("full", "small"):
        cell.queue(name)
        cell.namespace(name)
    cell.pod("runs", "full", gated=False)
    cell.pod("waits", "full")
    cell.pod("waits-too", "small")
    return cell


def test_pods_that_came_in_without_a_decision_are_counted_at_once(cell: OneCell) -> None:
    assert cell.metric("sluice_bypassed_pods") == 1
    cell.pod("runs", "full", gated=False, phase="Succeeded")
    assert cell.metric("sluice_bypassed_pods") == 0


def test_pods_that_wait_are_told_as_their_queues_status_tells_them(cell: OneCell) -> None:
    cell.queue("top")
    cell.queue("small", parent="top")
    shown = [(name, cell.figures(name)["pending"]) for name in ("full", "small", "top")]
    assert shown == [("full", 1), ("small", 1), ("top", 1)]
    assert [(name, cell.metric("sluice_waiting_pods", queue=name)) for name, _ in shown] == shown


def test_who_has_lost_a_cell_tells_nothing_of_it(cell: OneCell) -> None:
    cell.tick()
    assert cell.metric("sluice_bypassed_pods") == 1
    assert cell.metric("sluice_waiting_pods", queue="full") == 1
    forget(CELL)
    for name in ("sluice_bypassed_pods", "sluice_misdirected_pods", "sluice_scheduler_next_offset"):
        assert shown_metric(name, cell=CELL) is None
    assert shown_metric("sluice_waiting_pods", cell=CELL, queue="full") is None
    forget(CELL)
