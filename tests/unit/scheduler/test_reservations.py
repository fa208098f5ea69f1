"""An admission that waits for victims to leave holds its reservation, and not for ever."""

from __future__ import annotations

from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
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


@pytest.mark.parametrize("after", [1, 3])
def test_a_gang_for_which_room_is_kept_may_have_other_parts_by_now(after: int) -> None:
    """Each part is bound to a pool of its own."""

    def parts(count: int) -> list[Any]:
        return [pod_set(f"s{n}", 1, 1, node_selector={"pool": f"p{n}"}) for n in range(count)]

    cell = Applications("a", "b", cpu=1000)
    cell.configure(patience_ms=1_000, tenure_ms=1_000)
    cell.queue("a", reclaim={"enabled": False})
    for number in range(3):
        cell.pool(f"p{number}", cpu=1000)
        cell.pods(f"holds-{number}", tenant="a", node_selector={"pool": f"p{number}"})
    cell.application("gang", *parts(2), tenant="b")
    cell.pass_seconds(2)
    [turn] = [turn for turn in cell.state.turns if turn.cost]
    assert turn.pools == ("p0", "p1")
    cell.application("gang", *parts(after), tenant="b")
    cell.pass_seconds(3)
    cell.delete_pods("holds-0", "holds-1", "holds-2")
    cell.pass_seconds(1)
    assert cell.is_released("gang")
