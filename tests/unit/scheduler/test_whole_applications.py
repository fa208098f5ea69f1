"""Applications in the core: admitted whole, grown and shrunk in parts, and nothing held by nothing."""

from __future__ import annotations

from typing import Any

from applications_of_one_cell import Applications, pod_set
from sluice.decisions import AdmitWorkload, CreateWorkload, Delete, EvictWorkload, ReportWorkload
from sluice.events import Gang, PriorityClassEvent
from sluice_scheduler.core.reports.explain import why


def ray(
    cell: Applications, name: str = "ray", *, workers: int = 2, most: int = 20, tenant: str = "team"
) -> None:
    cell.application(name, pod_set("head", 1, 1, 1), pod_set("small", workers, 1, most), tenant=tenant)


def test_it_is_released_when_all_of_its_minimum_fits_and_its_pods_open_as_they_come() -> None:
    cell = Applications()
    ray(cell)
    assert cell.is_released("ray")
    assert cell.held() == 2000  # before any pod is there
    cell.pods("head", of="ray", pod_set="head")
    cell.pods("w1", "w2", of="ray", pod_set="small")
    assert cell.open == {"head", "w1", "w2"}
    assert cell.held() == 3000
    shown = cell.shown("ray")
    assert shown.phase == "Running"
    assert [(s.name, s.desired, s.admitted, s.running) for s in shown.pod_sets] == [
        ("head", 1, 1, 1),
        ("small", 2, 2, 2),
    ]


def test_an_application_whose_minimum_does_not_fit_is_not_released() -> None:
    cell = Applications(cpu=1500)
    ray(cell)
    assert not cell.is_released("ray")
    shown = cell.shown("ray")
    assert (shown.phase, shown.why.startswith("asks for 2 cpu")) == ("Pending", True)
    assert cell.held() == 0


def test_growth_is_granted_in_part_and_said() -> None:
    cell = Applications(cpu=5000)
    ray(cell)
    cell.pods("head", of="ray", pod_set="head")
    cell.pods(*(f"w{n}" for n in range(10)), of="ray", pod_set="small")
    assert len(cell.open) == 5
    shown = cell.shown("ray")
    assert shown.phase == "Growing"
    assert shown.pod_sets[1].desired == 10
    assert shown.pod_sets[1].admitted == 4
    [granted] = [each for each in shown.conditions if each.type == "Granted"]
    assert granted.message.startswith("granted 1 of 1 head, 4 of 10 small; waits for 1 cpu")


def test_one_group_up_while_another_goes_down_is_accounted_right() -> None:
    """kueue#9329."""
    cell = Applications(cpu=6000)
    cell.application("ray", pod_set("head", 1, 1, 1), pod_set("a", 4, 1, 9), pod_set("b", 1, 0, 9))
    cell.pods("head", of="ray", pod_set="head")
    cell.pods("a1", "a2", "a3", "a4", of="ray", pod_set="a")
    cell.pods("b1", of="ray", pod_set="b")
    assert cell.held() == 6000
    cell.application("ray", pod_set("head", 1, 1, 1), pod_set("a", 2, 1, 9), pod_set("b", 3, 0, 9))
    cell.pods("b2", "b3", of="ray", pod_set="b")
    assert len(cell.open) == 6
    cell.delete_pods("a3", "a4")
    assert cell.open == {"head", "a1", "a2", "b1", "b2", "b3"}
    assert cell.held() == 6000


def test_no_pod_is_opened_past_the_quota_whatever_an_application_says_of_itself() -> None:
    """kueue#11977."""
    cell = Applications(cpu=4000)
    ray(cell, workers=2)
    cell.pods("head", of="ray", pod_set="head")
    cell.pods("w1", "w2", "w3", "w4", "w5", of="ray", pod_set="small")
    assert len(cell.open) == 4
    cell.application("ray", pod_set("head", 1, 1, 1), pod_set("small", 5, 5, 5))
    assert len(cell.open) == 4
    assert cell.held() <= 4000


def test_scaling_down_gives_everything_back() -> None:
    """kueue#12670."""
    cell = Applications()
    ray(cell, workers=6)
    cell.pods("head", of="ray", pod_set="head")
    cell.pods(*(f"w{n}" for n in range(6)), of="ray", pod_set="small")
    assert cell.held() == 7000
    ray(cell, workers=1)
    cell.delete_pods(*(f"w{n}" for n in range(1, 6)))
    assert cell.held() == 2000


