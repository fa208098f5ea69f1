"""What a bound that moves a little each second costs those who wait behind bounds, counted."""

from __future__ import annotations

from operator import attrgetter
from random import Random
from typing import Any

import pytest
from one_cell import OneCell
from sluice.events import UnmanagedEvent
from sluice_scheduler.core.fairness.fits import Fits
from sluice_scheduler.core.fairness.ground import Ground
from sluice_scheduler.simulator.cell import CLUSTER
from test_pieces_of_work import counted


def behind(limit: str, *, least: int = 6010, **facts: Any) -> OneCell:
    """Pods of 50 sizes, all larger than their queue's limit, and two pools with room for any of them."""
    cell = OneCell()
    cell.pool("east", cpu=10_000)
    cell.pool("west", cpu=10_000)
    cell.queue("a", limit={"cpu": limit})
    cell.namespace("a")
    for number in range(50):
        cell.pod(f"w{number:02}", "a", cpu=least + number, **facts)
    unmanaged(cell, 200)
    cell.tick()
    return cell


def unmanaged(cell: OneCell, cpu: int, pool: str = "east") -> None:
    """So much of a pool is others'. The pass follows."""
    cell.cell.feed([UnmanagedEvent(time_ms=0, cluster=CLUSTER, pool=pool, pods=1, requests={"cpu": cpu})])


@pytest.mark.parametrize("limit", ["6", "60%"])
def test_who_waits_behind_a_limit_sleeps_while_other_bounds_move(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit in percent moves along, and wakes only whom it has become large enough for."""
    cell = behind(limit)
    tried = counted(monkeypatch, Fits, "open_spot")
    for cpu in (80, 120, 60):
        unmanaged(cell, cpu)
    assert tried == []


def test_a_limit_in_percent_that_has_grown_wakes_whom_it_is_large_enough_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cell = behind("60%", least=5910, node_selector={"pool": "east"})
    tried = counted(monkeypatch, Fits, "open_spot")
    unmanaged(cell, 140)  # 60% of 9,860 are 5,916
    assert [pod.name for pod in cell.state.pods if pod.holds] == ["w00"]
    assert len(tried) < 20


def test_who_could_never_fit_is_not_looked_at_while_bounds_move(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = behind("6")
    looked = counted(monkeypatch, Ground, "rooms_for")
    for cpu in (80, 120, 60):
        unmanaged(cell, cpu)
        cell.tick()
    assert looked == []


def test_just_those_are_tried_who_could_fit_if_nobody_held_anything() -> None:
    """However the bounds move, and whoever was told before that it can't."""
    chance = Random(5)
    cell = behind("60%", least=5700)
    for number in range(50):
        cell.pod(f"x{number:02}", "a", cpu=5700 + 13 * number, node_selector={"pool": "west"})
    forest = cell.state.forest
    leaf, met = forest.leaves["a"], set()
    for _ in range(60):
        for pool in ("east", "west"):
            unmanaged(cell, chance.randrange(600), pool)
        if chance.random() < 0.1:
            cell.queue("a", limit={"cpu": chance.choice(["60%", "58%", "5800m"])})
        tried = {claim.shape for claim in forest.firsts(leaf)}
        assert tried == {
            shape
            for shape in leaf.line.shapes
            if forest.place_within(leaf, shape, attrgetter("bound.amount")) is not None
        }
        met.add(len(tried))
    assert len(met) > 10
