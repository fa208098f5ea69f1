"""Who may use room that is kept for another: who says that it ends before that one can start."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice.decisions import Evict
from sluice_scheduler.core.stored.entities import Turn


def kept() -> OneCell:
    """Of four cpu two are held by pods that end at 20 s and 30 s, one by a service, and one is free: it is kept for
    big, which needs three."""
    cell = OneCell()
    cell.pool(cpu=4000)
    for name, spec in {"a": {"reservation": {"patienceSeconds": 2}}, "b": {}}.items():
        cell.queue(name, reclaim={"enabled": False}, **spec)
        cell.namespace(name)
    cell.configure(policy="fifo")
    for name, ends_in_ms in {"first": 20_000, "second": 30_000, "service": 0}.items():
        run(cell, name, ends_in_ms=ends_in_ms)
    cell.pod("big", "a", cpu=3000)
    for _ in range(4):
        cell.tick()
    return cell


def run(cell: OneCell, name: str, **facts: Any) -> None:
    cell.pod(name, "b", **facts)
    cell.pod(name, "b", gated=False, **facts)


def turn(cell: OneCell) -> Turn:
    [found] = cell.state.turns
    assert isinstance(found, Turn)
    return found


def is_in(cell: OneCell, name: str) -> bool:
    return next(bool(pod.holds) for pod in cell.state.pods if pod.name == name)


def evicted(cell: OneCell) -> list[str]:
    return [each.name for each in cell.decisions if isinstance(each, Evict)]


def test_when_it_starts_is_known_from_those_that_say() -> None:
    assert turn(kept()).start_ms == 30_000


@pytest.mark.parametrize(("ends_in_ms", "comes"), [(10_000, True), (60_000, False), (0, False)])
def test_who_ends_before_that_is_let_in(ends_in_ms: int, comes: bool) -> None:
    cell = kept()
    cell.pod("more", "b", ends_in_ms=ends_in_ms)
    cell.tick()
    assert is_in(cell, "more") is comes


def test_where_nobody_says_nobody_is_let_in() -> None:
    cell = OneCell()
    cell.pool(cpu=2000)
    for name in ("a", "b"):
        cell.queue(name, reservation={"patienceSeconds": 1}, reclaim={"enabled": False})
        cell.namespace(name)
    cell.configure(policy="fifo")
    run(cell, "service")
    cell.pod("big", "a", cpu=2000)
    for _ in range(4):
        cell.tick()
    cell.pod("brief", "b", ends_in_ms=1000)
    cell.tick()
    assert (turn(cell).start_ms, is_in(cell, "brief")) == (0, False)


def test_nobodys_word_puts_it_off() -> None:
    """A pod whose deadline was raised says another end now: the start stays what it was."""
    cell = kept()
    cell.pod("second", "b", gated=False, ends_in_ms=90_000)
    cell.tick()
    assert turn(cell).start_ms == 30_000


def test_it_starts_earlier_if_others_end_earlier() -> None:
    cell = kept()
    cell.pod("second", "b", gated=False, ends_in_ms=25_000)
    cell.tick()
    assert turn(cell).start_ms == 25_000


def test_who_outlives_its_word_goes_once_nobody_else_is_waited_for() -> None:
    cell = kept()
    cell.pod("liar", "b", ends_in_ms=5_000)
    cell.tick()
    assert is_in(cell, "liar")
    cell.pod("liar", "b", gated=False, ends_in_ms=5_000)
    for _ in range(8):
        cell.tick()
    assert evicted(cell) == []  # big waits for others too
    for name in ("first", "second"):
        cell.pod(name, "b", gated=False, phase="Succeeded")
    cell.tick()
    assert evicted(cell) == ["liar"]
    cell.pod("next", "b", ends_in_ms=1_000)
    cell.tick()
    assert not is_in(cell, "next")  # nobody comes into what it leaves


def test_another_worker_knows_who_was_let_in() -> None:
    cell = kept()
    cell.pod("liar", "b", ends_in_ms=5_000)
    cell.tick()
    before = list(cell.state.endings), cell.state.endings.let_in
    cell.cell.restart()
    assert before[1]
    assert (list(cell.state.endings), cell.state.endings.let_in) == before
