"""QueueJobs: the core makes their pods, counts their ends, and says when they are through."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import CreatePod, Evict, ReportJob
from sluice.events import JobFacts
from sluice_scheduler.core.applications.queuejobs import _with_one_more
from sluice_scheduler.explain import explain
from sluice_scheduler.simulator.cell import outcome


def job(
    cell: Applications, name: str = "job", *, replicas: int, completions: int, least: int = 1, **limits: Any
) -> None:
    facts = JobFacts(**{"restart_limit": None, "backoff_limit": 6, "backoff_ms": 2000, **limits})
    main = pod_set("main", min(replicas, completions), least, replicas, completions=completions)
    cell.application(name, main, kind="QueueJob", suspendable=False, job=facts, replaces_failed=True)


def made(cell: Applications) -> list[str]:
    return [each.name for each in cell.decisions if isinstance(each, CreatePod)]


def shown(cell: Applications) -> ReportJob:
    cell.pass_seconds(1)
    return next(each for each in reversed(cell.decisions) if isinstance(each, ReportJob))


def test_its_pods_are_made_when_it_is_admitted_and_replaced_as_they_succeed() -> None:
    cell = Applications()
    job(cell, replicas=2, completions=3)
    assert made(cell) == ["job-0-0", "job-1-0"]
    assert cell.open == {"job-0-0", "job-1-0"}
    cell.become("Succeeded", "job-0-0")
    assert cell.open == {"job-1-0", "job-2-0"}
    assert shown(cell).succeeded == 1
    cell.become("Succeeded", "job-1-0", "job-2-0")
    end = shown(cell)
    assert (end.phase, end.succeeded, end.active) == ("Finished", 3, 0)
    assert end.end_ms >= end.start_ms
    assert cell.held() == 0


def test_no_pod_is_made_before_it_is_admitted() -> None:
    cell = Applications(cpu=3000)
    job(cell, replicas=4, completions=4, least=4)
    assert made(cell) == []
    assert shown(cell).phase == "Pending"


def test_a_pod_that_failed_is_made_again_after_a_pause_that_grows() -> None:
    cell = Applications()
    cell.pass_seconds(1)
    job(cell, replicas=1, completions=1)
    cell.become("Failed", "job-0-0")
    assert made(cell) == ["job-0-0"]
    cell.pass_seconds(2)
    assert made(cell) == ["job-0-0", "job-0-1"]
    cell.become("Failed", "job-0-1")
    cell.pass_seconds(3)
    assert len(made(cell)) == 2
    cell.pass_seconds(1)
    assert made(cell)[2:] == ["job-0-2"]
    assert cell.held() == 1000  # it kept its share all the time


def test_too_many_failures_end_it_and_what_runs_of_it() -> None:
    cell = Applications()
    job(cell, replicas=2, completions=2, backoff_limit=0)
    cell.become("Failed", "job-0-0")
    assert cell.open == set()
    end = shown(cell)
    assert end.phase == "Failed"
    [failed] = [each for each in end.conditions if each.type == "Failed"]
    assert failed.status == "True"
    assert "pod job-0-0 failed" in failed.message
    assert cell.held() == 0


def test_one_pod_may_be_replaced_so_often_and_no_more() -> None:
    cell = Applications()
    job(cell, replicas=1, completions=1, restart_limit=1, backoff_ms=0)
    cell.become("Failed", "job-0-0")
    cell.pass_seconds(1)
    assert made(cell) == ["job-0-0", "job-0-1"]
    cell.become("Failed", "job-0-1")
    assert shown(cell).phase == "Failed"


def test_a_pod_that_was_taken_back_is_no_failure_and_comes_back() -> None:
    cell = Applications("team", "poor", cpu=4000)
    cell.evicted_pods_fail = True
    job(cell, replicas=4, completions=4)
    assert len(cell.open) == 4
    cell.pods("p1", "p2", tenant="poor")
    cell.pass_seconds(1)
    assert {"p1", "p2"} <= cell.open
    assert shown(cell).failed == 0
    cell.become("Succeeded", "p1", "p2")
    cell.pass_seconds(1)
    assert len(cell.open) == 4


ORDERS = pytest.mark.parametrize("pods_first", [False, True], ids=["jobs listed first", "pods listed first"])


@ORDERS
def test_a_ledger_that_begins_anew_finds_its_pods(pods_first: bool) -> None:
    cell = Applications()
    job(cell, replicas=2, completions=4)
    cell.become("Succeeded", "job-0-0")
    assert cell.open == {"job-1-0", "job-2-0"}
    before = len(made(cell))
    cell.rebuild(partial(cell.list_everything, pods_first=pods_first))
    cell.carry_out()
    assert made(cell)[before:] == []
    cell.become("Succeeded", "job-1-0", "job-2-0")
    assert made(cell)[before:] == ["job-3-0"]
    cell.become("Succeeded", "job-3-0")
    assert shown(cell).phase == "Finished"


def test_one_that_is_made_smaller_lets_go_of_what_is_too_many() -> None:
    """Those that wait first."""
    cell = Applications(cpu=3000)
    job(cell, replicas=6, completions=9)
    assert cell.open == {"job-0-0", "job-1-0", "job-2-0"}
    job(cell, replicas=4, completions=9)
    assert cell.there == {f"job-{index}-0" for index in range(4)}
    cell.delete_pods("job-1-0")
    assert cell.there == {"job-0-0", "job-1-1", "job-2-0", "job-3-0"}
    job(cell, replicas=3, completions=9)
    assert cell.there == cell.open == {"job-0-0", "job-2-0", "job-3-0"}
    job(cell, replicas=2, completions=9)
    assert cell.open == {"job-0-0", "job-2-0"}
    assert shown(cell).failed == 0
    cell.become("Succeeded", "job-0-0")
    assert cell.open == {"job-1-2", "job-2-0"}


def test_those_on_their_way_out_are_not_let_go_twice() -> None:
    cell = Applications()
    job(cell, replicas=4, completions=9)
    cell.nodes_are_slow = True
    job(cell, replicas=2, completions=9)
    job(cell, replicas=2, completions=9, backoff_limit=7)
    assert [each.name for each in cell.decisions if isinstance(each, Evict)] == ["job-3-0", "job-2-0"]


def test_the_pause_grows_no_longer_than_six_minutes() -> None:
    cell = Applications()
    cell.pass_seconds(1)
    job(cell, replicas=1, completions=1, backoff_ms=300_000)
    cell.become("Failed", "job-0-0")
    cell.pass_seconds(300)
    cell.become("Failed", "job-0-1")
    cell.pass_seconds(359)
    assert len(made(cell)) == 2
    cell.pass_seconds(1)
    assert len(made(cell)) == 3


@ORDERS
def test_a_ledger_that_begins_anew_takes_no_name_twice(pods_first: bool) -> None:
    cell = Applications()
    job(cell, replicas=1, completions=1, backoff_ms=0)
    cell.become("Failed", "job-0-0")
    cell.pass_seconds(1)
    cell.rebuild(partial(cell.list_everything, pods_first=pods_first))
    cell.carry_out()
    cell.become("Failed", "job-0-1")
    cell.pass_seconds(1)
    assert made(cell)[-1] == "job-0-2"


def test_a_pod_that_could_not_be_made_is_asked_for_again() -> None:
    cell = Applications()
    cell.carry_out_nothing = True
    job(cell, replicas=1, completions=1)
    cell.application("job", released=True)
    [asked] = [each for each in cell.decisions if isinstance(each, CreatePod)]
    cell.cell.feed([replace(outcome(asked, 0), result="Failed")])
    cell.pass_seconds(4)
    assert made(cell) == ["job-0-0"]
    cell.pass_seconds(1)
    assert made(cell) == ["job-0-0", "job-0-1"]


def test_pods_that_are_refused_are_told_of_and_fail_the_job_in_the_end() -> None:
    cell = Applications()
    cell.carry_out_nothing = True
    job(cell, replicas=2, completions=2, least=2, backoff_limit=1)
    cell.application("job", released=True)
    refuse(cell, "422 spec.containers[0].name: Main_X")
    report = shown(cell)
    assert (report.phase, report.failed) == ("Running", 1), "one failure, though two pods were refused"
    [ready] = [each for each in report.conditions if each.type == "Ready"]
    assert ready.message == "a pod of it could not be made: 422 spec.containers[0].name: Main_X"
    [told] = explain(cell.cell.state, "team/job")
    assert told.endswith(f"PodRefused: {ready.message}")
    cell.pass_seconds(2)
    refuse(cell, "422 Main_X")
    report = shown(cell)
    assert (report.phase, report.failed) == ("Failed", 2)
    assert not cell.cell.state.forest.root.usage, "it holds nothing any more"


def test_one_whose_pods_are_refused_until_its_deadline_says_so_and_not_who_should_have_come() -> None:
    cell = Applications()
    cell.queue("team", startDeadlineSeconds=4)
    cell.carry_out_nothing = True
    job(cell, replicas=1, completions=1)
    cell.application("job", released=True)
    refuse(cell, "403 exceeded quota")
    counted, refused = explain(cell.state, "team")
    assert counted == "queue team: nothing waits in line, 1 application or pod pauses"
    assert refused.endswith("PodRefused: a pod of it could not be made: 403 exceeded quota")
    cell.pass_seconds(6)
    [_, pauses] = explain(cell.state, "team")
    why = "no pod of QueueJob job came within 4s: a pod of it could not be made: 403 exceeded quota"
    assert f"NobodyCame: {why}" in pauses


def test_a_refusal_is_forgotten_when_a_pod_is_there() -> None:
    cell = Applications()
    cell.carry_out_nothing = True
    job(cell, replicas=1, completions=1)
    cell.application("job", released=True)
    refuse(cell, "403 exceeded quota")
    assert shown(cell).conditions[0].message == "a pod of it could not be made: 403 exceeded quota"
    cell.carry_out_nothing = False
    cell.pass_seconds(3)
    cell.carry_out()
    assert all(each.message == "" for each in shown(cell).conditions)


def refuse(cell: Applications, message: str) -> None:
    making = cell.cell.state.making
    asked = [each for each in cell.decisions if isinstance(each, CreatePod) and each.seq in making]
    cell.cell.feed([replace(outcome(each, 0), result="Rejected", message=message) for each in asked])


def test_what_is_done_is_kept_in_rows() -> None:
    """A row goes on with its neighbours; what comes twice counts once."""
    random = Random(1)
    for _ in range(50):
        ends = [random.randrange(12) for _ in range(random.randrange(20))]
        done: tuple[tuple[int, int], ...] = ()
        for index in ends:
            done = _with_one_more(done, index)
        rows = [index for first, last in done for index in range(first, last + 1)]
        assert rows == sorted(set(ends))
        assert all(last + 1 < first for (_, last), (first, _) in pairwise(done))


def test_a_job_whose_pods_end_in_any_order_runs_each_index_once() -> None:
    cell = Applications()
    job(cell, replicas=5, completions=12)
    random = Random(3)
    while cell.open:
        cell.become("Succeeded", random.choice(sorted(cell.open)))
    [account] = cell.state.workloads
    assert account.job.done == ((0, 11),)
    assert sorted(made(cell)) == sorted(f"job-{index}-0" for index in range(12))
    assert (shown(cell).phase, shown(cell).succeeded) == ("Finished", 12)
