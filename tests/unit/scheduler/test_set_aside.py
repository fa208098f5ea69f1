"""What is set aside keeps what it holds, keeps nobody else from anything, and says so until another core comes."""

from __future__ import annotations

from typing import Any

import one_cell
import pytest
from applications_of_one_cell import Applications, pod_set
from fakes.faults import GuardedCell
from one_cell import OneCell
from sluice.applications import BY_HAND
from sluice.decisions import Admit, Evict, Notice, ReportWorkload, Resync
from sluice.events import PoolEvent, PoolFacts, SetAsideEvent
from sluice_scheduler.core.applications import evict
from sluice_scheduler.core.reports import report, shown
from sluice_scheduler.core.reports.explain import waiting, why
from sluice_scheduler.core.stored.entities import Report
from sluice_scheduler.simulator.cell import CLUSTER


def set_aside(cell: OneCell, what: str) -> None:
    event = SetAsideEvent(offset=1, what=what, reason="ValueError: odd", time_ms=0, cluster=CLUSTER)
    cell.decisions += cell.cell.feed([event])


def admitted(cell: OneCell) -> list[str]:
    return [decision.name for decision in cell.decisions if isinstance(decision, Admit)]


def condition_of(cell: OneCell, about: str) -> str:
    """What the condition SetAside says; empty if there is none."""
    cell.tick()
    found = cell.state.reports.get(f"{Report.kind}/{about}")
    assert found is not None
    return next((c.message for c in found.conditions if c.type == "SetAside" and c.status == "True"), "")


def one_queue(cpu: int = 1000) -> OneCell:
    cell = OneCell()
    cell.pool(cpu=cpu)
    cell.queue("team")
    cell.namespace("team")
    return cell


def test_a_pod_that_waits_makes_way() -> None:
    cell = one_queue()
    cell.pod("running", "team")
    cell.pod("odd", "team", priority=10)
    cell.pod("other", "team")
    set_aside(cell, "pod/sim/pod-odd")
    cell.pod("running", "team", gated=False, phase="Succeeded")
    cell.tick()
    assert admitted(cell) == ["running", "other"]


def test_its_queue_an_event_and_explain_say_so_until_another_core_comes() -> None:
    cell = one_queue()
    cell.pod("running", "team")
    cell.pod("odd", "team")
    set_aside(cell, "pod/sim/pod-odd")
    told = condition_of(cell, "queue/team")
    assert told.startswith("set aside: team/odd; work on it raised ValueError: odd")
    assert "create it anew" in told
    [notice] = [decision for decision in cell.decisions if isinstance(decision, Notice)]
    assert (notice.about, notice.name, notice.reason) == ("pod", "odd", "SetAside")
    assert why(cell.state, "pod/sim/pod-odd").reason == "SetAside"
    assert waiting(cell.state, "team") == ["pod/sim/pod-odd"]
    assert cell.metric("sluice_set_aside_things") == 1
    cell.configure(core_version=cell.state.config.core_version + 1)
    assert any(isinstance(decision, Resync) for decision in cell.decisions)
    assert not condition_of(cell, "queue/team")
    assert why(cell.state, "pod/sim/pod-odd").reason == "NoRoom"
    assert cell.metric("sluice_set_aside_things") == 0


@pytest.mark.parametrize("ends", [{"change": "DELETED"}, {"phase": "Succeeded"}])
def test_what_a_pod_held_is_free_when_it_ends(ends: dict[str, object]) -> None:
    cell = one_queue()
    cell.pod("odd", "team")
    cell.pod("odd", "team", gated=False)
    cell.pod("other", "team")
    set_aside(cell, "pod/sim/pod-odd")
    cell.pod("odd", "team", gated=False, cpu=5)  # no news of it counts
    assert admitted(cell) == ["odd"]
    cell.pod("odd", "team", gated=False, **ends)  # type: ignore[arg-type]
    cell.tick()
    assert admitted(cell) == ["odd", "other"]


def test_an_application_keeps_no_room_for_pods_that_have_not_come() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.application("odd", pod_set("workers", 4, 4))
    cell.pass_seconds(1)
    [odd] = cell.state.workloads
    cell.pod("other", "other", cpu=4000)
    cell.tick()
    assert "other" not in admitted(cell)
    set_aside(cell, odd.key)
    cell.tick()
    assert "other" in admitted(cell)
    told = [decision for decision in cell.decisions if isinstance(decision, ReportWorkload)][-1]
    [condition] = [each for each in told.conditions if each.type == "SetAside"]
    assert condition.status == "True"
    assert "ValueError: odd" in condition.message
    assert "team/odd" in condition_of(cell, "queue/team")


