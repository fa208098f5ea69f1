"""What node selectors select is known as long as anything waits or stands by them, and no longer."""

from __future__ import annotations

from one_cell import OneCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

SELECTED = {"pool": "p"}


def known_after(seconds: int) -> bool:
    pods = {"name": "main", "count": 2, "requests": {"cpu": "1"}, "nodeSelector": SELECTED}
    submit = {"name": "w", "queue": "a", "runtime": 10, "podSets": [pods]}
    simulation = Simulation(
        Scenario.model_validate(
            {
                "apiVersion": "sluice.dev/v1alpha1",
                "kind": "Scenario",
                "pools": [{"name": name, "nodes": 1, "capacity": {"cpu": "4"}} for name in "pq"],
                "queues": [{"name": "a"}],
                "events": [{"at": 0, "submit": submit}],
                "until": seconds,
            }
        )
    )
    simulation.run()
    selectors = [selector for _, selector in simulation.cell.state.forest._places._reaches.selectors]
    return tuple(SELECTED.items()) in selectors


def test_while_pods_stand_by_it_and_not_when_they_have_ended() -> None:
    """A tenant may name any number of them, one after the other."""
    assert known_after(5)
    assert not known_after(20)


def test_who_is_bound_to_a_pool_when_he_is_opened_counts_as_what_he_asked_for() -> None:
    """The actuator writes the pool's own selector on the pod."""
    cell = OneCell()
    for name in "pq":
        cell.pool(name, cpu=1000)
    cell.queue("team")
    cell.namespace("team")
    cell.pod("x", "team")
    [[asked]] = [list(cell.state.forest.leaves["team"].wants)]
    cell.pod("x", "team", gated=False, node_selector={"pool": "p"}, node="node-p")
    assert list(cell.state.forest.leaves["team"].wants) == [asked]
    assert cell.state.validate() == []
    cell.pod("x", "team", gated=False, node_selector={"pool": "p"}, phase="Succeeded")
    assert not cell.state.forest.leaves["team"].wants
    assert cell.state.validate() == []
