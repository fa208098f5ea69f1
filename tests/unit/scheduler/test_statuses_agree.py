"""A DynamicWorkload's status never contradicts itself: less granted than desired is Growing, and says why."""

from __future__ import annotations

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import ReportWorkload


def agrees(report: ReportWorkload) -> bool:
    short = any(each.admitted < each.desired for each in report.pod_sets)
    granted = next(each for each in report.conditions if each.type == "Granted")
    if report.phase == "Running":
        return not short and granted.status == "True" and not report.why
    return report.phase != "Growing" or (short and granted.status == "False" and bool(report.why))


def test_one_whose_growth_was_not_created_yet_is_growing() -> None:
    """An elastic job of three starts with two; its operator takes its time with the third."""
    cell = Applications()
    cell.application("elastic", pod_set("worker", 3, 2, 4), kind="PyTorchJob")
    cell.pods("w0", "w1", of="elastic", pod_set="worker")
    report = cell.shown("elastic")
    assert [(each.admitted, each.desired) for each in report.pod_sets] == [(2, 3)]
    assert report.phase == "Growing"
    assert report.why == "the others have not been created: each stands in line from its creation on"
    granted = next(each for each in report.conditions if each.type == "Granted")
    assert (granted.status, granted.message) == ("False", f"granted 2 of 3 worker; {report.why}")
    cell.pods("w2", of="elastic", pod_set="worker")
    report = cell.shown("elastic")
    assert (report.phase, report.why) == ("Running", "")


def test_what_room_is_kept_for_is_granted() -> None:
    cell = Applications()
    cell.application("gang", pod_set("main", 3, 3, 3), kind="Job")
    report = cell.shown("gang")
    assert [(each.admitted, each.running) for each in report.pod_sets] == [(3, 0)]
    assert (report.phase, report.why) == ("Running", "")


@pytest.mark.parametrize("kind", ["Job", "RayCluster", "DynamicWorkload", "SparkApplication"])
def test_whatever_happens_phase_figures_and_conditions_agree(kind: str) -> None:
    cell = Applications("team", "poor", cpu=4000)
    cell.application("app", pod_set("main", 5, 2, 8), kind=kind, suspendable=kind != "DynamicWorkload")
    cell.pass_seconds(1)
    cell.pods("a", "b", "c", of="app", pod_set="main")
    cell.pass_seconds(1)
    cell.pods("d", "e", "f", of="app", pod_set="main")
    cell.pass_seconds(1)
    cell.pods("p1", "p2", tenant="poor")
    cell.pass_seconds(3)
    for phase in ("Failed", "Succeeded"):
        cell.become(phase, min(cell.open - {"p1", "p2"}))
        cell.pass_seconds(1)
    cell.application("app", pod_set("main", 2, 2, 8))
    cell.pass_seconds(1)
    cell.application("app", finished=True)
    cell.pass_seconds(2)
    reports = [each for each in cell.decisions if isinstance(each, ReportWorkload)]
    assert len({each.phase for each in reports}) > 2
    assert [each for each in reports if not agrees(each)] == []
