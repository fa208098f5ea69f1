"""Queues that can't stand anywhere, or whose amounts nobody can read, are told so; everybody else goes on."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import pytest
from one_cell import OneCell
from sluice.decisions import Admit, Evict
from sluice.events import NamespaceSelector, QueueEvent, QueueFacts
from sluice_scheduler.blame import blame
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.tree import LEVELS_MAX, build_tree
from sluice_scheduler.core.stored.entities import Queue


def queue(name: str, parent: str = "") -> Queue:
    return Queue(
        cluster="sim", uid=name, name=name, resource_version=1, facts=QueueFacts(parent=parent, created_ms=0)
    )


def problems(*queues: Queue) -> dict[str, str]:
    tree = build_tree(queues, "default", ["default"], {})
    return {name: node.problem for name, node in tree.items() if node.problem}


def chain(length: int) -> list[Queue]:
    return [queue(f"q{level:04}", f"q{level - 1:04}" if level else "") for level in range(length)]


def test_queues_stand_on_so_many_levels() -> None:
    assert not problems(*chain(LEVELS_MAX))
    too_deep = problems(*chain(LEVELS_MAX + 2))
    assert list(too_deep) == [f"q{LEVELS_MAX:04}", f"q{LEVELS_MAX + 1:04}"]
    assert too_deep[f"q{LEVELS_MAX:04}"] == (
        "it stands on level 33, and queues may stand on 32 levels: set spec.parent of it, or of one above it, to a "
        "queue further up"
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_others_go_on_beside_a_chain_of_any_length(reverse: bool) -> None:
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("calm")
    cell.namespace("calm")
    for each in sorted(chain(100), key=lambda queue: queue.name, reverse=reverse):
        cell.tell(QueueEvent, each.name, queue=each.facts)
    assert not problems(*chain(5000)).keys() & {each.name for each in chain(LEVELS_MAX)}
    cell.pod("x", "calm")
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["x"]
    assert "on level 100" in cell.state.tree["q0099"].problem


def test_whoever_stands_below_a_circle_is_told_of_it() -> None:
    found = problems(queue("a", "b"), queue("b", "a"), queue("c", "b"), queue("calm"))
    assert found.keys() == {"a", "b", "c"}
    assert all("circle" in problem for problem in found.values())


def test_the_order_in_which_queues_came_is_not_told() -> None:
    """Below a queue whose parent is missing, and below one that is promised too much."""
    queues = [queue("z", "none"), queue("y", "z"), queue("a", "y")]
    found = problems(*queues)
    assert [problems(*each) for each in permutations(queues)] == [found] * 6
    why = "can't be used: its parent none does not exist: create it, or set spec.parent to a queue that does"
    assert found["a"] == found["y"] == f"queue z, above it, {why}"


@pytest.mark.parametrize("amount", ["many", "-1"])
def test_what_runs_in_a_queue_with_an_amount_that_nobody_can_read_goes_on(amount: str) -> None:
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("a")
    cell.namespace("a")
    cell.pod("x", "a")
    cell.pod("x", "a", gated=False)
    facts = QueueFacts(namespaces=NamespaceSelector(names=("a",)), created_ms=0)
    for wrong in (
        {"limit": {"cpu": amount}},
        {"guaranteed": {"cpu": amount}},
        {"limit_by_pool": {"default": {"cpu": amount}}},
    ):
        cell.tell(QueueEvent, "a", queue=replace(facts, **wrong))
        cell.tick()
        assert cell.state.tree["a"].problem.startswith("spec.")
    assert not [each for each in cell.decisions if isinstance(each, Evict)]


def test_what_is_half_made_is_not_blamed_and_hides_nobody() -> None:
    cell = OneCell()
    cell.queue("a")

    def raises(_whole: Branch, _half: Branch) -> None:
        raise RecursionError

    with pytest.raises(RecursionError) as raised:
        raises(cell.state.forest.leaves["a"], Branch.__new__(Branch))
    assert blame(cell.state, raised.value).suspects == ("queue/sim/queue-a",)
