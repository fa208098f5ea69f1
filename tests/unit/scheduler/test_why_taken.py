"""The sentence of a pod that is taken back."""

from __future__ import annotations

from typing import Any

from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario


def taken(queues: list[dict[str, Any]], *workloads: dict[str, Any], nodes: int = 4) -> list[tuple[str, str]]:
    """Of which workload pods were taken back, and why; workloads come one a second, each a gang of one pod set."""
    submits = [
        {"name": f"w{at}", "podSets": [{"name": "main", "count": 1, **each.pop("pods")}], **each}
        for at, each in enumerate(workloads)
    ]
    content = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "p", "nodes": nodes, "capacity": {"cpu": "2", "gpu": "1"}}],
        "queues": queues,
        "events": [{"at": at, "submit": submit} for at, submit in enumerate(submits)],
        "until": "20s",
    }
    simulation = Simulation(Scenario.model_validate(content))
    lines = simulation.run().lines
    return [(line["workload"], line["sentence"]) for line in lines if line["type"] == "reclaim"]


CPU: dict[str, Any] = {"requests": {"cpu": "1"}}
GPU: dict[str, Any] = {"requests": {"gpu": "1"}}


def test_it_names_the_guarantee_how_much_of_it_is_asked_and_held() -> None:
    queues: list[dict[str, Any]] = [{"name": "a"}, {"name": "b", "guaranteed": {"cpu": "3"}}]
    rich = {"queue": "a", "pods": {**CPU, "count": 7, "minCount": 0}}
    one = {"queue": "b", "pods": {**CPU}}
    two = {"queue": "b", "pods": {**CPU, "count": 2}}
    sentence = "b is owed 2 cpu by b's guarantee of 3 cpu, of which b holds 1 now"
    assert taken(queues, rich, one, two) == [("w0", sentence)]


def test_a_guarantee_above_is_told_by_its_own_name_and_account() -> None:
    queues: list[dict[str, Any]] = [
        {"name": "a"},
        {"name": "team", "guaranteed": {"cpu": "4"}},
        {"name": "b", "parent": "team"},
        {"name": "c", "parent": "team"},
    ]
    rich = {"queue": "a", "pods": {**CPU, "count": 6, "minCount": 0}}
    sentence = "b is owed 2 cpu by team's guarantee of 4 cpu, of which team holds 2 now"
    others = {"queue": "c", "pods": {**CPU, "count": 2}}
    assert taken(queues, rich, others, {"queue": "b", "pods": {**CPU, "count": 2}}) == [("w0", sentence)]


def test_what_a_claim_asks_for_beside_its_guarantee_is_not_called_owed() -> None:
    """The guarantee is of cpu, of which there is enough; what is taken is a gpu."""
    queues: list[dict[str, Any]] = [{"name": "a"}, {"name": "b", "guaranteed": {"cpu": "2"}}]
    rich = {"queue": "a", "pods": {**GPU, "count": 4, "minCount": 0}}
    both = {"queue": "b", "pods": {"requests": {"cpu": "2", "gpu": "1"}}}
    owed = "b is owed 2 cpu by b's guarantee of 2 cpu, of which b holds 0 now"
    assert taken(queues, rich, both) == [("w0", f"{owed}; its claim asks for gpu beside that")]


def test_of_several_guarantees_that_counts_of_which_the_unit_gives() -> None:
    queues: list[dict[str, Any]] = [{"name": "a"}, {"name": "b", "guaranteed": {"cpu": "2", "gpu": "1"}}]
    rich = {"queue": "a", "pods": {**GPU, "count": 4, "minCount": 0}}
    both = {"queue": "b", "pods": {"requests": {"cpu": "2", "gpu": "1"}}}
    assert taken(queues, rich, both) == [
        ("w0", "b is owed 1 gpu by b's guarantee of 1 gpu, of which b holds 0 now")
    ]


def test_of_several_supplies_shares_are_of_the_one_that_something_is_taken_from() -> None:
    """a has most of the one, and deserves most of the other."""
    pools = [
        {"name": "p", "capacity": {"cpu": "4"}},
        {"name": "r", "capacity": {"cpu": "4"}, "supply": "other"},
    ]
    content = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": pools,
        "queues": [{"name": "a"}, {"name": "b"}],
        "events": [
            {"at": at, "submit": {"name": name, "queue": queue, "podSets": [pods(count, pool)]}}
            for at, (name, queue, count, pool) in enumerate(
                [("large", "a", 4, "p"), ("more", "a", 2, "r"), ("few", "b", 2, "p")]
            )
        ],
        "until": "10s",
    }
    lines = Simulation(Scenario.model_validate(content)).run().lines
    sentences = {line["sentence"] for line in lines if line["type"] == "reclaim"}
    assert sentences == {
        "a has 100.0% of cpu by weight and deserves 50.0%, b has 0.0% of cpu and deserves 50.0%"
    }


def pods(count: int, pool: str) -> dict[str, Any]:
    return {"name": "main", "count": count, "minCount": 0, **CPU, "nodeSelector": {"pool": pool}}
