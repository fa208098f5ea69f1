"""What could not be admitted pauses: as long as its account says, whatever else happens meanwhile."""

from __future__ import annotations

from dataclasses import replace

import pytest
from one_cell import OneCell, contended
from sluice.decisions import Admit, AdmitWorkload, Evict
from sluice.events import PodSetFacts, WorkloadEvent, WorkloadFacts
from sluice_scheduler.core.intake.outcome import PAUSE_MS
from sluice_scheduler.explain import explain
from sluice_scheduler.simulator.cell import outcome

PAUSE_S = PAUSE_MS["Rejected"] // 1000


@pytest.fixture
def cell() -> OneCell:
    """A workload of two, whose second pod, named `late`, could not be admitted."""
    cell = OneCell()
    cell.pool(cpu=8000)
    cell.queue("a")
    cell.namespace("a")
    pod_sets = (PodSetFacts(name="main", count=2, min_count=2, requests={"cpu": 1000}),)
    cell.tell(WorkloadEvent, "w", namespace="a", workload=WorkloadFacts(pod_sets=pod_sets, created_ms=0))
    for name in ("prompt", "late"):
        cell.pod(name, "a", workload="w", pod_set="main")
    for name in ("plain", "other"):
        cell.pod(name, "a")
    admitted = {each.name: each for each in cell.decisions if isinstance(each, Admit | AdmitWorkload)}
    assert set(admitted) == {"w", "prompt", "late", "plain", "other"}
    for name in ("late", "plain"):
        refused = replace(outcome(admitted[name], 0), result="Rejected")
        cell.decisions += cell.cell.feed([refused])
    cell.decisions.clear()
    return cell


def names(cell: OneCell) -> list[str]:
    return [each.name for each in cell.decisions if isinstance(each, Admit)]


def test_it_is_offered_again_when_its_pause_is_over(cell: OneCell) -> None:
    for _ in range(PAUSE_S - 1):
        cell.tick()
    assert names(cell) == []
    cell.tick()
    assert names(cell) == ["late", "plain"]


def test_meanwhile_its_queue_tells_of_it_and_where_the_refusal_stands() -> None:
    cell = OneCell()
    cell.pool(cpu=8000)
    cell.queue("a")
    cell.namespace("a")
    cell.tick()
    cell.pod("plain", "a")
    [admitted] = [each for each in cell.decisions if isinstance(each, Admit)]
    cell.cell.feed([replace(outcome(admitted, cell._now_ms), result="Rejected")])
    counted, told = explain(cell.state, "a")
    assert counted == "queue a: nothing waits in line, 1 application or pod pauses"
    assert told == (
        "pod a/plain, about in 30 s (00:00:31Z): Retry: its admission could not be written, or was refused: it is "
        "tried again; `sluice audit tail` shows the answer"
    )


@pytest.mark.parametrize("edited", [False, True], ids=["another worker", "a queue edited"])
def test_whatever_happens_meanwhile_does_not_end_it(cell: OneCell, edited: bool) -> None:
    if edited:
        cell.queue("a", weight=2)
    else:
        cell.cell.restart()
        cell.queue("b")
    assert names(cell) == []
    assert cell.state.forest.root.usage == {("sim", "default", "cpu"): 3000}, "what is reserved, once"


def test_a_worker_that_takes_over_at_its_very_end_waits_for_the_tick_too(cell: OneCell) -> None:
    for _ in range(PAUSE_S - 1):
        cell.tick()
    cell._now_ms += 1000
    cell.cell.restart()
    cell.pod("new", "a")
    assert names(cell) == ["new"]
    cell.tick()
    assert names(cell) == ["new", "late", "plain"]


def test_who_could_not_be_evicted_is_no_victim_for_a_while() -> None:
    """Nor is he asked to leave over and over: others are, and then he again."""
    cell = contended()

    def refused() -> str:
        """Who was to leave last, and then could not."""
        [*_, last] = [each for each in cell.decisions if isinstance(each, Evict)]
        cell.decisions += cell.cell.feed([replace(outcome(last, cell._now_ms), result="Rejected")])
        cell.tick()
        return last.name

    assert [refused(), refused()] == ["a2", "a1"]
    evictions = [each.name for each in cell.decisions if isinstance(each, Evict)]
    assert evictions == ["a2", "a1"], "nobody else is there to leave"
    for _ in range(PAUSE_S):
        cell.tick()
    assert refused() == "a2"
