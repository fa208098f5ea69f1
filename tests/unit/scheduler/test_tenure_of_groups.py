"""A group of pods stands above what its queue deserves for a tenure, whoever joins it meanwhile."""

from __future__ import annotations

from typing import Any

from one_cell import OneCell
from sluice.decisions import Admit, Evict

TENURE_MS = 60_000
OPEN: dict[str, Any] = {"gated": False, "phase": "Running", "node": "node-default"}


def test_a_pod_that_asks_for_nothing_makes_no_group_young_again() -> None:
    cell = OneCell()
    cell.configure(tenure_ms=TENURE_MS)
    cell.pool(cpu=4000)
    for queue in "ab":
        cell.queue(queue)
        cell.namespace(queue)
    group: dict[str, Any] = {"workload": "group", "group_size": 4}
    for gated in (True, False):
        for number in range(4):
            cell.pod(f"b{number}", "b", **group, **({} if gated else OPEN))
    for number in range(4):
        cell.pod(f"a{number}", "a")
    group["group_size"] = 9
    for number in range(4):
        cell.pod(f"b{number}", "b", **group, **OPEN)
    cell._now_ms += TENURE_MS - 5_000
    cell.pod("late", "b", cpu=0, **group)
    cell.pod("late", "b", cpu=0, **group, **OPEN)
    cell.tick()
    assert "late" in [each.name for each in cell.decisions if isinstance(each, Admit)]
    assert not [each for each in cell.decisions if isinstance(each, Evict)]
    cell._now_ms += 10_000
    cell.tick()
    evicted = {each.name for each in cell.decisions if isinstance(each, Evict)}
    assert {f"b{number}" for number in range(4)} <= evicted
