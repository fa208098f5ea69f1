"""What DRF promises, on flat queues of equal weight whose tenants all ask for more than there is: nobody is
better off with an equal part of the cluster to himself, and nobody would swap what he holds for another's.

Both hold within one largest task, because tasks are not divided.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given
from hypothesis import strategies as st
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

RESOURCES = ("cpu", "memory", "gpu")


class Tenant(NamedTuple):
    """One who asks for tasks that are all alike."""

    task: dict[str, Fraction]  # of the whole
    tasks: int  # that he was given

    def supported_by(self, amounts: dict[str, Fraction]) -> Fraction:
        """How many of his tasks so much is enough for."""
        return min(amounts[resource] / part for resource, part in self.task.items() if part)

    def holds(self, tasks: int) -> dict[str, Fraction]:
        return {resource: part * tasks for resource, part in self.task.items()}


@st.composite
def divisions(draw: Any) -> list[Tenant]:
    """What tenants have in the end who ask at the same time for more than there is."""
    capacity = {resource: draw(st.integers(4, 24)) for resource in RESOURCES}
    tasks = draw(
        st.lists(
            st.fixed_dictionaries(
                {"cpu": st.integers(1, 4), "memory": st.integers(0, 4), "gpu": st.integers(0, 2)}
            ),
            min_size=2,
            max_size=5,
        )
    )
    names = [f"q{number}" for number in range(len(tasks))]
    asked = 1 + max(capacity.values())
    scenario = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "p", "nodes": 1, "capacity": {r: str(n) for r, n in capacity.items()}}],
        "queues": [{"name": name} for name in names],
        "events": [
            {
                "at": 0,
                "submit": {
                    "name": name,
                    "queue": name,
                    "podSets": [
                        {
                            "name": "main",
                            "count": asked,
                            "minCount": 0,
                            "requests": {r: str(n) for r, n in task.items() if n},
                        }
                    ],
                },
            }
            for name, task in zip(names, tasks, strict=True)
        ],
        "until": 5,
    }
    simulation = Simulation(Scenario.model_validate(scenario))
    simulation.run()
    pods = [pod for pod in simulation.cell.state.pods if pod.holds]
    return [
        Tenant(
            task={resource: Fraction(task[resource], capacity[resource]) for resource in RESOURCES},
            tasks=sum(pod.queue == name for pod in pods),
        )
        for name, task in zip(names, tasks, strict=True)
    ]


@given(divisions())
def test_sharing_is_no_worse_than_an_equal_part_of_the_cluster(tenants: list[Tenant]) -> None:
    largest = max(max(tenant.task.values()) for tenant in tenants)
    for tenant in tenants:
        share = max(tenant.holds(tenant.tasks).values())
        # What is left over, and fits nobody, is less than a task; of the rest an equal part is his, less one.
        assert share >= (1 - largest) / len(tenants) - largest


@given(divisions())
def test_nobody_would_swap_what_he_holds_for_another_s(tenants: list[Tenant]) -> None:
    largest = max(max(tenant.task.values()) for tenant in tenants)
    for tenant in tenants:
        part = max(tenant.task.values())
        for other in tenants:
            if other is not tenant and other.tasks:
                before_his_last = other.holds(other.tasks - 1)
                # Who had most may have given it all for one larger task (`turns-with-a-larger-pod.yaml`).
                assert tenant.supported_by(before_his_last) * part <= tenant.tasks * part + largest
