"""What a Job's failed and finished pods leave to those that come after them, and what goes back."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set


def job(cell: Applications, parallelism: int, completions: int | None = None, **facts: int) -> None:
    main = pod_set("main", parallelism, 1, parallelism, completions=completions, **facts)
    cell.application("job", main, kind="Job", replaces_failed=True)


def test_a_replacement_takes_the_share_that_was_kept_for_it() -> None:
    cell = Applications()
    job(cell, 2, completions=9)
    cell.pods("p1", "p2", of="job", pod_set="main")
    cell.become("Failed", "p1")
    cell.pods("p3", of="job", pod_set="main")
    cell.delete_pods("p3")  # by its owner: nothing has failed
    assert cell.held() == 1000


def test_a_pod_that_fails_because_it_is_deleted_leaves_nothing() -> None:
    cell = Applications()
    job(cell, 2, completions=9)
    cell.pods("p1", of="job", pod_set="main")
    cell.pods("p2", of="job", pod_set="main", gated=False, deleting=True)
    assert cell.held() == 2000
    cell.become("Failed", "p2")
    assert cell.held() == 1000


def test_after_the_first_success_nothing_is_kept_where_completions_are_absent() -> None:
    cell = Applications()
    job(cell, 3)
    cell.pods("p1", "p2", "p3", of="job", pod_set="main")
    cell.become("Failed", "p1")
    assert cell.held() == 3000
    cell.become("Succeeded", "p2")
    assert cell.held() == 1000


def test_what_the_job_itself_has_counted_goes_back_too() -> None:
    """A ledger that begins anew finds no pods that have ended long ago."""
    cell = Applications()
    job(cell, 3, completions=5, succeeded=4)
    cell.pods("p5", of="job", pod_set="main")
    assert cell.shown("job").reclaimed == {"main": 2}
    assert [(each.desired, each.admitted) for each in cell.shown("job").pod_sets] == [(1, 1)]


def test_what_is_given_back_never_falls_while_it_runs() -> None:
    cell = Applications()
    job(cell, 3, completions=3)
    cell.pods("p1", "p2", "p3", of="job", pod_set="main")
    cell.become("Succeeded", "p1", "p2")
    assert cell.shown("job").reclaimed == {"main": 2}
    job(cell, 3, completions=9)  # an indexed Job may be made longer
    assert cell.shown("job").reclaimed == {"main": 2}


def test_nothing_is_kept_for_an_index_that_has_failed_for_good() -> None:
    cell = Applications()
    job(cell, 2, completions=2)
    cell.pods("p1", "p2", of="job", pod_set="main")
    cell.become("Failed", "p1")
    assert cell.held() == 2000
    cell.application("job", pod_set("main", 2, 1, 2, completions=1))  # as the watcher tells of it
    assert cell.held() == 1000
