"""Nothing is kept of a queue that was deleted."""

from __future__ import annotations

from applications_of_one_cell import Applications
from sluice.events import QueueEvent, QueueFacts
from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.state.units import in_victims_order


def used() -> Applications:
    cell = Applications("team", "other")
    cell.configure(policy="usage-drf")
    cell.pods("p1", "p2", "p3")
    cell.pods("o1", tenant="other")
    cell.pass_seconds(5)
    cell.become("Succeeded", "p1")
    cell.become("Succeeded", "o1")
    leaf = cell.state.forest.leaves["team"]
    unit = next(in_victims_order(cell.state, leaf))
    evict(cell.state, unit, reason="Test", sentence="it goes")
    cell.pass_seconds(1)
    return cell


def kept_of(cell: Applications) -> set[str]:
    tables = (cell.state.histories, cell.state.drains, cell.state.lost_work)
    return {each.key for table in tables for each in table if each.queue == "team"}


def test_its_past_its_drain_and_its_losses_go_with_it() -> None:
    cell = used()
    assert kept_of(cell) == {"history/team", "drain/team", "lostwork/team"}
    cell.tell(QueueEvent, "team", change="DELETED", queue=QueueFacts())
    assert kept_of(cell) == set()
    assert len(cell.state.histories) == 1, "the other's stay"
    cell.become("Succeeded", *cell.open)
    cell.pass_seconds(5)
    assert kept_of(cell) == set(), "and its last pods leave nothing either"
