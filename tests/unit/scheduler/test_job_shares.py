"""What a Job's failed and finished pods leave to those that come after them, and what goes back."""

from __future__ import annotations

from applications_of_one_cell import Applications, pod_set
from sluice.decisions import Admit, Evict


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


def test_the_minimum_stands_as_long_as_that_many_are_still_to_run() -> None:
    cell = Applications()
    main = pod_set("main", 5, 2, 5, completions=5)
    cell.application("job", main, kind="Job", replaces_failed=True)
    cell.pods("p1", "p2", "p3", "p4", "p5", of="job", pod_set="main")
    cell.become("Succeeded", "p1", "p2", "p3")
    cell.delete_pods("p4", "p5")  # a node was lost: they come again, and start together
    assert cell.held() == 2000


def test_what_an_edit_gave_back_comes_again_as_growth() -> None:
    """Others may hold it by then, and would be pushed out of room that was theirs."""
    cell = Applications("team", "other", cpu=4000)
    cell.application("gang", pod_set("main", 3, 3, 3, completions=9), kind="Job", replaces_failed=True)
    assert cell.held() == 3000
    cell.application("gang", pod_set("main", 1, 1, 1, completions=9))
    assert cell.held() == 1000
    cell.pods("o1", "o2", tenant="other")
    cell.application("gang", pod_set("main", 3, 3, 3, completions=9))
    assert cell.held() == 1000
    cell.pods("p1", "p2", of="gang", pod_set="main")
    assert cell.open == {"o1", "o2", "p1", "p2"}


def test_parallelism_that_rises_and_falls_leaves_a_job_its_place() -> None:
    """As in a run of the churn test: of a Job of one pod at a time one had just succeeded when it was made five, and
    then one again."""
    cell = Applications("team", "other", cpu=2000)
    job(cell, 1, completions=5)
    cell.pods("p1", of="job", pod_set="main")
    cell.become("Succeeded", "p1")
    cell.pods("o1", "o2", tenant="other")
    job(cell, 5, completions=5, succeeded=1)
    job(cell, 1, completions=5, succeeded=1)
    assert (cell.held(), cell.held("other")) == (1000, 1000)
    assert not any(isinstance(decision, Evict) for decision in cell.decisions)


def test_pods_that_are_too_large_come_and_go_and_nothing_is_reserved_anew() -> None:
    cell = Applications("team", "other", cpu=3000)
    cell.application("gang", pod_set("main", 2, 2, 2), kind="Job", replaces_failed=True)
    assert cell.held() == 2000
    cell.pods("large", of="gang", pod_set="main", requests={"cpu": 5000})
    cell.pods("o1", "o2", "o3", tenant="other")
    assert {"o1", "o2", "o3"} <= cell.open
    cell.delete_pods("large")
    assert cell.held() == 0
    assert {"o1", "o2", "o3"} <= cell.open


def test_one_that_was_admitted_with_nothing_to_run_keeps_no_share_in_no_pool() -> None:
    """All its pods were given back when it was admitted, so nothing says where a replacement would go."""
    cell = Applications()
    job(cell, 2, completions=2, succeeded=2)
    [account] = cell.state.workloads
    assert (account.admitted, account.pools) == (True, {})
    cell.pods("p1", of="job", pod_set="main", gated=False)
    job(cell, 2, completions=9, succeeded=2)  # an indexed Job may be made longer
    cell.become("Failed", "p1")
    cell.pods("p2", of="job", pod_set="main")
    assert cell.open == {"p2"}
    assert [each.reason for each in cell.decisions if isinstance(each, Admit)] == ["Fits"]
