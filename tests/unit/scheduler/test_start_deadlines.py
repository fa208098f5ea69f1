"""What an application was granted and nobody comes for goes to others, and it says who did not come."""

from __future__ import annotations

from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import Admit, AdmitWorkload, Decision, EvictWorkload
from sluice.events import Event, PodEvent, PodFacts, QueueEvent, QueueFacts
from sluice_scheduler.core.applications.requeue import JUDGED_MAX
from sluice_scheduler.explain import as_json, explain, look_up
from sluice_scheduler.simulator.cell import CLUSTER

MINUTE = 60


def spark(cell: Applications, name: str = "etl", **facts: Any) -> None:
    """Its operator is not there: nobody makes a pod."""
    driver, executor = pod_set("driver", 1, 1, 1), pod_set("executor", 4, 4, 4)
    cell.application(name, driver, executor, **{"kind": "SparkApplication", **facts})


def told(cell: Applications, kind: type[Decision]) -> list[Any]:
    return [each for each in cell.decisions if isinstance(each, kind)]


def test_one_that_no_pod_came_of_goes_back_and_says_so() -> None:
    cell = Applications()
    spark(cell)
    assert cell.held() == 5000
    cell.pass_seconds(10 * MINUTE - 1)
    assert cell.held() == 5000
    cell.pass_seconds(2)
    assert cell.held() == 0
    [back] = told(cell, EvictWorkload)
    why = "no pod of SparkApplication etl came within 10m: is its operator running, or are they refused?"
    assert (back.reason, back.sentence) == ("StartDeadline", why)
    shown = cell.shown("etl")
    assert (shown.phase, shown.why) == ("Pending", why)
    admitted = next(each for each in shown.conditions if each.type == "Admitted")
    assert (admitted.status, admitted.reason, admitted.message) == ("False", "NobodyCame", why)
    [line] = explain(cell.state, "team/etl")
    assert why in line


def test_its_queue_says_that_it_pauses() -> None:
    cell = Applications()
    spark(cell)
    cell.pass_seconds(10 * MINUTE + 2)
    counted, pauses = explain(cell.state, "team")
    assert counted == "queue team: nothing waits in line, 1 application or pod pauses"
    assert "etl, about in " in pauses
    assert (
        "NobodyCame: no pod of SparkApplication etl came within 10m: is its operator running, or are they"
        in pauses
    )
    told = look_up(cell.state, "team")
    assert told is not None
    assert {"waiting": 0, "pausing": 1}.items() <= as_json("default", told).items()


def test_meanwhile_others_have_the_room_and_it_stands_behind_them() -> None:
    cell = Applications(cpu=5000)
    spark(cell)
    cell.pods("p1", "p2", "p3")
    assert "p1" not in cell.open
    cell.pass_seconds(10 * MINUTE + 2)
    assert {"p1", "p2", "p3"} <= cell.open
    spark(cell, "other")
    cell.pass_seconds(11 * MINUTE)
    assert cell.shown("other").position == 1, "it came later, and has kept no room for nothing"
    last = cell.shown("etl")
    assert last.position == 2
    assert last.why.endswith(
        "; before that, no pod of SparkApplication etl came within 10m: is its operator running, or are they refused?"
    )


def test_it_does_not_flap() -> None:
    """Each time in a row it waits longer, so it keeps room for less and less of the time."""
    cell = Applications()
    spark(cell)
    starts: list[int] = []
    for minute in range(150):
        before = len(told(cell, AdmitWorkload))
        cell.pass_seconds(MINUTE)
        if len(told(cell, AdmitWorkload)) > before:
            starts.append(minute)
    assert starts == [20, 50, 90, 130], "after pauses of 10, 20, 30 and 30 minutes"


def test_once_a_pod_came_it_is_as_if_nothing_had_been() -> None:
    cell = Applications()
    spark(cell)
    cell.pass_seconds(21 * MINUTE)
    assert cell.is_released("etl")
    cell.pods("driver", of="etl", pod_set="driver")
    cell.pods(*"abcd", of="etl", pod_set="executor")
    cell.pass_seconds(30 * MINUTE)
    assert cell.is_released("etl")
    assert cell.shown("etl").why == ""
    [account] = cell.state.workloads
    assert (account.no_shows, account.no_show, account.unclaimed) == (0, "", 0)


