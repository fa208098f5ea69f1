"""What /metrics tells of a cell: by its owner, and of what there is."""

from __future__ import annotations

import pytest
from one_cell import OneCell, shown_metric
from sluice.events import QueueEvent, QueueFacts
from sluice_scheduler.metrics import forget
from sluice_scheduler.simulator.cell import CELL


@pytest.fixture
def cell() -> OneCell:
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


def test_lines_are_told_while_their_queues_are_there(cell: OneCell) -> None:
    assert cell.metric("sluice_waiting_pods", queue="small") == 1
    cell.tell(QueueEvent, "small", change="DELETED", queue=QueueFacts())
    assert cell.metric("sluice_waiting_pods", queue="small") is None
    assert cell.metric("sluice_waiting_pods", queue="full") == 1


def test_who_has_lost_a_cell_tells_nothing_of_it(cell: OneCell) -> None:
    assert cell.metric("sluice_bypassed_pods") == 1
    forget(CELL)
    for name in ("sluice_bypassed_pods", "sluice_misdirected_pods", "sluice_scheduler_next_offset"):
        assert shown_metric(name, cell=CELL) is None
    assert shown_metric("sluice_waiting_pods", cell=CELL, queue="full") is None
    forget(CELL)
