"""A QueueJob makes its pods as they may be admitted, and a few more that wait."""

from __future__ import annotations

from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import CreatePod
from sluice.events import JobFacts
from sluice_scheduler.core.applications.queuejobs import AHEAD_MAX, AHEAD_MIN, ASKED_FOR_MAX, MADE_MAX


def job(cell: Applications, name: str = "job", *, pods: int, least: int = 1, **more: Any) -> None:
    limits = JobFacts(restart_limit=None, backoff_limit=6, backoff_ms=2000)
    main = pod_set("main", pods, least, pods, completions=pods)
    cell.application(name, main, kind="QueueJob", suspendable=False, job=limits, **more)


def made(cell: Applications) -> list[str]:
    return [each.name for each in cell.decisions if isinstance(each, CreatePod)]


def settle(cell: Applications) -> None:
    before = -1
    while before != len(cell.decisions):
        before = len(cell.decisions)
        cell.pass_seconds(1)


def test_of_a_huge_job_as_many_pods_are_made_as_hold_and_a_few_more() -> None:
    cell = Applications(cpu=8000)
    job(cell, pods=16_000)
    settle(cell)
    assert len(cell.open) == 8
    assert 8 < len(made(cell)) <= 8 + AHEAD_MIN
    for index in range(30):
        cell.become("Succeeded", sorted(cell.open)[index % 8])
        cell.carry_out()
    assert len(cell.open) == 8, "it goes on as its pods end"
    assert len(made(cell)) <= 38 + AHEAD_MIN


def test_one_that_cannot_start_makes_none_and_one_behind_its_limit_makes_few() -> None:
    cell = Applications(cpu=100_000)
    cell.queue("team", limit={"cpu": "3"})
    job(cell, "large", pods=10, least=4)
    job(cell, "small", pods=100)
    settle(cell)
    assert [name for name in made(cell) if name.startswith("large")] == []
    assert len(made(cell)) <= 3 + AHEAD_MIN


def test_where_there_is_room_all_of_it_is_made_in_lots_that_grow() -> None:
    cell = Applications(cpu=300_000)
    job(cell, pods=300)
    settle(cell)
    assert len(cell.open) == len(made(cell)) == 300


def test_a_minimum_is_made_whole_for_it_is_reserved_but_not_in_one_step() -> None:
    cell = Applications(cpu=400_000)
    cell.carry_out_nothing = True
    job(cell, pods=300, least=300)
    cell.pass_seconds(3)
    assert len(made(cell)) == ASKED_FOR_MAX, "nobody has seen the first of them yet"
    cell.carry_out_nothing = False
    cell.carry_out()
    settle(cell)
    assert len(cell.open) == 300


def test_of_many_jobs_a_step_makes_no_more_than_it_can_bear() -> None:
    cell = Applications(cpu=1_000_000)
    cell.queue("team", limit={"cpu": "0"})
    cell.carry_out_nothing = True
    for number in range(8):
        job(cell, f"job-{number}", pods=100, least=100)
    cell.queue("team")  # all of them are admitted at once
    lots = []
    for _ in range(5):
        before = len(made(cell))
        cell.pass_seconds(1)
        lots.append(len(made(cell)) - before)
    assert max(lots) == MADE_MAX
    assert sum(lots) == 800, "and the next steps make the rest"


@pytest.mark.parametrize("restarts", [False, True])
def test_a_worker_that_takes_over_makes_the_same(restarts: bool) -> None:
    """After every record, in the middle of lots and back-offs."""
    cell = Applications(cpu=8000)
    job(cell, pods=60, least=2)
    for step in range(40):
        if restarts:
            cell.cell.restart()
        names = sorted(cell.open)
        if names and step % 5 == 4:
            cell.become("Failed", names[0])
        elif names:
            cell.become("Succeeded", names[-1])
        if restarts:
            cell.cell.restart()
        cell.pass_seconds(1)
    decided = [(each.type, getattr(each, "name", ""), each.time_ms) for each in cell.decisions]
    _SEEN.setdefault("decided", decided)
    assert decided == _SEEN["decided"]


_SEEN: dict[str, list[tuple[str, str, int]]] = {}


def test_a_job_remembers_no_attempts_of_what_is_done() -> None:
    cell = Applications(cpu=8000)
    job(cell, pods=40)
    for _ in range(20):
        cell.become("Succeeded", max(cell.open))
    [account] = cell.state.workloads
    assert account.job.successes == 20
    assert len(account.job.attempts) <= 8 + AHEAD_MIN
    assert not {str(i) for first, last in account.job.done for i in range(first, last + 1)} & set(
        account.job.attempts
    )


def test_how_far_ahead_pods_are_made_is_bounded() -> None:
    cell = Applications(cpu=1_000_000)
    cell.queue("team", limit={"cpu": "250"})
    job(cell, pods=2_000, least=250)
    settle(cell)
    assert len(cell.open) == 250
    assert len(made(cell)) <= 250 + AHEAD_MAX