def test_a_pod_that_comes_ends_the_pause() -> None:
    """Of one that gates alone hold back, pods come whether it was admitted or not."""
    cell = Applications()
    main = pod_set("main", 2, 2, 2)
    cell.application("dask", main, kind="DaskCluster", suspendable=False)
    cell.pass_seconds(10 * MINUTE + 1)
    assert cell.shown("dask").phase == "Pending"
    cell.pods("a", "b", of="dask", pod_set="main")
    cell.pass_seconds(3)
    assert cell.open == {"a", "b"}


def test_as_long_as_pods_come_nothing_is_given_up() -> None:
    cell = Applications()
    spark(cell)
    for number, name in enumerate(["driver", "a", "b", "c", "d"]):
        cell.pass_seconds(8 * MINUTE)
        cell.pods(name, of="etl", pod_set="executor" if number else "driver")
    cell.pass_seconds(20 * MINUTE)
    assert cell.held() == 5000
    assert not told(cell, EvictWorkload)


def test_pods_that_come_and_fail_have_come() -> None:
    """Their slot is kept for those that replace them, which come within minutes."""
    cell = Applications()
    cell.application("job", pod_set("main", 1, 1, 1, completions=1), kind="Job", replaces_failed=True)
    for attempt in range(8):
        cell.pods(f"pod-{attempt}", of="job", pod_set="main")
        cell.become("Failed", f"pod-{attempt}")
        cell.pass_seconds(6 * MINUTE)
    assert not told(cell, EvictWorkload)
    cell.pass_seconds(5 * MINUTE)
    assert told(cell, EvictWorkload), "and then no other came"


def test_of_one_that_came_in_part_the_rest_goes_to_others() -> None:
    cell = Applications(cpu=5000)
    spark(cell)
    cell.pods("driver", of="etl", pod_set="driver")
    cell.pods("a", of="etl", pod_set="executor")
    cell.pods("p1", "p2", "p3", "p4")
    cell.pass_seconds(10 * MINUTE + 2)
    assert cell.open == {"driver", "a", "p1", "p2", "p3"}
    assert not told(cell, EvictWorkload)
    why = "no pod for 3 executor of SparkApplication etl came within 10m: is its operator running, or are they refused?"
    assert cell.shown("etl").why == why
    [line] = explain(cell.state, "team/etl")
    assert line.endswith(f"NobodyCame: {why}")
    cell.pods("b", "c", "d", of="etl", pod_set="executor")
    cell.become("Succeeded", "p1", "p2")
    cell.pass_seconds(2)
    assert len({"b", "c", "d"} & cell.open) == 2, "they stand in line as growth does"
    assert why not in cell.shown("etl").why


@pytest.mark.parametrize(
    ("of_queue", "of_cell", "after_s"), [(30, 600_000, 30), (None, 90_000, 90), (0, 60_000, 0)]
)
def test_the_deadline_is_the_queues_or_the_cells(of_queue: int | None, of_cell: int, after_s: int) -> None:
    cell = Applications()
    cell.configure(start_deadline_ms=of_cell)
    if of_queue is not None:
        cell.queue("team", startDeadlineSeconds=of_queue)
    spark(cell)
    passed_s = 0
    while passed_s < 200 and not told(cell, EvictWorkload):
        cell.pass_seconds(1)
        passed_s += 1
    assert (passed_s if told(cell, EvictWorkload) else 0) in (after_s, after_s + 1)


def test_the_sentence_names_who_did_not_act() -> None:
    cell = Applications(cpu=100_000)
    main = pod_set("main", 1, 1, 1)
    cell.application("nightly", main, kind="Job")
    cell.application("own", main, kind="DynamicWorkload", suspendable=False)
    cell.application("ray", main, kind="RayCluster")
    cell.carry_out_nothing = True
    cell.application("unseen", main, kind="RayCluster")
    cell.pass_seconds(10 * MINUTE + 2)
    said = {each.name: each.sentence.partition("10m")[2] for each in told(cell, EvictWorkload)}
    assert said == {
        "nightly": ": is the Job controller running, or are they refused?",
        "own": ": is what makes its pods running, or are they refused?",
        "ray": ": is its operator running, or are they refused?",
        "unseen": ", and it does not show that it was released: is Sluice's actuator running?",
    }


def test_nobody_is_judged_while_a_list_is_under_way() -> None:
    """Its pods may be there, and only not have been told of."""
    cell = Applications()
    spark(cell)
    [cluster] = cell.state.clusters
    cluster.open_syncs = {"pod": "7"}
    cell.pass_seconds(11 * MINUTE)
    assert not told(cell, EvictWorkload)
    cluster.open_syncs = {}
    cell.pass_seconds(1)
    assert told(cell, EvictWorkload)


