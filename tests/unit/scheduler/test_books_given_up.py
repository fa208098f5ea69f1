"""What is known of an application's pods by their sets stays as small as what there is: a pod's set is a label, and
whoever may update the pod writes any."""

from __future__ import annotations

from typing import Any

from applications_of_one_cell import Applications, pod_set
from sluice.events import JobFacts

JOB = JobFacts(restart_limit=None, backoff_limit=6, backoff_ms=2000)


def books(cell: Applications) -> list[str]:
    [app] = cell.state.applications.values()
    return sorted(app.books)


def workload(cell: Applications) -> Any:
    [found] = cell.state.workloads
    return found


def test_the_set_that_a_pod_was_of_is_forgotten() -> None:
    cell = Applications()
    cell.application("ray", pod_set("head", 1, 1, 1), pod_set("worker", 4, 1))
    cell.pods("head", of="ray", pod_set="head")
    for number in range(5):
        cell.pods("p", of="ray", pod_set=f"s{number}", requests={"cpu": 10**9})
        assert books(cell) == ["head", f"s{number}", "worker"]
    cell.delete_pods("p")
    assert books(cell) == ["head", "worker"]
    assert cell.state.validate() == []


def test_pods_that_end_are_counted_by_the_sets_that_the_application_has() -> None:
    cell = Applications()
    main = pod_set("main", 4, 1, 4, completions=9)
    cell.application("job", main, kind="Job", replaces_failed=True)
    for number, phase in enumerate(("Succeeded", "Failed") * 3):
        cell.pods(f"p{number}", of="job", pod_set=f"s{number}")
        cell.become(phase, f"p{number}")
    cell.pods("p", of="job", pod_set="main")
    cell.become("Succeeded", "p")
    assert workload(cell).succeeded == {"main": 1}
    assert workload(cell).kept == {}


def test_of_a_job_only_attempts_at_its_own_pods_are_counted() -> None:
    cell = Applications()
    main = pod_set("main", 2, 1, 2, completions=2)
    cell.application("job", main, kind="QueueJob", suspendable=False, job=JOB, replaces_failed=True)
    for index in range(1000, 1005):
        cell.pods(f"job-{index}-0", of="job", pod_set="main")
    assert cell.there == {"job-0-0", "job-1-0"}, "the job lets go of what is too many"
    assert workload(cell).job.attempts == {"0": 1, "1": 1}


def test_a_set_that_is_edited_away_gives_its_room_back_for_good() -> None:
    cell = Applications("team", "other")
    head, worker = pod_set("head", 1, 1, 1), pod_set("worker", 5, 5)
    cell.application("ray", head, worker)
    cell.pods("head", of="ray", pod_set="head")
    assert cell.held() == 6000
    cell.application("ray", head)
    assert (cell.held(), books(cell), workload(cell).granted) == (1000, ["head"], {"head": 1, "worker": 0})
    cell.application("ray", head, worker)
    assert cell.held() == 1000