def test_no_other_place_is_kept_for_a_pod_that_is_stuck() -> None:
    cell = Applications("team")
    cell.application("whole", pod_set("workers", 2, 2))
    cell.pods("a", "b", of="whole", pod_set="workers")
    cell.pass_seconds(1)
    assert cell.held() == 2000
    for _ in range(2):
        set_aside(cell, "pod/sim/pod-a")
    cell.pass_seconds(1)
    assert cell.held() == 2000


def test_nothing_of_a_queue_is_admitted() -> None:
    cell = one_queue()
    set_aside(cell, "queue/sim/queue-team")
    cell.pod("late", "team")
    cell.tick()
    assert not admitted(cell)
    assert "ValueError: odd" in condition_of(cell, "queue/team")
    cell.configure(core_version=cell.state.config.core_version + 1)
    cell.tick()
    assert admitted(cell) == ["late"]


def test_pods_go_to_the_pool_that_has_their_node_once_theirs_is_stuck() -> None:
    cell = one_queue()
    cell.tell(PoolEvent, "second", pool=PoolFacts(node_selector={"pool": "default"}))
    cell.pod("x", "team", gated=False, phase="Running", node="node-default")
    assert {each.pool for each in cell.state.pods} == {"default"}
    for _ in range(2):
        set_aside(cell, "resourcepool/sim/resourcepool-default")
    cell.tick()
    assert {each.pool for each in cell.state.pods} == {"second"}


def test_what_raises_while_it_is_told_of_is_told_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing is stopped by it."""
    monkeypatch.setattr(one_cell, "SimulatedCell", GuardedCell)
    cell = Applications("team", "other")
    cell.application("odd", pod_set("workers", 2, 2))
    assert condition_of(cell, "queue/team") == ""
    before = cell.figures("team")
    raise_about(monkeypatch, report, "queue_figures", "team")
    raise_about(monkeypatch, shown, "_report", "odd")
    cell.application("odd", pod_set("workers", 3, 3))
    cell.pods("a", "b", of="odd", pod_set="workers")
    cell.pods("c", tenant="other")
    cell.pass_seconds(2)
    assert cell.open == {"a", "b", "c"}
    assert "it shows what it showed before" in condition_of(cell, "queue/team")
    assert cell.figures("team") == before
    assert "telling its status raised ValueError: odd" in cell.shown("odd").why
    assert cell.figures("other")["running"] == 1
    cell.pass_seconds(5)
    assert isinstance(cell.cell, GuardedCell)
    assert len(cell.cell.aside) == 2


def test_the_victim_that_raises_is_blamed_and_not_the_claim_that_it_leaves_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So another one leaves."""
    monkeypatch.setattr(one_cell, "SimulatedCell", GuardedCell)
    evict_pod = evict.evict_pod
    raised: list[str] = []

    def raising(state: Any, pod: Any, *more: Any, **named: Any) -> None:
        if not raised or pod.name in raised:
            raised.append(pod.name)
            raise ValueError("odd")
        evict_pod(state, pod, *more, **named)

    monkeypatch.setattr(evict, "evict_pod", raising)
    cell = one_cell.contended()
    cell.tick()
    assert isinstance(cell.cell, GuardedCell)
    assert [event.what for event in cell.cell.aside] == [f"pod/sim/pod-{raised[0]}"]
    [evicted] = [decision.name for decision in cell.decisions if isinstance(decision, Evict)]
    assert evicted != raised[0]


def raise_about(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, about: str) -> None:
    function = getattr(module, name)

    def raising(state: Any, value: Any, *more: Any) -> Any:
        if value.name == about:
            raise ValueError("odd")
        return function(state, value, *more)

    monkeypatch.setattr(module, name, raising)


def test_a_workload_that_is_written_for_a_group_that_is_set_aside_says_so() -> None:
    cell = Applications(cpu=1000)
    cell.pods("x", workload="group", group_size=2)
    set_aside(cell, "group/sim/team/group")
    cell.application("group", pod_set("main", 1, 1), kind=BY_HAND)
    assert "odd" in condition_of(cell, "workload/sim/workload-group")
    for key in ("workload/sim/workload-group", "pod/sim/pod-x"):
        assert why(cell.state, key).reason == "SetAside"
    cell.configure(core_version=cell.state.config.core_version + 1)
    assert not condition_of(cell, "workload/sim/workload-group")


def test_an_application_that_has_lost_its_pods_stays_set_aside_while_its_object_is_there() -> None:
    cell = Applications(cpu=1000)
    cell.pods("x", workload="group", group_size=2)
    set_aside(cell, "group/sim/team/group")
    cell.application("group", pod_set("main", 1, 1), kind=BY_HAND)
    cell.delete_pods("x")
    assert why(cell.state, "workload/sim/workload-group").reason == "SetAside"
    cell.delete_application("group")
    assert not len(cell.state.asides)
