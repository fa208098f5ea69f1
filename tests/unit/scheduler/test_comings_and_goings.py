"""Applications that end, go or run again while something of them is under way."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import AdmitWorkload, CreateWorkload, Decision, Evict, EvictWorkload, ReportWorkload
from sluice.events import Gang
from sluice_scheduler.core.reports.explain import why
from sluice_scheduler.simulator.cell import outcome


def spark(cell: Applications, name: str = "etl", *, tenant: str = "team") -> None:
    driver, executors = pod_set("driver", 1, 1, 1), pod_set("executor", 1, 1, 9)
    cell.application(name, driver, executors, kind="SparkApplication", tenant=tenant)


def dask(cell: Applications, name: str = "dask", *, workers: int = 1, created_ms: int = 0) -> None:
    """Its pods name it by label: the way up from them is too long."""
    sets = pod_set("scheduler", 1, 1, 1), pod_set("worker", workers, workers, 9)
    cell.application(name, *sets, kind="DaskCluster", suspendable=False, created_ms=created_ms)


def dask_pods(cell: Applications, *workers: str, of: str = "dask", **facts: Any) -> None:
    cell.pods("s", workload=f"DaskCluster/{of}", pod_set="scheduler", **facts)
    cell.pods(*workers, workload=f"DaskCluster/{of}", pod_set="worker", **facts)


class TestOneThatIsDeleted:
    def test_while_it_waits_lets_no_pod_of_it_in(self) -> None:
        cell = Applications(cpu=3000)
        dask(cell, workers=4)
        dask_pods(cell, "w1", "w2", "w3", "w4")
        cell.delete_application("dask")
        assert cell.open == set(), "each of them would fit alone"
        told = why(cell.state, "pod/sim/pod-w1")
        assert told.sentence.startswith("its application is gone, and it should go too")

    def test_in_the_middle_of_a_scale_up_neither(self) -> None:
        """Its executors go when its driver has ended, which takes a while."""
        cell = Applications(cpu=3000)
        spark(cell)
        cell.pods("d", of="etl", pod_set="driver")
        cell.pods("e1", "e2", "e3", "e4", of="etl", pod_set="executor", owner="pod-d")
        cell.delete_application("etl")
        cell.delete_pods("e1", "e2")
        assert cell.open == {"d"}
        cell.pods("other")
        assert cell.open == {"d", "other"}

    def test_but_was_written_by_hand_may_be_written_again(self) -> None:
        cell = Applications(cpu=1000)
        cell.application("mine", pod_set("main", 1, 1, 1), kind="DynamicWorkload", suspendable=False)
        cell.pods("p", "q", workload="mine", pod_set="main")
        cell.delete_application("mine")
        cell.delete_pods("p")
        assert cell.open == set()
        cell.application("mine", pod_set("main", 1, 1, 1), kind="DynamicWorkload", suspendable=False)
        assert cell.open == {"q"}

    def test_gives_its_pods_a_minute_to_go(self) -> None:
        """If nobody collects them they were left on purpose, and stand for themselves."""
        cell = Applications(cpu=1000)
        cell.application("job", pod_set("main", 2, 1, 2), kind="Job")
        cell.pods("p1", "p2", of="job", pod_set="main")
        cell.delete_application("job")
        cell.delete_pods("p1")
        cell.pass_seconds(59)
        assert cell.open == set()
        cell.pass_seconds(1)
        assert cell.open == {"p2"}

    def test_while_it_is_taken_back_holds_nothing(self) -> None:
        cell = Applications("rich", "poor", cpu=4000)
        cell.queue("poor", guaranteed={"cpu": "4"})
        cell.application("ray", pod_set("main", 4, 4, 9), tenant="rich")
        cell.pods("r1", "r2", "r3", "r4", of="ray", pod_set="main", tenant="rich")
        cell.operators_sleep = True
        cell.application("job", pod_set("main", 4, 4, 4), tenant="poor")
        cell.delete_application("ray")
        assert not cell.is_released("job")
        cell.delete_pods("r1", "r2", "r3", "r4")
        assert cell.is_released("job")
        assert cell.held("rich") == 0

    def test_leaves_the_next_of_its_name_alone(self) -> None:
        cell = Applications()
        dask(cell, workers=2)
        dask_pods(cell, "w1", "w2")
        cell.delete_application("dask")
        cell.pass_seconds(4)
        dask(cell, workers=2, created_ms=4000)
        assert cell.held() == 6000, "what still ends of the first, and all that the second starts with"
        assert [each.admitted for each in cell.shown("dask").pod_sets] == [1, 2], "room is kept for all of it"
        cell.become("Failed", "s", "w1", "w2")
        assert cell.held() == 3000


class TestOneThatIsSuspended:
    def test_comes_back_when_its_pods_have_gone(self) -> None:
        """An operator that slept all the while would see nothing but an application that runs."""
        cell = Applications("rich", "poor", cpu=8000)
        cell.queue("poor", guaranteed={"cpu": "8"})
        cell.application("ray", pod_set("main", 4, 4, 9), tenant="rich")
        cell.pods("r1", "r2", "r3", "r4", of="ray", pod_set="main", tenant="rich")
        cell.operators_sleep = True
        cell.application("job", pod_set("main", 8, 8, 8), tenant="poor")
        cell.pass_seconds(1)
        cell.delete_application("job")
        assert not cell.is_released("ray"), "there is room, but its pods have not gone"
        cell.pass_seconds(1)
        assert cell.shown("ray").why == "it was taken back, and its pods are still leaving"
        cell.pass_seconds(31)
        assert cell.there == set(), "after half a minute they are evicted one by one"
        assert cell.is_released("ray")
        assert cell.held("rich") == 4000


class TestOneThatWasWrittenByHand:
    def test_is_told_at_once_that_it_was_taken_back(self) -> None:
        """Nothing else tells whoever runs it."""
        cell = Applications("rich", "poor", cpu=4000)
        cell.queue("poor", guaranteed={"cpu": "4"})
        cell.application("mine", pod_set("main", 4, 4, 4), tenant="rich", kind="DynamicWorkload")
        cell.application("job", pod_set("main", 4, 4, 4), tenant="poor")
        cell.tick()
        cell.carry_out()
        cell.delete_application("job")
        told = [each.phase for each in cell.decisions if isinstance(each, ReportWorkload)]
        assert [phase for phase, _ in groupby(told)] == ["Running", "Pending", "Running"]

    def test_shows_no_news_of_itself_by_a_status_that_we_told(self) -> None:
        """That of before is written after it was taken back, and carries a place in the log, not among decisions."""
        cell = Applications("rich", "poor", cpu=4000)
        cell.application("mine", pod_set("main", 4, 4, 4), tenant="rich", kind="DynamicWorkload")
        cell.rebuild(cell.list_everything)
        cell.queue("poor", guaranteed={"cpu": "4"})
        assert cell.held("rich") == 4000
        cell.carry_out_nothing = True
        cell.application("job", pod_set("main", 4, 4, 4), tenant="poor")
        cell.tick()
        cell.application("mine", decision="1-1.999", generation=2)
        assert cell.held("poor") == 4000
        [_] = [each for each in cell.decisions if isinstance(each, EvictWorkload)]


class TestOneThatRunsAgain:
    def test_waits_for_its_turn_again(self) -> None:
        """A SparkApplication that was changed after its end."""
        cell = Applications(cpu=2000)
        spark(cell)
        cell.pods("d", of="etl", pod_set="driver")
        cell.pods("e", of="etl", pod_set="executor")
        cell.become("Succeeded", "e", "d")
        cell.application("etl", finished=True)
        cell.pods("x", "y")
        assert cell.open == {"x", "y"}
        cell.application("etl", finished=False)
        assert not cell.is_released("etl")
        assert cell.open == {"x", "y"}

    def test_also_where_it_had_ended_when_the_ledger_began_anew(self) -> None:
        cell = Applications(cpu=2000)
        spark(cell)
        cell.application("etl", finished=True)
        cell.rebuild(cell.list_everything)
        cell.pods("x", "y")
        cell.application("etl", finished=False)
        assert not cell.is_released("etl")
        assert cell.open == {"x", "y"}
        assert cell.held() == 2000
        assert cell.held() == 2000
        cell.become("Succeeded", "x", "y")
        assert cell.is_released("etl")

    def test_a_driver_that_was_taken_for_gone_too(self) -> None:
        cell = Applications(cpu=2000)
        cell.pass_seconds(1)
        cell.pods("e1", workload="SparkDriver/one", pod_set="executor")
        cell.become("Failed", "e1")
        cell.pods("x", "y")
        cell.pass_seconds(62)
        cell.pods("e2", workload="SparkDriver/one", pod_set="executor", created_ms=63_000)
        assert cell.held() == 2000
        cell.pass_seconds(2)
        assert cell.open == {"x", "y"}
        cell.become("Succeeded", "x")
        assert cell.open == {"e2", "y"}


class TestPodsThatComeAndGo:
    """An executor that was let go has succeeded, and the next one is as much needed as it was."""

    def test_do_not_use_up_the_minimum(self) -> None:
        cell = Applications()
        spark(cell)
        cell.pods("d", of="etl", pod_set="driver")
        cell.pods("e", of="etl", pod_set="executor")
        cell.become("Succeeded", "e")
        cell.delete_pods("e")
        assert cell.held() == 2000
        assert cell.shown("etl").reclaimed == {}

    def test_nor_what_a_driver_is_admitted_with_the_next_time(self) -> None:
        cell = Applications("rich", "poor", cpu=4000)
        cell.queue("poor", guaranteed={"cpu": "4"})
        spark(cell, tenant="rich")
        cell.pods("d", of="etl", pod_set="driver", tenant="rich")
        cell.pods("e", of="etl", pod_set="executor", tenant="rich")
        cell.become("Succeeded", "e")
        cell.application("job", pod_set("main", 4, 4, 4), tenant="poor")
        cell.pass_seconds(1)
        assert not cell.is_released("etl")
        cell.application("job", finished=True)
        assert cell.is_released("etl")
        assert cell.held("rich") == 2000

    def test_but_a_submitter_runs_once(self) -> None:
        cell = Applications()
        cell.application("job", pod_set("head", 1, 1, 1), pod_set("submitter", 1, 1, 1), kind="RayJob")
        cell.pods("h", of="job", pod_set="head")
        cell.pods("s", of="job", pod_set="submitter")
        cell.become("Succeeded", "s")
        assert cell.held() == 1000


class TestFoundRunning:
    """Applications that gates alone hold back do not say that they run: their open pods do."""

    def test_it_is_adopted_with_its_open_pods_and_grows(self) -> None:
        cell = Applications(cpu=3000)
        dask_pods(cell, "w1", gated=False, phase="Running")
        dask(cell)
        assert cell.shown("dask").phase == "Running"
        assert cell.held() == 2000
        cell.pods("w2", workload="DaskCluster/dask", pod_set="worker")
        assert cell.open == {"s", "w1", "w2"}

    def test_a_driver_without_operator_after_the_loss_of_the_ledger(self) -> None:
        cell = Applications(cpu=4000)
        cell.pods("d", workload="SparkDriver/one", pod_set="driver")
        cell.pods("e1", "e2", "e3", "e4", workload="SparkDriver/one", pod_set="executor", owner="pod-d")
        cell.rebuild(cell.list_everything)
        cell.carry_out()
        assert cell.shown("one", of="SparkDriver-team-one").phase == "Growing"
        assert cell.held() == 4000
        cell.delete_pods("e1")
        assert cell.open == {"d", "e2", "e3", "e4"}

    def test_one_whose_last_pod_could_not_be_evicted_is_not(self) -> None:
        """It was decided that it goes, whole."""
        cell = Applications("team", "poor", cpu=2000)
        cell.queue("poor", guaranteed={"cpu": "2"})
        dask(cell)
        dask_pods(cell, "w1")
        cell.nodes_are_slow = True
        cell.pods("x", "y", tenant="poor")
        cell.pass_seconds(1)
        cell.delete_pods("s")
        [evicted] = [e for e in cell.decisions if isinstance(e, Evict) and e.name == "w1"]
        cell.delete_pods("x", "y")
        cell.cell.feed([replace(outcome(evicted, 0), result="Rejected")])
        cell.application("dask", generation=2)
        admitted = next(each for each in cell.shown("dask").conditions if each.type == "Admitted")
        assert admitted.status == "False"

    def test_one_whose_pods_all_wait_is_not(self) -> None:
        cell = Applications(cpu=1000)
        dask(cell)
        dask_pods(cell, "w1")
        assert cell.shown("dask").phase == "Pending"
        assert cell.open == set()


def test_a_driver_in_a_jobs_pod_is_that_jobs_and_reserves_nothing_of_its_own() -> None:
    cell = Applications()
    cell.application("submit", pod_set("main", 1, 1, 1), kind="Job", replaces_failed=True)
    cell.pods("p", of="submit", pod_set="main")
    cell.pods("e1", "e2", workload="SparkDriver/one", pod_set="executor", owner="pod-p")
    assert cell.open == {"p", "e1", "e2"}
    assert cell.held() == 3000
    cell.pass_seconds(1)
    about = [each for each in cell.decisions if isinstance(each, AdmitWorkload | CreateWorkload)]
    assert {each.uid for each in about} == {"workload-submit"}


def test_executors_that_wait_for_a_finished_application_are_cleaned_up_where_the_driver_is_no_pod() -> None:
    cell = Applications(cpu=1000)
    cell.application("etl", pod_set("executor", 1, 1, 9), kind="SparkApplication")
    cell.pods("e1", "e2", "e3", workload="SparkApplication/etl", pod_set="executor")
    cell.application("etl", finished=True, failed=True)
    assert cell.there == {"e1"}


class TestAGangThatCameUp:
    """What happens to it after that is no failure of its start."""

    @staticmethod
    def evicted(cell: Applications) -> list[Decision]:
        return [each for each in cell.decisions if isinstance(each, Evict | EvictWorkload)]

    def test_goes_on_when_a_pod_of_it_fails_before_the_deadline(self) -> None:
        cell = Applications(cpu=4000)
        main = pod_set("main", 2, 2, 2, completions=5)
        cell.application("gang", main, kind="Job", replaces_failed=True, gang=Gang(deadline_ms=5000))
        cell.pods("p1", "p2", of="gang", pod_set="main")
        cell.pass_seconds(2)
        cell.become("Failed", "p2")
        cell.pass_seconds(6)
        assert self.evicted(cell) == []

    def test_or_one_of_a_group_ends(self) -> None:
        cell = Applications(cpu=4000)
        cell.pods("g1", "g2", workload="PodGroup/two", group_size=2, gang=Gang(deadline_ms=5000))
        cell.pass_seconds(2)
        cell.become("Succeeded", "g1")
        cell.pass_seconds(6)
        assert self.evicted(cell) == []


@pytest.mark.parametrize("parallelism", [1, 4])
def test_a_job_that_is_resized_holds_what_it_has_and_the_share_of_what_failed(parallelism: int) -> None:
    cell = Applications()
    main = pod_set("main", 2, 1, 2, completions=10)
    cell.application("job", main, kind="Job", replaces_failed=True)
    cell.pods("p1", "p2", of="job", pod_set="main")
    cell.become("Failed", "p1")
    assert cell.held() == 2000
    cell.application("job", pod_set("main", parallelism, 1, parallelism, completions=10))
    assert cell.held() == min(parallelism, 2) * 1000


class TestDriversThatAreGone:
    def test_executors_of_one_that_is_started_again_are_cleaned_up(self) -> None:
        """Its application goes on, with another driver."""
        cell = Applications(cpu=2000)
        spark(cell)
        cell.pods("d", of="etl", pod_set="driver")
        cell.pods("e1", "e2", "e3", of="etl", pod_set="executor", owner="pod-d")
        cell.become("Failed", "d")
        assert "e2" not in cell.there
        assert "e3" not in cell.there

    def test_one_whose_pod_vanishes_is_through(self) -> None:
        """Its node was lost, say: nothing tells of its end."""
        cell = Applications(cpu=2000)
        cell.pods("d", workload="SparkDriver/one", pod_set="driver")
        cell.pods("e1", "e2", workload="SparkDriver/one", pod_set="executor", owner="pod-d")
        cell.delete_pods("d")
        assert cell.there == {"e1"}
        assert cell.held() == 1000

    def test_in_client_mode_one_that_still_has_executors_is_not_taken_for_gone(self) -> None:
        cell = Applications(cpu=2000)
        cell.pass_seconds(1)
        cell.pods("e1", "e2", "e3", workload="SparkDriver/one", pod_set="executor")
        cell.become("Failed", "e1")
        cell.pass_seconds(90)
        assert cell.there == {"e1", "e2", "e3"}


class TestWhatWasReleased:
    def test_stays_so_in_a_ledger_that_begins_anew_before_there_is_any_pod(self) -> None:
        cell = Applications()
        spark(cell)
        cell.rebuild(cell.list_everything)
        cell.carry_out()
        assert cell.is_released("etl")
        assert cell.held() == 2000
        assert not any(isinstance(each, EvictWorkload) for each in cell.decisions)

    def test_and_asks_for_more_since_gets_that_by_no_rebuild(self) -> None:
        """Others would have to go for it."""
        cell = Applications("rich", "poor", cpu=10_000)
        cell.application("ray", pod_set("main", 1, 1, 99), tenant="rich")
        cell.pods("r", of="ray", pod_set="main", tenant="rich")
        cell.pods(*(f"p{n}" for n in range(5)), tenant="poor")
        cell.application("ray", pod_set("main", 10, 10, 99), tenant="rich")
        cell.rebuild(cell.list_everything)
        cell.carry_out()
        cell.pass_seconds(5)
        assert cell.held("rich") == 1000
        assert cell.held("poor") == 5000
        assert cell.is_released("ray")

    def test_and_is_held_back_by_somebody_else_waits_for_its_turn_like_any_other(self) -> None:
        """The policies set that back, where they are in force."""
        cell = Applications(cpu=2000)
        spark(cell)
        cell.pods("x")
        cell.application("etl", released=False)
        assert cell.is_released("etl") == ("x" not in cell.open)


def test_what_is_larger_than_it_was_said_to_be_is_not_kept_out_by_what_is_reserved_for_it() -> None:
    cell = Applications(cpu=3000)
    spark(cell)
    cell.pods("d", of="etl", pod_set="driver")
    cell.pods("e", of="etl", pod_set="executor", requests={"cpu": 2000})
    assert cell.open == {"d", "e"}
    assert cell.held() == 3000


class TestWhoseItsPodsAre:
    def test_they_stand_in_the_queue_that_their_application_names(self) -> None:
        cell = Applications()
        cell.queue("below", parent="team", namespaces={})
        cell.application("ray", pod_set("main", 1, 1, 9), queue="below")
        cell.pods("p", "growth", of="ray", pod_set="main")
        assert cell.held("below") == 2000

    def test_those_that_name_a_cluster_are_its_jobs(self) -> None:
        """Dask's, whose way up is too long."""
        cell = Applications()
        sets = pod_set("runner", 1, 1, 1), pod_set("scheduler", 1, 1, 1), pod_set("worker", 1, 1, 9)
        cell.application("job", *sets, kind="DaskJob", suspendable=False)
        cell.application("job-cluster", *sets[1:], kind="DaskCluster", controller="workload-job")
        dask_pods(cell, "w1", of="job-cluster", created_ms=2)
        assert cell.held() == 3000
        assert [(each.name, each.admitted) for each in cell.shown("job").pod_sets] == [
            ("runner", 1),
            ("scheduler", 1),
            ("worker", 1),
        ]

    def test_growth_stands_where_its_application_does_however_late_it_comes(self) -> None:
        cell = Applications(cpu=2000)
        cell.application("ray", pod_set("main", 1, 1, 9), created_ms=0)
        cell.pods("p", of="ray", pod_set="main", created_ms=100)
        cell.pods("first", "second", created_ms=5000)
        cell.pods("growth", of="ray", pod_set="main", created_ms=9000)
        cell.become("Succeeded", "first")
        assert cell.open == {"p", "growth"}


def test_of_an_application_that_goes_whole_the_driver_goes_last() -> None:
    cell = Applications("team", "poor", cpu=3000)
    cell.queue("poor", guaranteed={"cpu": "3"})
    dask(cell, workers=2)
    dask_pods(cell, "w1", "w2")
    cell.pods("x", tenant="poor", requests={"cpu": 3000})
    cell.pass_seconds(1)
    assert [each.name for each in cell.decisions if isinstance(each, Evict)] == ["w1", "w2", "s"]


def test_a_release_that_could_not_be_written_holds_nothing_and_is_tried_again() -> None:
    cell = Applications()
    cell.carry_out_nothing = True
    spark(cell)
    [release] = [each for each in cell.decisions if isinstance(each, AdmitWorkload)]
    cell.cell.feed([replace(outcome(release, 0), result="Failed")])
    assert cell.held() == 0
    cell.pass_seconds(3)
    assert sum(isinstance(each, AdmitWorkload) for each in cell.decisions) == 1
    cell.pass_seconds(2)
    assert sum(isinstance(each, AdmitWorkload) for each in cell.decisions) == 2
    assert cell.held() == 2000