def test_growth_replaces_no_grant_so_nothing_is_counted_twice() -> None:
    """kueue#9322."""
    cell = Applications(cpu=6000)
    ray(cell, workers=2)
    cell.pods("head", of="ray", pod_set="head")
    cell.pods("w1", "w2", of="ray", pod_set="small")
    ray(cell, workers=5)
    assert cell.held() == 3000
    cell.pods("w3", "w4", "w5", of="ray", pod_set="small")
    assert cell.held() == 6000
    assert sum(isinstance(d, AdmitWorkload) for d in cell.decisions) == 1


def test_an_eviction_in_the_middle_of_a_scale_up_strands_nothing() -> None:
    """kueue#15399."""
    cell = Applications("rich", "poor", cpu=4000)
    cell.queue("poor", guaranteed={"cpu": "4"})
    cell.application("ray", pod_set("main", 4, 4, 9), tenant="rich")
    cell.pods("r1", "r2", "r3", "r4", of="ray", pod_set="main", tenant="rich")
    cell.pods("r5", "r6", of="ray", pod_set="main", tenant="rich")  # growth that waits
    cell.application("job", pod_set("main", 4, 4, 4), tenant="poor")
    cell.pass_seconds(1)
    assert not cell.is_released("ray")
    assert cell.is_released("job")
    cell.pods("j1", "j2", "j3", "j4", of="job", pod_set="main", tenant="poor")
    assert cell.open == {"j1", "j2", "j3", "j4"}
    assert cell.held("rich") == 0
    cell.delete_pods("j1", "j2", "j3", "j4")
    cell.application("job", finished=True)
    assert cell.is_released("ray")  # in its old place, by itself
    cell.pods("r1", "r2", "r3", "r4", of="ray", pod_set="main", tenant="rich")
    assert cell.open == {"r1", "r2", "r3", "r4"}


def test_what_has_ended_holds_nothing() -> None:
    """kueue#14811."""
    cell = Applications()
    ray(cell)
    cell.pods("head", of="ray", pod_set="head")
    cell.pass_seconds(1)
    cell.become("Succeeded", "head")
    cell.application("ray", finished=True)
    assert cell.held() == 0
    assert cell.shown("ray").phase == "Finished"


def test_an_application_that_is_deleted_leaves_no_account_behind() -> None:
    """kueue#10407."""
    cell = Applications()
    for number in range(20):
        ray(cell, f"ray-{number}")
        cell.delete_application(f"ray-{number}")
    assert cell.held() == 0
    assert len(cell.state.workloads) == 0
    assert not cell.state.applications or all(
        app.workload is None for app in cell.state.applications.values()
    )


def test_pods_open_in_the_pass_in_which_they_come() -> None:
    """kueue#14277: no tick, no poll."""
    cell = Applications()
    ray(cell)
    cell.pods("head", of="ray", pod_set="head")
    assert cell.open == {"head"}
    cell.pods("w1", of="ray", pod_set="small")
    assert cell.open == {"head", "w1"}


def test_two_drivers_cannot_lock_each_other_out() -> None:
    cell = Applications(cpu=3000)
    for name in ("one", "two"):
        cell.application(
            name, pod_set("driver", 1, 1, 1), pod_set("executor", 4, 1, 9), kind="SparkApplication"
        )
    assert cell.is_released("one")
    assert not cell.is_released("two")
    cell.pods("d1", of="one", pod_set="driver")
    cell.pods("e1", of="one", pod_set="executor")
    assert cell.open == {"d1", "e1"}


def test_two_drivers_without_operator_cannot_either() -> None:
    cell = Applications(cpu=3000)
    for name in ("one", "two"):
        cell.pods(f"driver-{name}", workload=f"SparkDriver/{name}", pod_set="driver")
    assert cell.open == {"driver-one"}
    assert cell.held() == 2000
    cell.pods("e1", workload="SparkDriver/one", pod_set="executor", owner="pod-driver-one")
    assert cell.open == {"driver-one", "e1"}


