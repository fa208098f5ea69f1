"""A gang that does not come up in time goes back behind the others, and tries again less and less often."""

from __future__ import annotations

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import AdmitWorkload, EvictWorkload
from sluice.events import Gang, QueueEvent, QueueFacts
from sluice_scheduler.core.applications.requeue import JUDGED_MAX
from sluice_scheduler.explain import explain

MINUTE = 60


def late_gang(cell: Applications, name: str = "ray", deadline_ms: int = 60_000) -> None:
    """Its pods never run, for there are none; whether any comes is not asked before its deadline."""
    cell.application(name, pod_set("worker", 2, 2), gang=Gang(deadline_ms=deadline_ms))


def times_s(cell: Applications, kind: type[AdmitWorkload | EvictWorkload]) -> list[int]:
    return [each.time_ms // 1000 for each in cell.decisions if isinstance(each, kind)]


def test_it_pauses_as_long_as_its_deadline_and_then_twice_as_long() -> None:
    cell = Applications()
    late_gang(cell)
    cell.pass_seconds(16 * MINUTE)
    assert times_s(cell, AdmitWorkload) == [0, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE]
    assert times_s(cell, EvictWorkload) == [1 * MINUTE, 3 * MINUTE, 6 * MINUTE, 11 * MINUTE]


def test_one_that_came_up_is_as_if_it_never_had_failed() -> None:
    cell = Applications()
    late_gang(cell)
    cell.pass_seconds(4 * MINUTE)
    cell.pods("w0", "w1", of="ray", pod_set="worker")
    cell.pass_seconds(2 * MINUTE)
    assert cell.open == {"w0", "w1"}
    [account] = cell.state.workloads
    assert account.late_starts == 0


def test_it_says_why_it_pauses() -> None:
    cell = Applications()
    late_gang(cell)
    cell.pass_seconds(MINUTE + 2)
    shown = cell.shown("ray")
    assert (shown.phase, shown.why) == (
        "Pending",
        "its minimum did not run within its deadline after its admission",
    )
    [line] = explain(cell.state, "team/ray")
    assert "it pauses, and is in line again then" in line


@pytest.mark.parametrize("deadline_ms", [0, 1000])
def test_with_one_tick_no_more_are_judged_than_it_can_bear(deadline_ms: int) -> None:
    cell = Applications(cpu=10_000_000)
    for number in range(JUDGED_MAX + 20):
        late_gang(cell, f"ray-{number}", deadline_ms)
    lots = []
    for _ in range(120):
        before = len(times_s(cell, EvictWorkload))
        cell.pass_seconds(1)
        lots.append(len(times_s(cell, EvictWorkload)) - before)
    assert max(lots) <= JUDGED_MAX
    assert sum(lots) < 8 * (JUDGED_MAX + 20), "each of them once in a while"


def test_it_goes_back_though_its_queue_is_gone() -> None:
    cell = Applications()
    late_gang(cell)
    cell.tell(QueueEvent, "team", change="DELETED", queue=QueueFacts())
    cell.pass_seconds(MINUTE + 2)
    assert times_s(cell, EvictWorkload) == [MINUTE]
    assert cell.state.forest.root.usage == {}
