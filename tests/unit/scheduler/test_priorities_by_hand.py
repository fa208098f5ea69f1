"""Who ranks above others is an administrator's to say: a number that somebody wrote by hand counts as 0."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set
from sluice.decisions import Evict
from sluice.events import PriorityClassEvent
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

MOST = 2**31 - 1


def preempting() -> Applications:
    """A queue that allows preemption, filled by pods of PriorityClass "high"."""
    cell = Applications(cpu=4000)
    cell.queue("team", preemption="lowerPriority")
    cell.tell(PriorityClassEvent, "high", value=1000)
    cell.tell(PriorityClassEvent, "highest", value=2000)
    cell.pods("p1", "p2", "p3", "p4", priority=1000)
    assert len(cell.open) == 4
    return cell


def test_a_number_written_by_hand_pushes_nobody_out() -> None:
    cell = preempting()
    for kind in ("DynamicWorkload", "RayCluster", "Job", "QueueJob", "SparkApplication"):
        cell.application(kind, pod_set("main", 4, 4, 4), kind=kind, priority=MOST)
    cell.pass_seconds(5)
    assert not [each for each in cell.decisions if isinstance(each, Evict)]
    assert {w.priority for w in cell.state.workloads} == {0}


def test_nor_does_one_beside_a_class_that_does_not_exist() -> None:
    cell = preempting()
    cell.application("mine", pod_set("main", 4, 4, 4), priority=MOST, priority_class="mine")
    cell.pass_seconds(5)
    assert len(cell.open) == 4


def test_a_class_does() -> None:
    cell = preempting()
    cell.application("urgent", pod_set("main", 4, 4, 4), priority=7, priority_class="highest")
    cell.pass_seconds(5)
    assert not cell.open
    assert cell.is_released("urgent")


def test_nobody_loses_pods_to_a_number_in_the_line_either() -> None:
    cell = Applications(cpu=1000)
    cell.application("first", pod_set("main", 2, 1, 2), kind="DynamicWorkload")
    cell.application("second", pod_set("main", 1, 1, 1), kind="DynamicWorkload")
    cell.application("third", pod_set("main", 1, 1, 1), kind="DynamicWorkload", priority=MOST)
    assert [cell.shown(name).position for name in ("second", "third")] == [1, 2]


def test_the_number_of_a_pod_is_its_classs() -> None:
    """The API server wrote it, and refuses any other."""
    cell = preempting()
    cell.pods("p5", priority=2000)
    cell.pass_seconds(5)
    assert "p5" in cell.open
    cell.pods("driver", pod_set="driver", workload="SparkDriver/etl", priority=2000)
    [spark] = cell.state.workloads
    assert spark.priority == 2000


def test_a_scenarios_priority_is_that_of_a_class() -> None:
    pods = [{"name": "main", "count": 2, "requests": {"cpu": "1"}}]
    scenario = Scenario.model_validate(
        {
            "apiVersion": "sluice.dev/v1alpha1",
            "kind": "Scenario",
            "pools": [{"name": "default", "capacity": {"cpu": "2"}}],
            "queues": [{"name": "a", "preemption": "lowerPriority"}],
            "events": [
                {"at": 0, "submit": {"name": "low", "queue": "a", "priority": -1, "podSets": pods}},
                {"at": 1, "submit": {"name": "high", "queue": "a", "priority": 5, "podSets": pods}},
            ],
            "until": 5,
        }
    )
    simulation = Simulation(scenario)
    admitted = simulation.run().summary["admitted"]
    assert (admitted["low"]["main"], admitted["high"]["main"]) == (0, 2)
    classes = {each.name: each.value for each in simulation.cell.state.priority_classes}
    assert classes == {"priority--1": -1, "priority-5": 5}