def test_executors_of_a_driver_that_has_ended_are_cleaned_up() -> None:
    cell = Applications(cpu=2000)
    cell.pods("driver", workload="SparkDriver/one", pod_set="driver")
    cell.pods("e1", "e2", "e3", workload="SparkDriver/one", pod_set="executor", owner="pod-driver")
    assert cell.open == {"driver", "e1"}
    cell.pass_seconds(1)
    cell.become("Failed", "driver")
    assert "e2" not in cell.there
    assert "e3" not in cell.there
    cell.pods("late", workload="SparkDriver/one", pod_set="executor", owner="pod-driver")
    assert "late" not in cell.there
    cell.delete_pods("e1")
    assert cell.held() == 0
    cell.delete_pods("driver")
    gone = [d for d in cell.decisions if isinstance(d, Delete) and d.about == "dynamicworkload"]
    assert len(gone) == 1
    assert gone[0].name == next(d.name for d in cell.decisions if isinstance(d, CreateWorkload))
    assert len(cell.state.workloads) == 0


def test_an_application_without_an_object_is_cleaned_up_whether_or_not_it_was_shown() -> None:
    """No decision depends on what people were shown."""
    sequences = []
    for tells in (True, False):
        cell = Applications(cpu=2000)
        cell.state.tells = tells
        cell.pods("driver", workload="SparkDriver/one", pod_set="driver")
        cell.pass_seconds(1)
        cell.delete_pods("driver")
        sequences.append([each for each in cell.decisions if each.seq])
    assert isinstance(sequences[0][-1], Delete)
    assert sequences[0] == sequences[1]


def test_in_client_mode_a_driver_that_replaces_its_executors_lives() -> None:
    cell = Applications(cpu=2000)
    cell.pass_seconds(1)
    cell.pods("e1", "e2", workload="SparkDriver/one", pod_set="executor")
    cell.pods("big", workload="SparkDriver/one", pod_set="executor", requests={"cpu": 5000})
    cell.become("Failed", "e1", "e2")
    cell.pods("e3", workload="SparkDriver/one", pod_set="executor", created_ms=2000)
    cell.become("Succeeded", "e3")
    cell.pass_seconds(62)
    assert "big" in cell.there


def test_while_it_has_not_nothing_more_is_let_in() -> None:
    cell = Applications(cpu=2000)
    cell.pass_seconds(1)
    cell.pods("e1", "e2", "e3", "e4", workload="SparkDriver/one", pod_set="executor")
    assert cell.open == {"e1", "e2"}
    cell.become("Failed", "e1")
    cell.pass_seconds(2)
    assert cell.open == {"e2"}
    report = [d for d in cell.decisions if isinstance(d, ReportWorkload)][-1]
    assert report.why == "an executor has failed, and its driver has asked for no other since"
    # Created in the second of the failure, as far as anybody can tell, but seen after it.
    cell.pods("e5", workload="SparkDriver/one", pod_set="executor", created_ms=1000)
    assert cell.open == {"e2", "e3"}


def test_and_one_that_does_not_is_gone_and_so_is_what_waits_for_it() -> None:
    cell = Applications(cpu=2000)
    cell.pass_seconds(1)
    cell.pods("e1", "e2", workload="SparkDriver/one", pod_set="executor")
    cell.pods("big", workload="SparkDriver/one", pod_set="executor", requests={"cpu": 5000})
    cell.become("Failed", "e1", "e2")
    cell.pass_seconds(55)
    assert "big" in cell.there
    cell.pass_seconds(7)
    assert "big" not in cell.there
    assert cell.held() == 0


def test_one_that_died_before_any_executor_ran_is_found_out_when_the_first_is_let_in() -> None:
    """Until then it can not be told from one that waits; and what waits holds nothing."""
    cell = Applications(cpu=2000)
    cell.pods("other", requests={"cpu": 2000})
    cell.pass_seconds(1)
    cell.pods(*(f"e{number}" for number in range(5)), workload="SparkDriver/one", pod_set="executor")
    cell.pass_seconds(600)
    assert cell.held() == 2000
    assert cell.open == {"other"}
    cell.become("Succeeded", "other")
    assert cell.open == {"e0", "e1"}
    cell.become("Failed", "e0", "e1")
    cell.pass_seconds(62)
    assert cell.there == {"other", "e0", "e1"}
    assert cell.held() == 0
    assert cell.shown("one", of="SparkDriver-team-one").phase == "Finished"