def test_with_one_tick_no_more_are_judged_than_it_can_bear() -> None:
    cell = Applications(cpu=10_000_000)
    for number in range(JUDGED_MAX + 20):
        cell.application(f"job-{number}", pod_set("main", 1, 1, 1), kind="Job")
    cell.pass_seconds(10 * MINUTE)
    lots = []
    for _ in range(4):
        before = len(told(cell, EvictWorkload))
        cell.pass_seconds(1)
        lots.append(len(told(cell, EvictWorkload)) - before)
    assert sorted(lots) == [0, 0, 20, JUDGED_MAX]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_worker_that_takes_over_gives_up_the_same_at_the_same_time(restarts: bool) -> None:
    cell = Applications()
    spark(cell)
    cell.application("half", pod_set("main", 3, 3, 3), kind="Job")
    cell.pods("h", of="half", pod_set="main")
    for second in range(25 * MINUTE):
        if restarts and second % 7 == 0:
            cell.cell.restart()
        cell.pass_seconds(1)
    decided = [
        (each.type, each.name, each.time_ms) for each in told(cell, AdmitWorkload) + told(cell, EvictWorkload)
    ]
    assert len(decided) == 4
    assert _SEEN.setdefault("decided", decided) == decided
    assert len(told(cell, Admit)) == 1


_SEEN: dict[str, list[tuple[str, str, int]]] = {}


@pytest.mark.parametrize("often", [False, True])
def test_pods_of_a_set_that_lacks_none_have_nothing_to_do_with_it(often: bool) -> None:
    """Be it one that waits for ever, or one every minute."""
    cell = Applications(cpu=32_000)
    bait = pod_set("bait", 100, 0, cpu=99_000)
    cell.application("ray", pod_set("main", 30, 30), bait)
    cell.pods("bait", of="ray", pod_set="bait", requests={"cpu": 99_000})
    for minute in range(11):
        cell.pass_seconds(MINUTE)
        if often:
            cell.pods(f"bait-{minute}", of="ray", pod_set="bait", requests={"cpu": 99_000})
    assert cell.held() == 0
    [back] = told(cell, EvictWorkload)
    assert back.reason == "StartDeadline"
    cell.pass_seconds(8 * MINUTE)
    assert len(told(cell, AdmitWorkload)) == 1, "it pauses"


@pytest.mark.parametrize("some_came", [False, True])
def test_what_a_queue_that_is_gone_reserved_goes_to_others(some_came: bool) -> None:
    cell = Applications("team", "other")
    spark(cell)
    if some_came:
        cell.pods("driver", of="etl", pod_set="driver")
    cell.tell(QueueEvent, "team", change="DELETED", queue=QueueFacts())
    cell.pass_seconds(11 * MINUTE)
    assert cell.state.forest.root.usage == ({("sim", "default", "cpu"): 1000} if some_came else {})


def test_those_that_we_hold_up_ourselves_keep_nobody_from_it() -> None:
    """However many they are, and first by name: here those rest, and make no pods meanwhile."""
    cell = Applications(cpu=10_000_000)
    for number in range(JUDGED_MAX):
        cell.application(f"a-{number:03}", pod_set("main", 1, 1, 1), kind="Job")
    for account in cell.state.workloads:
        cell.state.resting[account.key] = account.job.resume_ms = 60 * MINUTE * 1000
    cell.application("nobodys", pod_set("main", 1, 1, 1), kind="Job")
    cell.pass_seconds(10 * MINUTE + 2)
    assert [each.name for each in told(cell, EvictWorkload)] == ["nobodys"]


def test_a_pod_that_is_too_large_stands_in_nobodys_way_to_what_is_reserved() -> None:
    """Both are told of before anything is decided about them."""
    cell = Applications(cpu=3000)
    cell.application("ray", pod_set("worker", 2, 1))
    cell.pods("other", requests={"cpu": 2000})
    sizes = {"large": 5000, "small": 1000}
    facts: Any = {"created_ms": 9, "gated": True, "owner": "workload-ray", "pod_set": "worker"}
    came: list[Event] = [
        PodEvent(
            time_ms=1000,
            cluster=CLUSTER,
            change="ADDED",
            uid=name,
            name=name,
            namespace="team",
            resource_version=100 + number,
            pod=PodFacts(requests={"cpu": cpu}, **facts),
        )
        for number, (name, cpu) in enumerate(sizes.items())
    ]
    [opened] = cell.cell.feed(came)
    assert isinstance(opened, Admit)
    assert (opened.name, opened.reason) == ("small", "Reserved")
