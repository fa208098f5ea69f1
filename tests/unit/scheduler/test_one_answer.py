"""A status and `sluice explain` give one answer to why something waits."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set
from one_cell import OneCell
from sluice.decisions import ReportWorkload
from sluice_scheduler.core.reports.explain import Answer, why


def answer(cell: OneCell, name: str, kind: str = "workload") -> Answer:
    table = cell.state.workloads if kind == "workload" else cell.state.pods
    [key] = [each.key for each in table if each.name == name]
    return why(cell.state, key)


def told(cell: Applications, name: str) -> tuple[str, str]:
    """Why it waits, as its status says it: the reason and the sentence."""
    reports = [
        each
        for each in cell.decisions
        if isinstance(each, ReportWorkload) and each.name == cell.shown(name).name
    ]
    [granted] = [each for each in reports[-1].conditions if each.type == "Granted"]
    return granted.reason, reports[-1].why


def test_who_comes_to_be_the_first_of_a_strict_line_is_told_what_it_waits_for_now() -> None:
    cell = Applications(cpu=4000)
    cell.queue("team", ordering="strictFifo")
    for name in ("first", "second"):
        cell.application(name, pod_set("main", 9, 5, 9))
    cell.application("fits", pod_set("main", 1, 1, 1))
    cell.pass_seconds(2)
    behind = ("BehindFirst", "team serves strictly in order, and others stand before it")
    assert told(cell, "fits") == behind == (answer(cell, "fits").reason, answer(cell, "fits").sentence)
    assert told(cell, "first")[0] == answer(cell, "first").reason == "TooLarge"
    cell.delete_application("first")
    cell.delete_application("second")
    cell.application("large", pod_set("main", 4, 4, 4))
    cell.application("next", pod_set("main", 4, 4, 4))
    cell.pass_seconds(2)
    assert told(cell, "large")[0] == "NoRoom"
    assert told(cell, "next") == behind
    cell.delete_application("large")
    cell.pass_seconds(2)
    assert told(cell, "next")[0] == answer(cell, "next").reason == "NoRoom"


def test_an_application_whose_growth_waits_says_that_it_is_admitted_and_what_its_growth_waits_for() -> None:
    cell = Applications(cpu=2000)
    cell.application("ray", pod_set("worker", 3, 1))
    cell.pods("a", "b", "c", of="ray", pod_set="worker")
    cell.pass_seconds(2)
    found = answer(cell, "ray")
    assert found.reason == told(cell, "ray")[0] == "NoRoom"
    assert found.sentence.startswith(f"ray is admitted in team; {told(cell, 'ray')[1]}")
    assert found.position == 1


def test_what_room_is_kept_from_and_whom_it_is_kept_for_are_told() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("team", reservation={"patienceSeconds": 1})
    cell.pods("runs-1", "runs-2", "runs-3", tenant="other")
    cell.queue("other", reclaim={"enabled": False})
    cell.application("large", pod_set("main", 2, 2, 2))
    cell.pass_seconds(5)
    assert "; its turn has come, and room is kept for it" in answer(cell, "large").sentence
    cell.application("small", pod_set("main", 1, 1, 1))
    found = answer(cell, "small")
    assert found.reason == "NoRoom"
    assert "; there is room, but it is kept for a claim whose turn came before" in found.sentence