def test_a_failed_pod_of_a_job_leaves_its_share_to_the_one_that_replaces_it() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("team", reclaim={"enabled": False})
    cell.application("job", pod_set("main", 4, 1, 4, completions=4), kind="Job", replaces_failed=True)
    cell.pods("p1", "p2", "p3", "p4", of="job", pod_set="main")
    cell.pods("x", tenant="other", requests={"cpu": 1000})
    assert len(cell.open) == 4
    cell.become("Failed", "p4")
    assert "x" not in cell.open
    assert cell.held("team") == 4000
    cell.pods("p5", of="job", pod_set="main")
    assert cell.open == {"p1", "p2", "p3", "p5"}
    cell.application("job", finished=True, failed=True)
    cell.become("Failed", "p1", "p2", "p3", "p5")
    assert cell.open == {"x"}
    assert cell.shown("job").phase == "Failed"


def test_what_a_job_no_longer_needs_is_given_back_and_lets_the_next_in() -> None:
    """P − min(P, C − n): three at a time, four in all."""
    cell = Applications(cpu=3000)
    cell.application("job", pod_set("main", 3, 3, 3, completions=4), kind="Job", replaces_failed=True)
    cell.application("next", pod_set("main", 1, 1, 1, completions=1), kind="Job")
    cell.pods("p1", "p2", "p3", of="job", pod_set="main")
    cell.become("Succeeded", "p1")
    assert not cell.is_released("next")  # the fourth is still to come
    assert cell.shown("job").reclaimed == {}
    cell.pods("p4", of="job", pod_set="main")
    cell.become("Succeeded", "p2")
    assert cell.is_released("next")
    assert cell.shown("job").reclaimed == {"main": 1}
    cell.become("Succeeded", "p3")
    assert cell.shown("job").reclaimed == {"main": 2}


def test_without_completions_no_finished_pod_is_replaced() -> None:
    cell = Applications(cpu=2000)
    cell.application("job", pod_set("main", 2, 2, 2), kind="Job", replaces_failed=True)
    cell.pods("p1", "p2", of="job", pod_set="main")
    cell.become("Succeeded", "p1")
    assert cell.held() == 1000
    assert cell.shown("job").reclaimed == {"main": 1}


def test_growth_is_taken_back_first_and_the_whole_only_where_it_must_be() -> None:
    cell = Applications("rich", "poor", cpu=6000)
    cell.application("ray", pod_set("head", 1, 1, 1), pod_set("small", 5, 1, 9), tenant="rich")
    cell.pods("head", of="ray", pod_set="head", tenant="rich")
    cell.pods("w1", "w2", "w3", "w4", "w5", of="ray", pod_set="small", tenant="rich")
    cell.pods("p1", "p2", "p3", tenant="poor")
    cell.pass_seconds(1)
    assert {"p1", "p2", "p3", "head", "w1"} <= cell.open
    assert len(cell.open) == 6
    assert not any(isinstance(d, EvictWorkload) for d in cell.decisions)
    assert cell.shown("ray").pod_sets[1].taken == 3


def test_what_an_application_controls_is_charged_to_it_and_not_admitted_in_turn() -> None:
    cell = Applications()
    cell.application("job", pod_set("head", 1, 1, 1), pod_set("submitter", 1, 1, 1), kind="RayJob")
    cell.application("cluster", pod_set("head", 1, 1, 1), controller="workload-job", released=True)
    cell.application(
        "submit",
        pod_set("main", 1, 1, 1),
        kind="Job",
        controller="workload-job",
        as_pod_set="submitter",
        released=True,
    )
    cell.pods("h", of="cluster", pod_set="head")
    cell.pods("s", of="submit", pod_set="main")
    assert cell.open == {"h", "s"}
    assert cell.held() == 2000
    assert [d.name for d in cell.decisions if isinstance(d, AdmitWorkload)] == ["job"]
    assert not any(isinstance(d, EvictWorkload) for d in cell.decisions)
    assert [(s.name, s.admitted) for s in cell.shown("job").pod_sets] == [("head", 1), ("submitter", 1)]


def test_controllers_may_be_told_of_in_any_order() -> None:
    cell = Applications()
    cell.pods("h", of="cluster", pod_set="head")
    cell.application("cluster", pod_set("head", 1, 1, 1), controller="workload-job", released=True)
    cell.application("job", pod_set("head", 1, 1, 1), kind="RayJob")
    assert cell.held() == 1000
    assert [(s.name, s.admitted) for s in cell.shown("job").pod_sets] == [("head", 1)]


