"""Edits of namespaces and Queues, counted in accounts that are brought to their queues: those alone of which the
rules say something else than before."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice.events import PodSetFacts, WorkloadEvent, WorkloadFacts
from sluice_scheduler.core import State
from sluice_scheduler.core.applications import binding
from test_pieces_of_work import counted


def tenants() -> OneCell:
    """Three pods that name no queue, and one that names another below its namespace's."""
    cell = OneCell()
    cell.queue("a")
    cell.queue("b", parent="a")
    cell.queue("z")
    cell.namespace("a")
    for number in range(3):
        cell.pod(f"plain-{number}", "a")
    cell.pod("choosy", "a", queue="b")
    cell.namespace("a")
    return cell


def placed(patch: pytest.MonkeyPatch) -> list[Any]:
    module: Any = binding
    return counted(patch, module, "queue_for")


def queues(cell: OneCell) -> dict[str, tuple[str, bool]]:
    return {pod.name: (pod.queue, bool(pod.problem)) for pod in cell.state.pods}


def test_a_label_that_binds_nothing_else_moves_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = tenants()
    looked = placed(monkeypatch)
    cell.namespace("a", managed=False)
    cell.queue("z", weight=3)
    assert looked == []


def test_who_names_a_queue_is_moved_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = tenants()
    looked = placed(monkeypatch)
    cell.queue("b", parent="z")
    assert [pod.name for _, pod in looked] == ["choosy"]
    assert queues(cell)["choosy"] == ("a", True)
    cell.queue("b", parent="a")
    assert len(looked) == 2
    assert queues(cell) == {"choosy": ("b", False), **{f"plain-{n}": ("a", False) for n in range(3)}}


def test_pods_follow_an_application_that_names_a_queue() -> None:
    """Also those that wait in no line because that queue can't be used."""
    cell = tenants()
    sets = (PodSetFacts(name="main", count=1, min_count=1, requests={"cpu": 1}),)
    facts = WorkloadFacts(pod_sets=sets, created_ms=0, queue="b")
    cell.tell(WorkloadEvent, "w", namespace="a", workload=facts)
    cell.pod("member", "a", workload="w", pod_set="main")
    assert queues(cell)["member"] == ("b", False)
    cell.queue("b", parent="z")
    assert queues(cell)["member"] == ("a", True)
    cell.queue("b", parent="a")
    assert queues(cell)["member"] == ("b", False)


def test_what_has_gone_names_no_queue_any_more() -> None:
    cell = tenants()
    cell.pod("choosy", "a", queue="a")
    cell.pod("choosy", "a", change="DELETED")
    assert cell.state.choosy == {}


def half_running() -> OneCell:
    """Of two pods one runs, and the other waits."""
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("top")
    cell.queue("a")
    cell.namespace("a")
    cell.pod("runs", "a")
    cell.pod("runs", "a", gated=False)
    cell.pod("waits", "a")
    return cell


def test_a_queue_takes_its_pods_along_to_another_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = half_running()
    moved = counted(monkeypatch, State, "_enter")
    cell.queue("a", parent="top")
    assert moved == []
    top = cell.state.forest.branch("top")
    assert top is not None
    assert list(top.usage.values()) == [1000]


def test_what_holds_is_told_of_a_problem_and_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = half_running()
    moved = counted(monkeypatch, State, "_enter")
    cell.queue("a", parent="nobody")
    assert [pod.name for _, pod in moved] == ["waits"]
    assert queues(cell) == {"runs": ("a", True), "waits": ("a", True)}
    cell.queue("a")
    assert queues(cell) == {"runs": ("a", False), "waits": ("a", False)}
    assert cell.state.validate() == []
