"""What a running cell knows is what one that is taken over derives: after edits of what stands already, too."""

from __future__ import annotations

from sluice.decisions import Admit, Evict
from sluice.events import Gang
from twin_cells import OneCellTwice


def small() -> OneCellTwice:
    """One pool with 10 cpu, and queue `a` with its namespace."""
    cell = OneCellTwice()
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
