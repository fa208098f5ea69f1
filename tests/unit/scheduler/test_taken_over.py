"""What a running cell knows is what one that is taken over derives: after edits of what stands already, too."""

from __future__ import annotations

from typing import Any

import one_cell
import pytest
from one_cell import OneCell
from sluice.decisions import Admit, Evict
from sluice.events import Gang, NodeEvent, NodeFacts, PoolEvent, PoolFacts
from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.claims import Dim
from twin_cells import TwinCell


@pytest.fixture(autouse=True)
def _taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_cell, "SimulatedCell", TwinCell)


def small() -> OneCell:
    """One pool with 10 cpu, and queue `a` with its namespace."""
    cell = OneCell()
    cell.pool(cpu=10_000)
    cell.queue("a")
    cell.namespace("a")
    return cell


def test_a_group_of_pods_that_is_made_smaller_starts() -> None:
    cell = small()
    cell.pod("x", "a", workload="group", group_size=3)
    cell.pod("x", "a", workload="group", group_size=1)
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["x"]


def test_a_deadline_that_a_running_group_is_given_holds() -> None:
    cell = small()
    for name in ("x", "y"):
        cell.pod(name, "a", workload="group", group_size=2)
    for name in ("x", "y"):
        cell.pod(name, "a", workload="group", group_size=2, gated=False, gang=Gang(deadline_ms=2000))
    for _ in range(3):
        cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Evict)] == ["x", "y"]


def shed(cell: OneCell) -> list[str]:
    return [
        each.name for each in cell.decisions if isinstance(each, Evict) and each.reason == "Overcommitted"
    ]


def test_what_runs_on_a_resource_that_its_pool_has_nothing_of_is_over() -> None:
    cell = small()
    gpu: Any = {"requests": {"cpu": 1000, "nvidia.com/gpu": 1}}
    cell.pod("x", "a", gated=False, phase="Running", node="node-default", **gpu)
    cell.tick()
    assert shed(cell) == ["x"]
    cell.pod("x", "a", change="DELETED", **gpu)
    cell.tick()
    assert ("sim", "default", "nvidia.com/gpu") not in cell.state.forest.capacity


def test_what_runs_on_nodes_that_are_all_cordoned_is_over() -> None:
    cell = small()
    labels = {"pool": "default"}
    cell.tell(
        NodeEvent,
        "node-default",
        node=NodeFacts(allocatable={"cpu": 10_000}, labels=labels, schedulable=False),
    )
    cell.pod("x", "a", gated=False, phase="Running", node="node-default")
    cell.tick()
    assert shed(cell) == ["x"]


def test_what_runs_in_a_pool_that_is_deleted_is_over_whoever_takes_the_cell_over() -> None:
    cell = small()
    cell.pod("x", "a")
    cell.pod("x", "a", gated=False, phase="Running", node="node-default")
    cell.tell(PoolEvent, "default", change="DELETED", pool=PoolFacts())
    assert shed(cell) == ["x"]
    cell.cell.restart()
    assert cell.state.validate() == []
    assert rooms(cell.state) == {("sim", "default", "cpu"): (0, -1000)}


def rooms(state: State) -> dict[Dim, tuple[int, int]]:
    state.forest.settle()
    return {room.bound.dims[0]: (room.bound.amount, room.left) for room in state.forest.root.rooms}
