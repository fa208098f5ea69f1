"""What a running cell knows is what one that is taken over derives: after edits of what stands already, too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import one_cell
import pytest
from applications_of_one_cell import Applications, pod_set
from fakes.twins import TwinCell
from one_cell import OneCell
from sluice.applications import WITHOUT_OPERATOR
from sluice.decisions import Admit, AdmitWorkload, CreatePod, Decision, Delete, Evict
from sluice.events import (
    Gang,
    JobFacts,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    PoolEvent,
    PoolFacts,
    PriorityClassEvent,
    QueueEvent,
    QueueFacts,
    Result,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.values import NamespaceSelector
from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.claims import Dim
from sluice_scheduler.simulator.cell import outcome


@pytest.fixture(autouse=True)
def _taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one_cell, "SimulatedCell", TwinCell)


def small() -> OneCell:
    """One pool with 10 cpu, and queue `a` with its namespace."""
    cell = OneCell()
    cell.pool(cpu=10_000)
    cell.queue("a")
    cell.namespace("a")
    return cell


def test_a_group_of_pods_that_is_made_smaller_starts() -> None:
    cell = small()
    cell.pod("x", "a", workload="group", group_size=3)
    cell.pod("x", "a", workload="group", group_size=1)
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["x"]


def test_a_deadline_that_a_running_group_is_given_holds() -> None:
    cell = small()
    for name in ("x", "y"):
        cell.pod(name, "a", workload="group", group_size=2)
    for name in ("x", "y"):
        cell.pod(name, "a", workload="group", group_size=2, gated=False, gang=Gang(deadline_ms=2000))
    for _ in range(3):
        cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Evict)] == ["x", "y"]


def shed(cell: OneCell) -> list[str]:
    return [
        each.name for each in cell.decisions if isinstance(each, Evict) and each.reason == "Overcommitted"
    ]


def test_what_runs_on_a_resource_that_its_pool_has_nothing_of_is_over() -> None:
    cell = small()
    gpu: Any = {"requests": {"cpu": 1000, "nvidia.com/gpu": 1}}
    cell.pod("x", "a", gated=False, phase="Running", node="node-default", **gpu)
    cell.tick()
    assert shed(cell) == ["x"]
    cell.pod("x", "a", change="DELETED", **gpu)
    cell.tick()
    assert ("sim", "default", "nvidia.com/gpu") not in cell.state.forest.capacity


def test_what_runs_on_nodes_that_are_all_cordoned_is_over() -> None:
    cell = small()
    labels = {"pool": "default"}
    cell.tell(
        NodeEvent,
        "node-default",
        node=NodeFacts(allocatable={"cpu": 10_000}, labels=labels, schedulable=False),
    )
    cell.pod("x", "a", gated=False, phase="Running", node="node-default")
    cell.tick()
    assert shed(cell) == ["x"]


def test_what_runs_in_a_pool_that_is_deleted_is_over_whoever_takes_the_cell_over() -> None:
    cell = small()
    cell.pod("x", "a")
    cell.pod("x", "a", gated=False, phase="Running", node="node-default")
    cell.tell(PoolEvent, "default", change="DELETED", pool=PoolFacts())
    assert shed(cell) == ["x"]
    cell.cell.restart()
    assert cell.state.validate() == []
    assert rooms(cell.state) == {("sim", "default", "cpu"): (0, -1000)}


def rooms(state: State) -> dict[Dim, tuple[int, int]]:
    state.forest.settle()
    return {room.bound.dims[0]: (room.bound.amount, room.left) for room in state.forest.root.rooms}


def test_growth_that_waits_goes_with_the_priority_of_its_application() -> None:
    cell = Applications(cpu=1000)
    cell.tell(PriorityClassEvent, "high", value=100)
    cell.application("ray", pod_set("worker", 1, 0), created_ms=5)
    cell.pods("busy")
    cell.pods("other", created_ms=0)
    cell.pods("grown", of="ray", pod_set="worker")
    cell.application("ray", priority_class="high")
    cell.delete_pods("busy")
    assert cell.open == {"grown"}


@pytest.mark.parametrize("what", ["mended", "deleted"])
def test_a_problem_of_an_application_leaves_its_pods_with_it(what: str) -> None:
    """Its pods were not deleted with it, so they stand for themselves from then on."""
    cell = Applications()
    cell.application("ray", pod_set("worker", 1, 0), problem="spec: unreadable")
    cell.pods("of-ray", of="ray", pod_set="worker")
    cell.pods("named", workload="RayCluster/ray", pod_set="worker")
    assert {each.problem for each in cell.state.pods} == {"spec: unreadable"}
    if what == "mended":
        cell.application("ray", problem="")
    else:
        cell.delete_application("ray")
    assert {each.problem for each in cell.state.pods} == {""}
    cell.pass_seconds(62)
    cell.queue("team", weight=2)
    cell.pass_seconds(2)
    assert cell.open == {"of-ray", "named"}


def test_a_problem_of_an_application_comes_to_pods_that_came_before_it() -> None:
    cell = Applications(cpu=0)
    cell.pods("of-ray", of="ray", pod_set="worker")
    cell.application("ray", pod_set("worker", 1, 0), problem="spec: unreadable")
    assert {each.problem for each in cell.state.pods} == {"spec: unreadable"}


def test_a_job_whose_pods_could_not_be_made_rests_whatever_else_was_refused() -> None:
    cell = Applications()
    cell.carry_out_nothing = True
    job = JobFacts(restart_limit=3, backoff_limit=6, backoff_ms=0)
    cell.application(
        "job",
        pod_set("main", 2, 0, completions=2),
        kind="QueueJob",
        released=True,
        suspendable=False,
        job=job,
    )
    refuse(cell, AdmitWorkload, "Rejected")
    cell.tick()
    refuse(cell, CreatePod, "Conflict")
    for _ in range(40):
        cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, CreatePod)] == [
        "job-0-0",
        "job-1-0",
        "job-0-1",
    ]


def refuse(cell: OneCell, kind: type[Decision], result: Result) -> None:
    decision = next(each for each in cell.decisions if isinstance(each, kind))
    cell.decisions += cell.cell.feed([replace(outcome(decision, cell.state.now_ms), result=result)])


def tell_node(cell: OneCell, name: str, pool: str, cpu: int = 10_000) -> None:
    cell.tell(NodeEvent, name, node=NodeFacts(allocatable={"cpu": cpu}, labels={"pool": pool}))


def test_pods_go_with_their_node_into_another_pool() -> None:
    cell = small()
    cell.queue("b")
    cell.namespace("b")
    cell.pool("other", cpu=2000)
    tell_node(cell, "node-default", "default")
    cell.pod("x", "a", cpu=8000)
    cell.pod("x", "a", cpu=8000, gated=False, phase="Running", node="node-default")
    tell_node(cell, "node-default", "other")
    assert [(each.pool, each.evicting) for each in cell.state.pods] == [("other", 0)]
    cell.pod("y", "b", cpu=10_000)
    assert not [each for each in cell.decisions if isinstance(each, Admit) and each.name == "y"]
    cell.queue("b", weight=2)
    cell.tell(NodeEvent, "node-default", change="DELETED", node=NodeFacts(allocatable={}))
    cell.tick()


@pytest.mark.parametrize("pools", [("default", "other"), ("other",)])
def test_a_pod_that_is_told_of_before_its_node_holds_of_its_pool(pools: tuple[str, ...]) -> None:
    """Until then of the first that it may go to, or of none."""
    cell = OneCell()
    cell.queue("a")
    cell.namespace("a")
    for pool in pools:
        cell.tell(PoolEvent, pool, pool=PoolFacts(node_selector={"pool": pool}))
    for pool in pools[:-1]:
        tell_node(cell, f"node-{pool}", pool)
    cell.pod("x", "a", gated=False, phase="Running", node="late")
    tell_node(cell, "late", "other")
    assert [each.pool for each in cell.state.pods] == ["other"]
    cell.queue("a", weight=2)
    cell.tick()


def test_a_pod_on_no_node_holds_of_the_first_pool_that_has_one_for_it() -> None:
    cell = OneCell()
    cell.queue("a")
    cell.namespace("a")
    cell.tell(PoolEvent, "default", pool=PoolFacts(node_selector={"pool": "default"}))
    cell.pod("x", "a", gated=False)
    tell_node(cell, "late", "default")
    assert [each.pool for each in cell.state.pods] == ["default"]
    cell.queue("a", weight=2)
    cell.tick()


def queue_job(cell: Applications, name: str, count: int) -> None:
    job = JobFacts(restart_limit=3, backoff_limit=6, backoff_ms=0)
    main = pod_set("main", count, 0, completions=9)
    cell.application(name, main, kind="QueueJob", released=True, suspendable=False, job=job)


def application_of(cell: OneCell, name: str) -> str:
    return next(str(each.application) for each in cell.state.pods if each.name == name)


def test_a_job_lets_nothing_go_that_names_it_and_is_anothers() -> None:
    cell = Applications()
    queue_job(cell, "job", 2)
    cell.application("ray", pod_set("worker", 3, 0))
    cell.pods("w0", "w1", of="ray", pod_set="worker", workload="QueueJob/job")
    queue_job(cell, "job", 1)
    cell.pass_seconds(2)
    assert {each.name for each in cell.decisions if isinstance(each, Evict)} == {"job-1-0"}
    assert {"w0", "w1", "job-0-0"} <= cell.open


def test_a_pod_that_changes_hands_takes_those_below_it_along() -> None:
    cell = Applications()
    queue_job(cell, "job", 2)
    cell.application("ray", pod_set("worker", 3, 0))
    cell.pods("below", owner="pod-job-0-0")
    assert application_of(cell, "below") == "QueueJob/job"
    cell._change_pod("job-0-0", owner="workload-ray", pod_set="worker")
    cell.pass_seconds(2)
    assert {application_of(cell, name) for name in ("job-0-0", "below")} == {"RayCluster/ray"}
    cell._change_pod("job-0-0", owner="")
    cell.pass_seconds(2)
    assert {application_of(cell, name) for name in ("job-0-0", "below")} == {""}


def test_an_application_that_its_last_pod_leaves_is_gone() -> None:
    cell = Applications()
    cell.pods("driver", workload=f"{WITHOUT_OPERATOR}/etl", pod_set="driver")
    assert len(cell.state.workloads) == 1
    cell._change_pod("driver", workload="")
    cell.pass_seconds(2)
    assert len(cell.state.workloads) == 0
    assert application_of(cell, "driver") == ""


def test_an_application_whose_gates_alone_hold_it_back_runs_once_a_pod_of_it_does() -> None:
    """The policies were not there yet when the pod was made, or were got round."""
    cell = Applications(cpu=1000)
    cell.application("dask", pod_set("worker", 2, 2), kind="DaskCluster", suspendable=False)
    cell.pods("w0", of="dask", pod_set="worker", gated=False)
    [account] = cell.state.workloads
    assert account.admitted
    cell.tick()


def test_what_nobody_can_use_is_given_back_with_the_pass_that_granted_it() -> None:
    """A pod came larger than it was said to be: when one comes that is not, it stands in line as growth does."""
    cell = Applications("team", "other", cpu=2000)
    cell.pods("busy", tenant="other", requests={"cpu": 2000})
    cell.application("ray", pod_set("worker", 2, 1))
    cell.pods("large", of="ray", pod_set="worker", requests={"cpu": 99_000})
    cell.carry_out_nothing = True
    cell.delete_pods("busy")
    cell.delete_pods("large")
    [account] = cell.state.workloads
    assert (account.admitted, account.granted) == (True, {"worker": 0})
    cell.pods("small", of="ray", pod_set="worker")
    assert [each.reason for each in cell.decisions if isinstance(each, Admit)] == ["Fits", "Fits"]


@pytest.mark.parametrize("is_told_late", [False, True])
def test_who_is_left_behind_by_a_driver_of_no_application_is_deleted(is_told_late: bool) -> None:
    cell = Applications()
    cell.application("spark", pod_set("executor", 3, 0), kind="SparkApplication")
    if not is_told_late:
        cell.pods("driver", gated=False, phase="Running")
    executor = {"owner": "pod-driver", "workload": "SparkApplication/spark", "pod_set": "executor"}
    cell.pods("executor", requests={"cpu": 20_000}, **executor)
    cell.pass_seconds(2)
    cell.pods("driver", gated=False, phase="Succeeded")
    cell.pass_seconds(2)
    assert [each.name for each in cell.decisions if isinstance(each, Delete)] == ["executor"]


def test_a_driver_in_another_namespace_leaves_nobody_behind() -> None:
    cell = Applications("team", "other")
    cell.application("spark", pod_set("executor", 3, 0), kind="SparkApplication")
    executor = {"owner": "pod-driver", "workload": "SparkApplication/spark", "pod_set": "executor"}
    cell.pods("executor", requests={"cpu": 20_000}, **executor)
    cell.pods("driver", tenant="other", gated=False, phase="Succeeded")
    cell.pass_seconds(2)
    assert not [each for each in cell.decisions if isinstance(each, Delete)]


def test_what_waited_before_a_second_pool_was_made_is_counted_where_it_may_go() -> None:
    """It can go to the first pool alone, so those that may go to either leave that to it."""
    cell = OneCell()
    cell.tell(NodeEvent, "n0", node=NodeFacts(allocatable={"cpu": 6000, "gpu": 2}, labels={"pool": "p0"}))
    cell.tell(NodeEvent, "n2", node=NodeFacts(allocatable={"cpu": 6000}, labels={"pool": "p2"}))
    cell.tell(PoolEvent, "p0", pool=PoolFacts(node_selector={"pool": "p0"}))
    for queue in "ab":
        cell.queue(queue)
        cell.namespace(queue)
    gpus: dict[str, Any] = {"requests": {"cpu": 1000, "gpu": 2}}
    cell.pod("holds", "a", **gpus)
    cell.pod("waits", "a", **gpus | {"requests": {"cpu": 5000, "gpu": 2}})
    cell.tell(PoolEvent, "p2", pool=PoolFacts(node_selector={"pool": "p2"}))
    for number in range(4):
        cell.pod(f"b{number}", "b")
    cell.tick()
    found = {each.name: each.pool for each in cell.decisions if isinstance(each, Admit)}
    assert found == {"holds": "p0", **{f"b{number}": "p2" for number in range(4)}}


def test_what_ends_in_no_queue_is_deserved_by_the_others() -> None:
    cell = OneCell()
    cell.pool(cpu=10_000)
    for queue in "ab":
        cell.queue(queue)
        cell.namespace(queue)
        cell.pod(f"{queue}-holds", queue, cpu=1000, gated=False)
        cell.pod(f"{queue}-waits", queue, cpu=6000)
    cell.namespace("old", queue="gone")
    cell.pod("orphan", "old", cpu=4000, gated=False)
    cell.tick()
    deserved = {"cpu": 3000.0}
    assert {queue: cell.figures(queue)["fair_share"] for queue in "ab"} == {"a": deserved, "b": deserved}
    cell.pod("orphan", "old", cpu=4000, gated=False, change="DELETED")
    cell.tick()
    assert sum(cell.figures(queue)["fair_share"]["cpu"] for queue in "ab") == 10_000


def test_executors_of_a_driver_that_has_ended_are_deleted_in_one_order() -> None:
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("a")
    cell.namespace("a")
    spark: dict[str, Any] = {"workload": "SparkDriver/s"}
    cell.pod("driver", "a", pod_set="driver", gated=False, **spark)
    cell.pod("c", "a", pod_set="executor", **spark)
    for name in ("z", "x"):
        cell.pod(name, "a", pod_set="driver", **spark)
    cell.pod("driver", "a", pod_set="driver", change="DELETED", gated=False, **spark)
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Delete)] == ["c", "x", "z"]


def test_a_pod_whose_namespace_is_gone_waits_nowhere() -> None:
    """Its own deletion may be told of later, and its queue may be made anew meanwhile."""
    cell = OneCell()
    cell.queue("a")
    cell.namespace("a")
    cell.pod("x", "a")
    cell.pod("runs", "a", gated=False)
    cell.tell(NamespaceEvent, "a", change="DELETED", managed=True, queue="a")
    cell.tell(QueueEvent, "a", change="DELETED", queue=QueueFacts())
    cell.queue("a")
    cell.pool(cpu=1000)
    cell.tick()
    assert cell.state.validate() == []
    assert not [each for each in cell.decisions if isinstance(each, Admit)]
    assert not cell.figures("a")["usage"]


def test_an_application_that_was_silent_and_comes_again_ends_again() -> None:
    cell = small()
    spark: dict[str, Any] = {"workload": "SparkDriver/s"}
    cell.tick()
    cell.pod("waits", "a", pod_set="executor", cpu=20_000, **spark)
    for phase in ("Running", "Failed"):
        cell.pod("fails", "a", pod_set="executor", gated=False, phase=phase, **spark)
    for _ in range(70):
        cell.tick()
    cell.pod("late", "a", pod_set="driver", cpu=20_000, **spark)
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Delete)] == ["waits", "late"]


def test_a_group_of_pods_that_turns_out_to_be_an_application_claims_nothing_as_a_group() -> None:
    cell = small()
    for name in ("x", "y"):
        cell.pod(name, "a", workload="hand", pod_set="main", group_size=2, cpu=20_000)
    facts = WorkloadFacts(pod_sets=(pod_set("main", 2, 2, cpu=30_000),), created_ms=0)
    cell.tell(WorkloadEvent, "hand", namespace="a", workload=facts)
    cell.tick()
    assert list(cell.state.forest.claims) == ["workload/sim/workload-hand"]


@pytest.mark.parametrize("uids", ["az", "za"])
def test_the_later_of_two_namespaces_of_one_name_is_meant(uids: str) -> None:
    """It was deleted and made anew, and the end of the first is told of last."""
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("a")
    for uid, queue in zip(uids, ("", "a"), strict=True):
        cell.tell(NamespaceEvent, "a", uid=uid, managed=True, queue=queue)
    cell.pod("x", "a")
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["x"]


def test_a_promise_is_given_up_with_a_tick_whatever_else_tells_the_time() -> None:
    cell = small()
    cell.queue("a", preemption="lowerPriority")
    cell.pod("low", "a", cpu=10_000)
    cell.pod("low", "a", cpu=10_000, gated=False)
    cell.pod("high", "a", cpu=10_000, priority=1)
    cell.tick()
    assert [each.claim for each in cell.state.promises] == ["pod/sim/pod-high"]
    cell._now_ms += 120_000
    cell.pod("low", "a", cpu=10_000, gated=False, deleting=True)
    assert len(cell.state.promises) == 1


@pytest.mark.parametrize("uids", ["az", "za"])
def test_the_later_of_two_pools_and_of_two_queues_of_one_name_is_meant(uids: str) -> None:
    cell = OneCell()
    cell.tell(NodeEvent, "n", node=NodeFacts(allocatable={"cpu": 1000}, labels={"pool": "p"}))
    namespaces = NamespaceSelector(names=("a",))
    for uid, limit in zip(uids, ("0", "1"), strict=True):
        labels = {"pool": "p", **({} if limit == "1" else {"old": "yes"})}
        cell.tell(PoolEvent, "p", uid=uid, pool=PoolFacts(node_selector=labels))
        cell.tell(QueueEvent, "a", uid=uid, queue=QueueFacts(limit={"cpu": limit}, namespaces=namespaces))
    cell.namespace("a")
    cell.pod("x", "a")
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, Admit)] == ["x"]


def test_who_is_left_behind_is_deleted_though_another_application_starts_meanwhile() -> None:
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.namespace("a")
    spark: dict[str, Any] = {"workload": "SparkDriver/s", "pod_set": "driver"}
    for name in ("first", "waits"):
        cell.pod(name, "a", **spark)
    cell.pod("first", "a", change="DELETED", **spark)
    starts = WorkloadFacts(kind="RayCluster", pod_sets=(pod_set("worker", 1, 0),), created_ms=0)
    cell.tell(WorkloadEvent, "starts", namespace="a", workload=starts)
    cell.queue("a")
    cell.tick()
    assert [each.name for each in cell.decisions if isinstance(each, AdmitWorkload)] == ["starts"]
    assert [each.name for each in cell.decisions if isinstance(each, Delete)] == ["waits"]
