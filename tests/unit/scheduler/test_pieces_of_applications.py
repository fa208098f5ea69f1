"""What a step does for applications, counted in looks at accounts: in proportion to what happens, however many pods an
application has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from one_cell import OneCell
from sluice.events import PodSetFacts, WorkloadEvent, WorkloadFacts
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.cell import CellTables
from sluice_scheduler.core.stored.tables import Table
from test_pieces_of_work import counted, pieces


def one_queue(cpu: int) -> OneCell:
    cell = OneCell()
    cell.pool(cpu=cpu)
    cell.queue("a")
    cell.namespace("a")
    return cell


def test_kinsfolk_are_met_once_however_many_ways_lead_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pod names two of them as what is above it, and these two each other."""
    cell = one_queue(10)
    hubs: Any = {"owner": "pod-x", "workload": "pod-y"}
    for name in ("y", *(f"p{number}" for number in range(100))):
        cell.pod(name, "a", **hubs)
    looked = counted(monkeypatch, Table, "get")
    cell.pod("x", "a", **hubs)
    assert len(looked) < 40 * 100


def workload(cell: OneCell, name: str, **of_its_pods: Any) -> None:
    main = PodSetFacts(name="main", requests={"cpu": 1}, **of_its_pods)
    facts = WorkloadFacts(pod_sets=(main,), created_ms=0)
    cell.tell(WorkloadEvent, name, namespace="a", workload=facts)


def joined(cell: OneCell, count: int, application: str, **facts: Any) -> None:
    for number in range(count):
        cell.pod(f"{application}-{number:04}", "a", cpu=1, workload=application, **facts)


def looked_at(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None]) -> int:
    """How often an account is looked up meanwhile."""
    with monkeypatch.context() as inside:
        looked = counted(inside, CellTables, "pod")
        happens()
    return len(looked)


def one_more(cell: OneCell, monkeypatch: pytest.MonkeyPatch, application: str, **facts: Any) -> int:
    return looked_at(monkeypatch, lambda: cell.pod("one-more", "a", cpu=1, workload=application, **facts))


@pytest.mark.parametrize("group_size", [1, 1000])
def test_one_more_pod_of_a_group_costs_the_same_among_many(
    group_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for room, or for the others."""
    cell = one_queue(0)
    looks = []
    for name, count in (("few", 10), ("many", 100)):
        joined(cell, count, name, group_size=group_size)
        looks.append(one_more(cell, monkeypatch, name, group_size=group_size))
        cell.pod("one-more", "a", change="DELETED")
    assert looks[0] == looks[1]


def test_one_more_pod_of_replicas_costs_the_same_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = one_queue(0)
    looks = []
    for name, count in (("few", 10), ("many", 100)):
        workload(cell, name, count=200, min_count=0, replica_size=2)
        joined(cell, count, name, pod_set="main")
        looks.append(one_more(cell, monkeypatch, name, pod_set="main"))
        cell.pod("one-more", "a", change="DELETED")
    assert looks[0] == looks[1]


def test_replicas_are_admitted_at_a_cost_in_proportion_to_their_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = []
    for count in (100, 200):
        cell = one_queue(0)
        workload(cell, "w", count=count, min_count=0, replica_size=2)
        joined(cell, count, "w", pod_set="main")
        totals.append(looked_at(monkeypatch, lambda cell=cell: cell.pool(cpu=10_000)))
        assert all(pod.holds for pod in cell.state.pods)
    assert totals[1] <= 2.1 * totals[0]


def test_pods_open_against_a_reservation_in_pieces_and_settle_once_in_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Budget.__init__, "__defaults__", (30,))
    cell = one_queue(0)
    workload(cell, "w", count=100, min_count=100)
    joined(cell, 100, "w", pod_set="main")
    settled = counted(monkeypatch, Application, "settle")
    opened = []
    with monkeypatch.context() as inside:
        spent = pieces(inside)
        cell.pool(cpu=100)
        while cell.state.cell.unfinished:
            opened.append(sum(pod.holds for pod in cell.state.pods))
            cell.tick()
    assert all(pod.holds for pod in cell.state.pods)
    assert opened == [30, 60, 90]
    assert max(spent) <= 31
    assert len(settled) <= 3 * 5
