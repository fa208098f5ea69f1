"""Beginning anew where an answer does not come, or comes from somebody whose clock is wrong."""

from __future__ import annotations

from one_cell import OneCell
from sluice.decisions import Resync
from sluice_scheduler.simulator.cell import outcome


def requests(cell: OneCell) -> list[Resync]:
    return [each for each in cell.decisions if isinstance(each, Resync)]


def test_what_nobody_answers_is_asked_for_again() -> None:
    """No watcher ran for longer than the log is kept, so nobody knows of the first request."""

    def listing() -> None:
        cell.pool(cpu=1000)
        cell.queue("team")
        cell.namespace("team")
        cell.pod("p", "team")

    cell = OneCell()
    first = cell.begin_anew()
    for _ in range(119):
        cell.tick()
    assert requests(cell) == []
    cell.tick()
    [again] = requests(cell)
    assert again.sentence == "nothing was listed for 2m: list everything again"
    cell.answer(first, listing)
    assert cell.sentences("Fits") == []
    cell.answer(again, listing)
    assert len(cell.sentences("Fits")) == 1
    for _ in range(300):
        cell.tick()
    assert requests(cell) == [again]


def test_a_list_that_has_begun_is_given_longer() -> None:
    """Its first kind may be as large as any."""

    def listing() -> None:
        for _ in range(130):
            cell.tick()

    cell = OneCell()
    cell.configure(kinds=("queue", "pod"))
    cell.answer(cell.begin_anew(), listing)
    for _ in range(1799 - 130):
        cell.tick()
    assert requests(cell) == []
    cell.tick()
    assert len(requests(cell)) == 1


def test_an_actuators_clock_does_not_move_the_cells_time() -> None:
    cell = OneCell()
    cell.pool(cpu=1000)
    cell.queue("team")
    cell.namespace("team")
    cell.pod("p", "team")
    cell.tick()
    [admitted] = [each for each in cell.decisions if each.reason == "Fits"]
    now_ms = cell.state.now_ms
    cell.cell.feed([outcome(admitted, now_ms + 3_600_000)])
    assert cell.state.now_ms == now_ms
