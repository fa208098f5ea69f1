"""An admission that waits for victims to leave holds its reservation, and not for ever."""

from __future__ import annotations

from one_cell import contended
from sluice.decisions import Evict


def test_a_reservation_is_given_up_when_its_victims_do_not_leave_in_time() -> None:
    cell = contended()
    [evicted] = [decision for decision in cell.decisions if isinstance(decision, Evict)]
    assert evicted.queue == "a"
    [promise] = cell.state.promises
    held_s = (promise.until_ms - cell.state.cell.time_ms) // 1000
    assert held_s == 60, "a minute after its victims should have left"
    for _ in range(held_s - 1):
        cell.tick()
    assert [each.seq for each in cell.state.promises] == [promise.seq]
    for _ in range(2):
        cell.tick()
    assert promise.seq not in [each.seq for each in cell.state.promises]
    assert [each.key for each in cell.state.forest.leaves["b"].line] or len(cell.state.promises)