def test_nobody_is_charged_for_another_tenants_pods() -> None:
    cell = Applications("team", "thief")
    ray(cell)
    cell.pods("stolen", of="ray", pod_set="small", tenant="thief")
    assert cell.held("team") == 2000
    assert cell.held("thief") == 1000


def test_an_application_that_runs_unadmitted_is_suspended_and_one_with_open_pods_adopted() -> None:
    cell = Applications()
    cell.application("fresh", pod_set("main", 2, 2, 2), released=True)
    [suspended] = [d for d in cell.decisions if isinstance(d, EvictWorkload)]
    assert suspended.reason == "Unsuspended"
    assert cell.is_released("fresh")  # a moment later, by a decision
    cell.pods("p1", "p2", of="old", pod_set="main", gated=False, phase="Running")
    cell.application("old", pod_set("main", 2, 2, 2), released=True)
    assert cell.open == {"p1", "p2"}
    assert sum(isinstance(d, EvictWorkload) for d in cell.decisions) == 1


def test_one_that_was_found_running_and_is_held_back_since_waits_for_its_turn() -> None:
    """What an owner before us decided may be carried out late."""
    cell = Applications(cpu=2000)
    cell.pods("p1", "p2", of="old", pod_set="main", gated=False, phase="Running")
    cell.application("old", pod_set("main", 2, 1, 2), released=True)
    cell.application("old", released=False, decision="1-0.7")
    assert not cell.is_released("old")
    assert cell.held() == 2000, "what still runs counts"
    cell.become("Succeeded", "p1", "p2")
    assert cell.is_released("old")


def test_a_gang_that_does_not_come_up_in_time_is_put_back_behind_the_others() -> None:
    cell = Applications(cpu=4000)
    cell.application("gang", pod_set("main", 4, 4, 4), gang=Gang(deadline_ms=5000))
    cell.application("next", pod_set("main", 4, 4, 4))
    cell.pods("p1", "p2", of="gang", pod_set="main")
    cell.pass_seconds(4)
    assert cell.is_released("gang")
    cell.pass_seconds(3)
    assert not cell.is_released("gang")
    assert cell.is_released("next")
    [back] = [d for d in cell.decisions if isinstance(d, EvictWorkload)]
    assert "only 2 of 4 pods ran" in back.sentence


def test_or_it_goes_on_with_what_runs() -> None:
    cell = Applications(cpu=4000)
    cell.application("gang", pod_set("main", 4, 4, 4), gang=Gang(deadline_ms=5000, hard=False))
    cell.pods("p1", "p2", of="gang", pod_set="main")
    assert cell.held() == 4000
    cell.pass_seconds(6)
    assert cell.is_released("gang")
    assert cell.held() == 2000


def test_a_gang_that_came_up_in_time_may_end_pod_by_pod() -> None:
    cell = Applications(cpu=4000)
    cell.application("gang", pod_set("main", 2, 2, 2, completions=5), gang=Gang(deadline_ms=5000))
    cell.pods("p1", "p2", of="gang", pod_set="main")
    cell.pass_seconds(6)
    cell.become("Succeeded", "p1")
    cell.pass_seconds(6)
    assert cell.is_released("gang")
    assert cell.open == {"p2"}


def test_a_pod_group_is_admitted_together_and_put_back_together() -> None:
    cell = Applications(cpu=4000)
    group: dict[str, Any] = {"workload": "PodGroup/four", "group_size": 3, "gang": Gang(deadline_ms=5000)}
    cell.pods("g1", "g2", **group)
    assert cell.open == set()
    cell.pods("g3", **group)
    assert cell.open == {"g1", "g2", "g3"}
    cell.become("Pending", "g3")
    cell.pass_seconds(7)
    assert cell.there == set()
    assert cell.held() == 0


def test_a_pod_group_of_several_sets_that_runs_in_time_is_left_alone() -> None:
    cell = Applications(cpu=4000)
    group: dict[str, Any] = {"workload": "PodGroup/two", "group_size": 2, "gang": Gang(deadline_ms=5000)}
    for name in ("head", "worker"):
        cell.pods(name, pod_set=name, **group)
    cell.become("Running", "head", "worker")
    cell.pass_seconds(7)
    assert cell.open == {"head", "worker"}


