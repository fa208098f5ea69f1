"""Simulated time stands still where nothing can happen: what is fed is events, and few ticks."""

from __future__ import annotations

from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario


def test_a_suspended_application_makes_no_tick_each_second() -> None:
    """It is taken back at 10 s, and waits until the other queue's ends at 100 s."""
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
    poor, owed = ({"name": queue, "queue": queue, "podSets": [pod_set]} for queue in ("poor", "owed"))
    played = Scenario.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Scenario",
            "pools": [{"name": "p", "nodes": 1, "capacity": {"cpu": "1"}}],
            "queues": [{"name": "poor"}, {"name": "owed", "guaranteed": {"cpu": "1"}}],
            "events": [
                {"at": "0s", "submit": poor},
                {"at": "10s", "submit": {**owed, "runtime": "90s"}},
            ],
            "until": "120s",
        }
    )
    fed: list[int] = []

    def note(cell: SimulatedCell) -> None:
        fed.append(cell.state.now_ms)

    simulation = Simulation(played, after_feed=note)
    lines = simulation.run().lines
    assert [(line["at"], line["type"]) for line in lines if line["workload"] == "poor"] == [
        (0, "admit"),
        (10, "requeue"),
        (10, "reclaim"),
        (100, "admit"),
    ]
    assert len({at_ms for at_ms in fed if 10_000 < at_ms < 100_000}) < 10
