"""An inner queue that names no guarantee of a resource guarantees the sum of what its children do."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

GPU = "nvidia.com/gpu"


def cell_of(*queues: tuple[str, dict[str, Any]]) -> OneCell:
    cell = OneCell()
    capacity: dict[str, Any] = {"cpu": 10_000, GPU: 8}
    cell.pool(**capacity)
    for name, spec in queues:
        cell.queue(name, **spec)
    cell.tick()
    return cell


def problems(cell: OneCell) -> dict[str, str]:
    """Of queues that can't be used."""
    return {name: node.problem for name, node in cell.state.tree.items() if node.problem}


def guarantees(cell: OneCell, queue: str) -> dict[str, int]:
    cell.state.forest.settle()
    return {bound.dims[0][2]: bound.amount for bound in cell.state.forest.branch(queue).guarantees}


def test_guarantees_of_children_alone_are_allowed_and_add_up() -> None:
    cell = cell_of(
        ("org", {"guaranteed": {GPU: "2"}}),
        ("a", {"parent": "org", "guaranteed": {"cpu": "3"}}),
        ("b", {"parent": "org", "guaranteed": {"cpu": "20%", GPU: "2"}}),
        ("c", {"parent": "org"}),
    )
    assert problems(cell) == {}
    assert guarantees(cell, "org") == {"cpu": 5000, GPU: 2}


def test_they_are_passed_on_through_several_levels() -> None:
    cell = cell_of(
        ("top", {}),
        ("middle", {"parent": "top"}),
        ("x", {"parent": "middle", "guaranteed": {"cpu": "1"}}),
        ("y", {"parent": "middle", "guaranteed": {"cpu": "2"}}),
        ("z", {"parent": "top", "guaranteed": {"cpu": "4"}}),
    )
    assert problems(cell) == {}
    assert (guarantees(cell, "middle"), guarantees(cell, "top")) == ({"cpu": 3000}, {"cpu": 7000})


def test_what_is_passed_on_may_not_exceed_what_a_queue_above_names() -> None:
    cell = cell_of(
        ("top", {"guaranteed": {"cpu": "5"}}),
        ("middle", {"parent": "top"}),
        ("x", {"parent": "middle", "guaranteed": {"cpu": "3"}}),
        ("y", {"parent": "middle", "guaranteed": {"cpu": "3"}}),
        ("z", {"parent": "top"}),
    )
    assert set(problems(cell)) == {"middle", "x", "y"}
    assert problems(cell)["middle"] == (
        "spec.guaranteed.cpu: the queues below top are guaranteed 3 + 3, more than its own 5: lower "
        "theirs, or raise top's"
    )


def test_bounds_in_pools_that_have_nothing_in_common_stay_apart() -> None:
    cell = OneCell()
    for pool in ("p", "q"):
        cell.pool(pool, cpu=4000)
    cell.queue("org")
    cell.queue("a", parent="org", pools={"p": {"guaranteed": {"cpu": "1"}}})
    cell.queue("b", parent="org", pools={"q": {"guaranteed": {"cpu": "50%"}}})
    cell.queue("c", parent="org", pools={"p": {"guaranteed": {"cpu": "2"}}})
    cell.tick()
    found = {bound.dims: bound.amount for bound in cell.state.forest.branch("org").guarantees}
    assert sorted(found.values()) == [2000, 3000]
    assert all(len(dims) == 1 for dims in found)


def test_a_queue_that_may_not_oversubscribe_has_what_is_guaranteed_below_it() -> None:
    cell = cell_of(
        ("org", {"oversubscription": "never"}),
        ("a", {"parent": "org", "guaranteed": {"cpu": "2"}}),
    )
    cell.namespace("a")
    for number in range(3):
        cell.pod(f"p{number}", "a")
    assert sum(1 for pod in cell.state.pods if pod.holds) == 2


@pytest.mark.parametrize("named", [{}, {"guaranteed": {"cpu": "4"}}])
def test_a_child_gets_what_is_guaranteed_to_it_alone_as_if_its_parent_named_it(named: dict[str, Any]) -> None:
    """A sibling had filled what their parent guarantees, and the rest is another's."""
    one = {"name": "main", "count": 10, "minCount": 0, "requests": {"cpu": "1"}}
    scenario = Scenario.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Scenario",
            "pools": [{"name": "default", "capacity": {"cpu": "6"}}],
            "queues": [
                {"name": "org", **named},
                {"name": "a", "parent": "org", "guaranteed": {"cpu": "4"}},
                {"name": "b", "parent": "org"},
                {"name": "other", "weight": 9},
            ],
            "events": [
                {"at": 0, "submit": {"name": "crowd", "queue": "other", "podSets": [one]}},
                {"at": 0, "submit": {"name": "sibling", "queue": "b", "podSets": [one]}},
                {"at": 1, "submit": {"name": "owed", "queue": "a", "podSets": [one]}},
            ],
            "until": 10,
        }
    )
    admitted = Simulation(scenario).run().summary["admitted"]
    assert admitted["owed"]["main"] == 4