def test_statuses_are_merged_and_an_admission_costs_one_beside_its_release() -> None:
    cell = Applications()
    ray(cell, workers=5)
    cell.pods("head", of="ray", pod_set="head")
    for number in range(5):
        cell.pods(f"w{number}", of="ray", pod_set="small")
    cell.pass_seconds(1)
    about = [d for d in cell.decisions if getattr(d, "uid", "") == "workload-ray"]
    assert [type(each) for each in about] == [AdmitWorkload, CreateWorkload, ReportWorkload]
    cell.application("ray", priority_class="another")  # nothing that shows
    cell.pass_seconds(30)
    assert sum(isinstance(d, ReportWorkload) for d in cell.decisions) == 1


def test_where_it_stands_in_line_goes_along_with_what_is_written_and_is_no_reason_to_write() -> None:
    cell = Applications(cpu=2000)
    for number in range(4):
        cell.application(f"r{number}", pod_set("head", 2, 2, 2))
    assert [cell.shown(f"r{number}").position for number in range(4)] == [None, 1, 2, 3]
    written = len(cell.decisions)
    cell.application("r1", finished=True)
    cell.application("r2", priority_class="another")
    assert cell.shown("r2").position == 2, "nothing else that shows has changed"
    assert [each.name[:13] for each in cell.decisions[written:] if isinstance(each, ReportWorkload)] == [
        "raycluster-r1"
    ]
    cell.application("r2", pod_set("head", 3, 2, 3))
    assert cell.shown("r2").position == 1


def test_its_estimate_is_that_of_its_queue() -> None:
    cell = Applications(cpu=1000)
    cell.pods(*(f"p{number}" for number in range(6)))
    cell.application("second", pod_set("head", 1, 1, 1), created_ms=100)
    assert cell.shown("second").eta_ms is None
    for number in range(5):
        cell.become("Succeeded", f"p{number}")
        cell.pass_seconds(10)
    cell.application("second", pod_set("head", 2, 1, 2))
    shown = cell.shown("second")
    assert shown.position == 1
    assert shown.eta_ms is not None
    assert shown.time_ms + 10_000 <= shown.eta_ms <= shown.time_ms + 20_000


def test_growth_stands_in_line_where_its_first_pod_does() -> None:
    cell = Applications(cpu=3000)
    ray(cell, workers=2, most=8)
    cell.pods("head", of="ray", pod_set="head")
    cell.pods(*(f"w{number}" for number in range(4)), of="ray", pod_set="small")
    assert cell.shown("ray").position == 1


class TestReplicasOfSeveralHosts:
    """Ray's `numOfHosts`: one host without the others is of no use, and holds what others could use."""

    def grown(self, cell: Applications, workers: int) -> None:
        pods = pod_set("big", workers, 2, 20, replica_size=2)
        cell.application("ray", pod_set("head", 1, 1, 1), pods)
        cell.pods("head", of="ray", pod_set="head")
        cell.pods(*(f"w{number}" for number in range(workers)), of="ray", pod_set="big")

    def test_growth_goes_by_whole_replicas(self) -> None:
        cell = Applications(cpu=6000)
        self.grown(cell, workers=8)
        assert cell.open == {"head", "w0", "w1", "w2", "w3"}, (
            "there is room for one more, which is no replica"
        )
        shown = cell.shown("ray")
        assert (shown.phase, shown.position) == ("Growing", 1)
        assert "waits for 2 cpu" in shown.why
        cell.delete_pods("w0", "w1")
        assert cell.open == {"head", "w2", "w3", "w4", "w5"}

    def test_several_open_in_one_pass(self) -> None:
        cell = Applications(cpu=3000)
        self.grown(cell, workers=8)
        decided = len(cell.decisions)
        cell.pool(cpu=8000)
        assert [each.type for each in cell.decisions[decided:]] == ["admit"] * 4

    def test_half_a_replica_waits_for_its_other_half(self) -> None:
        cell = Applications()
        self.grown(cell, workers=3)
        assert cell.open == {"head", "w0", "w1"}
        assert why(cell.state, "pod/sim/pod-w2").sentence == (
            "2 big pods are one replica and open together: some of the next one are not there yet"
        )
        cell.pods("w3", of="ray", pod_set="big")
        assert cell.open == {"head", "w0", "w1", "w2", "w3"}

    def test_a_host_that_was_lost_is_replaced_alone(self) -> None:
        cell = Applications()
        self.grown(cell, workers=4)
        cell.delete_pods("w3")
        cell.pods("w4", of="ray", pod_set="big")
        assert cell.open == {"head", "w0", "w1", "w2", "w4"}

    def test_growth_is_taken_back_by_whole_replicas(self) -> None:
        cell = Applications("team", "other", cpu=7000)
        self.grown(cell, workers=6)
        assert len(cell.open) == 7
        cell.pods("o", tenant="other")
        cell.pass_seconds(1)
        assert cell.open == {"head", "w0", "w1", "w2", "w3", "o"}
        assert cell.held() == 5000

    def test_a_replica_takes_from_others_what_it_needs_whole(self) -> None:
        cell = Applications("team", "other")
        cell.pods(*(f"o{number}" for number in range(7)), tenant="other")
        self.grown(cell, workers=4)
        cell.pass_seconds(3)
        assert {"head", "w0", "w1", "w2", "w3"} <= cell.open
        assert len(cell.open) == 10

    def test_what_its_spec_says_later_counts(self) -> None:
        cell = Applications(cpu=6000)
        self.grown(cell, workers=8)
        cell.application("ray", pod_set("head", 1, 1, 1), pod_set("big", 8, 2, 20))
        assert len(cell.open) == 6
        cell.application("ray", pod_set("head", 1, 1, 1), pod_set("big", 8, 2, 20, replica_size=3))
        cell.delete_pods("w0", "w1")
        assert len(cell.open) == 4


