"""What rooms that are kept cost, counted: with each pass, and not with each admission or each pair of queues."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell
from sluice_scheduler.core.passes import schedule
from sluice_scheduler.core.passes.guarantees import Guarantees
from test_pieces_of_work import counted


def behind_limits(queues: int) -> OneCell:
    """Each queue is near its limit, and room is kept behind that for a claim of it."""
    cell = OneCell()
    cell.configure(patience_ms=1_000)
    cell.pool(cpu=10_000_000)
    for name in [f"q{number}" for number in range(queues)]:
        cell.queue(name, limit={"cpu": "4"})
        cell.namespace(name)
        for at, cpu in enumerate((3000, 2000, 3000)):
            cell.pod(f"{name}-{at}", name, cpu=cpu)
    cell.queue("z")
    cell.namespace("z")
    for _ in range(4):
        cell.tick()
    assert len([turn for turn in cell.state.turns if turn.cost]) == queues
    return cell


def test_kept_rooms_are_looked_at_once_however_many_are_admitted(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = behind_limits(5)
    cell.queue("z", limit={"cpu": "0"})
    for number in range(50):
        cell.pod(f"z-{number}", "z")
    module: Any = schedule
    looked = counted(monkeypatch, module, "reserved_that_fits")
    cell.queue("z")
    assert len([pod for pod in cell.state.pods if pod.holds and pod.namespace == "z"]) == 50
    assert len(looked) <= 3


def full_beside_a_guarantee(queues: int) -> OneCell:
    cell = OneCell()
    cell.configure(reclaim_after_ms=1 << 40)
    cell.pool(cpu=1000 * queues)
    for name in [f"q{number}" for number in range(queues)]:
        cell.queue(name, **({} if name != "q0" else {"guaranteed": {"cpu": "1"}}))
        cell.namespace(name)
        cell.pod(f"{name}-holds", name)
        cell.pod(f"{name}-waits", name)
    return cell


def test_what_is_guaranteed_to_others_is_added_up_once_and_not_for_each_queue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked = {}
    for queues in (20, 40):
        cell = full_beside_a_guarantee(queues)
        with monkeypatch.context() as patch:
            found = counted(patch, Guarantees, "_held_in")
            cell.tick()
        looked[queues] = len(found)
    assert 20 <= looked[20] <= 200
    assert looked[40] <= 2.5 * looked[20]
