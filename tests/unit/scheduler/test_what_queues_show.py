"""What Queues show of the applications that wait in them, and of the work that was taken from them."""

from __future__ import annotations

from typing import Any

from applications_of_one_cell import Applications, pod_set
from one_cell import shown_metric
from sluice.decisions import ReportQueue
from sluice.values import Epoch, split_kind
from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.state.units import in_victims_order
from sluice_scheduler.ledger import Commit
from sluice_scheduler.metrics import forget, observe_commit

CELL = "shown"


def shown(cell: Applications, queue: str = "team") -> ReportQueue:
    cell.pass_seconds(2)
    return next(
        each for each in reversed(cell.decisions) if isinstance(each, ReportQueue) and each.name == queue
    )


def test_applications_that_wait_are_counted_beside_pods_and_in_the_queues_above() -> None:
    cell = Applications("top", "team", cpu=3000)
    cell.queue("team", parent="top")
    for number in range(5):
        cell.application(f"job-{number}", pod_set("main", 2, 2, 2), kind="Job")
    own = shown(cell)
    assert (own.pending, own.running) == (0, 0), "they have no pods yet"
    assert (own.pending_workloads, own.admitted_workloads) == (4, 1)
    above = shown(cell, "top")
    assert (above.pending_workloads, above.admitted_workloads) == (4, 1)
    assert above.sentence == "queue top has 0 running and 0 pending, and 4 applications wait"
    cell.application("job-4", finished=True)
    cell.delete_application("job-3")
    assert shown(cell).pending_workloads == 2


def test_what_another_application_is_charged_for_counts_once() -> None:
    cell = Applications()
    cell.application("ray", pod_set("head", 1, 1, 1), kind="RayJob")
    cell.application("cluster", pod_set("head", 1, 1, 1), kind="RayCluster", controller="workload-ray")
    assert shown(cell).admitted_workloads == 1


def test_lost_work_is_shown_in_all_and_for_the_last_hour() -> None:
    cell = Applications("top", "team")
    cell.queue("team", parent="top")
    cell.pods("p1", "p2")
    cell.pass_seconds(30)
    leaf = cell.state.forest.leaves["team"]
    for unit in list(in_victims_order(cell.state, leaf)):
        evict(cell.state, unit, reason="Reclaimed", sentence="it goes")
    now = shown(cell)
    assert now.lost_work_ms == now.lost_work_hour_ms == 60_000
    assert shown(cell, "top").lost_work_ms == 60_000
    cell.pass_seconds(61 * 60)
    later = shown(cell)
    assert (later.lost_work_ms, later.lost_work_hour_ms) == (60_000, 0), "though nothing else happened"
    [lost] = cell.state.lost_work
    assert lost.recent == {}


def test_metrics_tell_the_same_and_whether_a_pass_is_pending() -> None:
    cell = Applications(cpu=1000)
    for number in range(3):
        cell.application(f"job-{number}", pod_set("main", 1, 1, 1), kind="Job")
    cell.pass_seconds(2)
    observe(cell)
    named = {"cell": CELL, "queue": "team"}
    assert shown_metric("sluice_waiting_workloads", **named) == 2
    assert shown_metric("sluice_waiting_pods", **named) == 0, "they have none yet"
    assert shown_metric("sluice_admitted_workloads", **named) == 1
    assert shown_metric("sluice_lost_work_seconds", **named) == 0
    assert shown_metric("sluice_scheduler_pass_pending", cell=CELL) == 0
    cell.state.leave_unfinished("serve")
    cell.delete_application("job-2")
    cell.state.take_changes()
    cell.state.leave_unfinished("serve")
    observe(cell, dict.fromkeys(["report/queue/team"]))
    for gone in ("sluice_waiting_workloads", "sluice_waiting_pods"):
        assert shown_metric(gone, **named) is None, "the queue is gone"
    assert shown_metric("sluice_scheduler_pass_pending", cell=CELL) == 1
    forget(CELL)
    assert shown_metric("sluice_scheduler_pass_pending", cell=CELL) is None


def observe(cell: Applications, changes: dict[str, Any] | None = None) -> None:
    commit = Commit(
        epoch=Epoch(1, 1),
        expected_offset=0,
        next_offset=1,
        expected_seq=1,
        next_seq=1,
        published=1,
        changes=changes or {},
        decisions=[],
    )
    observe_commit(CELL, commit, cell.state)


def test_what_is_asked_for_and_deserved_is_told_by_supply() -> None:
    assert split_kind("cpu") == ("", "cpu")
    assert split_kind("nvidia.com/gpu") == ("", "nvidia.com/gpu")
    assert split_kind("a100/nvidia.com/gpu") == ("a100", "nvidia.com/gpu")
    assert split_kind("spot/cpu") == ("spot", "cpu")