def test_what_of_its_spec_counts_is_shown() -> None:
    cell = Applications()
    cell.application("ray", pod_set("head", 1, 1, 1), application_spec={"headGroupSpec": {"replicas": 1}})
    cell.pass_seconds(1)
    [created] = [each for each in cell.decisions if isinstance(each, CreateWorkload)]
    assert created.application_spec == {"headGroupSpec": {"replicas": 1}}


def test_who_names_no_priority_class_has_that_of_the_clusters_default() -> None:
    cell = Applications(cpu=1000)
    cell.application("runs", pod_set("head", 1, 1, 1))
    cell.tell(PriorityClassEvent, "low", value=-10)
    cell.application("low", pod_set("head", 1, 1, 1), priority_class="low")
    cell.application("none", pod_set("head", 1, 1, 1))
    cell.application("by-hand", pod_set("head", 1, 1, 1), kind="DynamicWorkload", priority=-15)
    place = {name: cell.shown(name).position for name in ("none", "low", "by-hand")}
    assert place == {"none": 1, "by-hand": 2, "low": 3}, "a number written by hand counts as 0"
    cell.tell(PriorityClassEvent, "lowest", value=-20, global_default=True)
    cell.tell(PriorityClassEvent, "other", value=50, global_default=True)
    for name in place:
        cell.application(name, pod_set("head", 2, 1, 2))
    assert [cell.shown(name).position for name in place] == [3, 2, 1]
    cell.tell(PriorityClassEvent, "lowest", change="DELETED", value=-20, global_default=True)
    for name in place:
        cell.application(name, pod_set("head", 3, 1, 3))
    assert [cell.shown(name).position for name in place] == [1, 3, 2]


def test_one_that_names_a_queue_elsewhere_is_told_so_by_its_own_kind() -> None:
    cell = Applications("team", "other")
    cell.application("etl", pod_set("main", 1, 1, 1), kind="SparkApplication", queue="other")
    why = cell.shown("etl").why
    assert why.startswith("the SparkApplication names queue other, which does not stand below team")
    assert "recreate the SparkApplication with another label" in why


def test_its_conditions_say_of_what_kind_it_is_that_it_waits_for() -> None:
    cell = Applications(cpu=1000)
    cell.application("runs", pod_set("head", 1, 1, 1), generation=4)
    cell.application("waits", pod_set("head", 1, 1, 1))
    cell.application("large", pod_set("head", 2, 2, 2))
    reasons = {name: why_not_admitted(cell.shown(name)) for name in ("runs", "waits", "large")}
    assert reasons == {"runs": "AsExpected", "waits": "NoRoom", "large": "TooLarge"}
    cell.application("waits", finished=True)
    assert why_not_admitted(cell.shown("waits")) == "Ended"
    assert cell.shown("runs").generation == 1, "of the DynamicWorkload, not of its application"


def why_not_admitted(shown: ReportWorkload) -> str:
    """The reason of its condition Admitted."""
    return next(each.reason for each in shown.conditions if each.type == "Admitted")
