"""What a status says is corrected, however the records that change it were batched."""

from __future__ import annotations

from typing import Any

from applications_of_one_cell import Applications, pod_set
from sluice.events import PodSetFacts, TickEvent, WorkloadEvent, WorkloadFacts
from sluice_scheduler.simulator.cell import CLUSTER


def test_a_queue_whose_application_ends_in_one_batch_with_a_tick_is_shown_empty() -> None:
    """Seen in `make demo`: an idle queue showed 1 cpu in use until something else happened to it."""
    cell = Applications()
    main: PodSetFacts = pod_set("main", 2, 2)
    cell.application("app", main)
    assert cell.figures("team")["usage"] == {"default/cpu": 2000}, "reserved"

    ended = WorkloadFacts(pod_sets=(main,), created_ms=0, kind="RayCluster", suspendable=True, finished=True)
    now: dict[str, Any] = {"time_ms": cell.state.cell.time_ms + 1000, "cluster": CLUSTER}
    event = WorkloadEvent(
        **now,
        change="MODIFIED",
        uid="workload-app",
        name="app",
        namespace="team",
        resource_version=10**6,
        workload=ended,
    )
    cell.cell.feed([event, TickEvent(**now)])
    cell._now_ms = now["time_ms"]

    cell.pass_seconds(5)
    assert cell.figures("team")["usage"] == {}
