"""Whatever a queue puts before them, its pods above what it deserves are found, and are as old as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import Evict
from sluice.events import WorkloadEvent, WorkloadFacts

TENURE_S = 600
HOUR_S = 3600


def two(cpu: int, **reclaim: int) -> Applications:
    """Queues a and b alike; what b may lose is bounded."""
    cell = Applications("a", "b", cpu=cpu)
    cell.configure(tenure_ms=TENURE_S * 1000, patience_ms=10**9)
    cell.queue("b", reclaim=reclaim)
    return cell


def later(cell: Applications, seconds: int) -> None:
    cell._now_ms += (seconds - 1) * 1000
    cell.pass_seconds(1)


def gang(cell: Applications, name: str, size: int, cpu: int = 1000) -> None:
    cell.application(name, pod_set("main", size, size, size, cpu=cpu), tenant="b")
    names = [f"{name}-{number}" for number in range(size)]
    cell.pods(*names, of=name, pod_set="main", tenant="b", requests={"cpu": cpu})


def seconds_until_a_runs(cell: Applications, *, step_s: int = 10, most_s: int = 3 * HOUR_S) -> int:
    for waited_s in range(0, most_s, step_s):
        if any(name.startswith("a") for name in cell.open):
            return waited_s
        later(cell, step_s)
    return most_s


@pytest.mark.parametrize("guaranteed", [{}, {"cpu": "2"}], ids=["deserved", "guaranteed"])
def test_gangs_that_are_too_young_hide_no_older_one(guaranteed: dict[str, str]) -> None:
    cell = two(4080, minimumRunTimeSeconds=HOUR_S)
    cell.queue("a", guaranteed=guaranteed)
    gang(cell, "old", 4)
    later(cell, 2 * HOUR_S)
    for number in range(40):
        gang(cell, f"young{number}", 1, cpu=1)
    cell.pods("a0", "a1", tenant="a")
    assert seconds_until_a_runs(cell) <= 10
    assert not cell.is_released("old")


@pytest.mark.parametrize("others", [40, 400])
@pytest.mark.parametrize("cpu", [1, 1000])
def test_pods_that_never_save_their_work_hide_none_that_do(others: int, cpu: int) -> None:
    cell = two(4000 + others * cpu, lostWorkPerHourSeconds=HOUR_S)
    saving = [f"b{number}" for number in range(4)]
    cell.pods(*saving, tenant="b")
    cell.pass_seconds(1)
    cell.pods(*(f"other{number}" for number in range(others)), tenant="b", requests={"cpu": cpu})
    cell.pass_seconds(1)
    later(cell, HOUR_S + 100)
    cell.pods("a0", "a1", "a2", tenant="a")
    for _ in range(8):
        for name in cell.open & set(saving):
            cell._change_pod(name, saved_ms=cell._now_ms)
        cell.pass_seconds(1)
    assert {each.name for each in cell.decisions if isinstance(each, Evict)} & set(saving)
    assert {"a0"} <= cell.open


def test_another_object_of_its_name_makes_no_application_young_again() -> None:
    cell = two(4000)
    facts = WorkloadFacts(pod_sets=(pod_set("main", 4, 4),), created_ms=0, kind="DynamicWorkload")

    def write(number: int) -> None:
        if number:
            cell.tell(
                WorkloadEvent, "it", uid=f"u{number - 1}", change="DELETED", namespace="b", workload=facts
            )
        cell.tell(
            WorkloadEvent, "it", uid=f"u{number}", namespace="b", workload=replace(facts, created_ms=number)
        )
        cell.carry_out()

    write(0)
    cell.pods(*(f"b{number}" for number in range(4)), tenant="b", workload="it", pod_set="main")
    cell.pods(*(f"a{number}" for number in range(4)), tenant="a")
    for number in range(1, 4):
        later(cell, TENURE_S // 3 - 10)
        assert not [each for each in cell.decisions if isinstance(each, Evict)]
        write(number)
    later(cell, 60)
    assert [each for each in cell.decisions if isinstance(each, Evict)], (
        "its pods run since before the tenure"
    )


@pytest.mark.parametrize("of", ["main", "another"])
def test_a_pod_that_joins_makes_no_gang_too_young_to_be_taken(of: str) -> None:
    cell = two(4000, minimumRunTimeSeconds=60)
    cell.configure(tenure_ms=0, patience_ms=10**9)
    cell.application("ray", pod_set("main", 4, 4, 4), pod_set("another", 9, 0, 9, cpu=0), tenant="b")
    cell.pods(*(f"b{number}" for number in range(4)), of="ray", pod_set="main", tenant="b")
    cell.pods(*(f"a{number}" for number in range(4)), tenant="a")
    for number in range(3):
        later(cell, 25)
        cell.pods(f"late{number}", of="ray", pod_set=of, tenant="b", requests={"cpu": 0})
    assert not cell.is_released("ray")


def test_what_a_queue_loses_by_itself_protects_it_from_nobody() -> None:
    cell = two(5000, lostWorkPerHourSeconds=HOUR_S)
    cell.queue(
        "b", reclaim={"lostWorkPerHourSeconds": HOUR_S}, preemption="lowerPriority", limit={"cpu": "5"}
    )
    cell.pods(*(f"old{number}" for number in range(5)), tenant="b")
    later(cell, 2 * HOUR_S)
    cell.pods("mine", tenant="b", priority=1)
    cell.pass_seconds(1)
    preempted = [each.reason for each in cell.decisions if isinstance(each, Evict)]
    assert preempted == ["Preempted"]
    now = cell.figures("b")
    assert (now["lost_work_ms"] > 2 * HOUR_S * 1000, now["lost_work_hour_ms"]) == (True, 0)


def test_units_that_are_judged_wrong_hide_none_that_is_right() -> None:
    """Of z a gang counts for nothing any more; those of ten others do, and waste less."""
    others = [f"y{number}" for number in range(10)]
    cell = Applications("a", "z", *others, cpu=23_000)
    cell.configure(tenure_ms=TENURE_S * 1000, patience_ms=10**9)
    for name in ("a", *others):
        cell.queue(name, weight=20)
    cell.queue("z", weight=32)

    def held_by(queue: str, size: int) -> None:
        cell.application(f"of-{queue}", pod_set("main", size, size, size), tenant=queue)
        names = [f"{queue}-{number}" for number in range(size)]
        cell.pods(*names, of=f"of-{queue}", pod_set="main", tenant=queue)

    held_by("z", 3)
    later(cell, TENURE_S + 100)
    for queue in others:
        held_by(queue, 2)
    cell.pods("a0", "a1", tenant="a")
    assert seconds_until_a_runs(cell, step_s=1) <= 10
    assert not cell.is_released("of-z")
    assert all(cell.is_released(f"of-{queue}") for queue in others)


def test_what_is_reserved_for_very_many_costs_as_little_as_for_one() -> None:
    many = 9 * 10**15
    cell = two(10**16)
    cell.configure(tenure_ms=0, patience_ms=10**9)
    cell.application("huge", pod_set("main", many, many, many, cpu=1), tenant="b")
    cell.pods("a0", tenant="a", requests={"cpu": 4 * 10**15})
    cell.pass_seconds(2)
    assert not cell.is_released("huge")
    assert cell.open == {"a0"}
