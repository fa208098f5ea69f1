"""What node selectors select is known as long as anything waits or stands by them, and no longer."""

from __future__ import annotations

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
    selectors = [selector for _, selector in simulation.cell.state.forest._places._sizes]
    return tuple(SELECTED.items()) in selectors


def test_while_pods_stand_by_it_and_not_when_they_have_ended() -> None:
    """A tenant may name any number of them, one after the other."""
    assert known_after(5)
    assert not known_after(20)
