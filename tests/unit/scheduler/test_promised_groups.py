"""A pod group that changes while its victims leave: a promise is kept only to what still asks for it."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice.decisions import Admit, Evict
from sluice_scheduler.simulator.cell import CLUSTER

GROUP: dict[str, Any] = {"workload": "PodGroup/g", "group_size": 2}


@pytest.fixture
def cell() -> OneCell:
    """Eight cpu, all of them a's; b's group of two has been promised two."""
    cell = OneCell()
    cell.pool(cpu=8000)
    cell.queue("a", reclaim={"graceSeconds": 30})
    cell.namespace("a")
    cell.queue("b")
    cell.namespace("b")
    for number in range(8):
        cell.pod(f"a{number}", "a")
    for decision in list(cell.decisions):
        if isinstance(decision, Admit):
            cell.pod(decision.name, "a", gated=False, decision=f"1-1.{decision.seq}")
    for number in range(2):
        cell.pod(f"g{number}", "b", **GROUP)
    cell.tick()
    assert len(cell.state.promises) == 1
    return cell


def after_victims_left(cell: OneCell) -> set[str]:
    """Whose gates are opened once they are gone; capacity must hold all the time."""
    before = len(cell.decisions)
    for decision in list(cell.decisions):
        if isinstance(decision, Evict):
            cell.pod(decision.name, "a", change="DELETED", gated=False)
    cell.tick()
    held = cell.state.forest.root.usage[(CLUSTER, "default", "cpu")]
    assert held <= 8000, held
    return {d.name for d in cell.decisions[before:] if isinstance(d, Admit) and d.namespace == "b"}


def test_it_is_kept_to_the_group_that_still_asks_for_it(cell: OneCell) -> None:
    assert after_victims_left(cell) == {"g0", "g1"}


def test_a_group_that_grew_asks_anew(cell: OneCell) -> None:
    for number in range(2, 8):
        cell.pod(f"g{number}", "b", **GROUP)
    after_victims_left(cell)
    assert not any(d.reason == "Overcommitted" for d in cell.decisions)


def test_a_group_that_lost_a_pod_does_not_start(cell: OneCell) -> None:
    cell.pod("g1", "b", change="DELETED", **GROUP)
    assert after_victims_left(cell) == set()


def test_a_group_of_other_pods_asks_anew(cell: OneCell) -> None:
    cell.pod("g1", "b", change="DELETED", **GROUP)
    cell.pod("g2", "b", cpu=7000, **GROUP)
    assert after_victims_left(cell) in (set(), {"g0", "g2"})


@pytest.mark.parametrize("names", [("g0", "g1"), ("g1", "g0")])
def test_its_first_pod_says_how_many_start_together_whoever_is_told_of_first(names: tuple[str, str]) -> None:
    """And so it is for a worker that takes over, whose ledger has them in any order."""
    cell = OneCell()
    cell.pool(cpu=8000)
    cell.queue("a")
    cell.namespace("a")
    sizes = {"g0": 3, "g1": 2}
    for name in names:
        cell.pod(name, "a", workload="PodGroup/g", group_size=sizes[name])
    assert not any(isinstance(each, Admit) for each in cell.decisions)


def test_pods_of_several_sets_are_one_group() -> None:
    """In whatever order they come, and are told again: all its pods have one order."""
    cell = OneCell()
    cell.pool(cpu=4000)
    cell.queue("a")
    cell.namespace("a")
    told = {"z0": "zebra", "a0": "ape", "z1": "zebra", "a1": "ape"}
    for name, pod_set in told.items():
        cell.pod(name, "a", workload="PodGroup/sets", group_size=4, pod_set=pod_set)
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["a0", "a1", "z0", "z1"]
