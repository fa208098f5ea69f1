"""Demand and fair share, as a Queue's status shows them: keyed alike, and true to limits and guarantees."""

from __future__ import annotations

from typing import Any

import pytest
from one_cell import OneCell


@pytest.fixture
def cell() -> OneCell:
    return OneCell()


def bound(cell: OneCell, name: str, *, pods: int = 0, cpu: int = 1000, **spec: Any) -> None:
    """A queue with a namespace of its name, and so many gated pods."""
    cell.queue(name, **spec)
    cell.namespace(name)
    for number in range(pods):
        cell.pod(f"{name}-{number}", name, cpu=cpu)


def shown(cell: OneCell, queue: str) -> tuple[Any, Any, Any]:
    figures = cell.figures(queue)
    return figures["usage"], figures["demand"], figures["fair_share"]


def test_demand_is_usage_and_what_waits_and_a_fair_share_keeps_to_the_limit(cell: OneCell) -> None:
    cell.pool(cpu=4000)
    bound(cell, "team", pods=4, cpu=500, limit={"cpu": "1.5"})
    assert shown(cell, "team") == ({"default/cpu": 1500}, {"default/cpu": 2000}, {"default/cpu": 1500})


def test_what_a_limit_keeps_one_queue_from_is_shared_by_the_others(cell: OneCell) -> None:
    cell.pool(cpu=6000)
    bound(cell, "small", pods=9, limit={"cpu": "1"})
    bound(cell, "b", pods=9, weight=3)
    bound(cell, "c", pods=9, weight=2)
    assert {q: shown(cell, q)[2]["default/cpu"] for q in ("small", "b", "c")} == {
        "small": 1000,
        "b": 3000,
        "c": 2000,
    }


def test_a_guarantee_goes_before_weights_as_far_as_it_is_asked_for(cell: OneCell) -> None:
    cell.pool(cpu=6000)
    bound(cell, "promised", pods=9, guaranteed={"cpu": "4"})
    bound(cell, "modest", pods=1, guaranteed={"cpu": "4"})
    bound(cell, "heavy", pods=9, weight=9)
    found = {q: shown(cell, q)[2]["default/cpu"] for q in ("promised", "modest", "heavy")}
    assert found == {"promised": 4000, "modest": 1000, "heavy": 1000}


def test_an_inner_queue_shows_what_stands_below_it_and_its_own(cell: OneCell) -> None:
    cell.pool(cpu=8000)
    stays = {"enabled": False}
    bound(cell, "root", pods=4, limit={"cpu": "6"}, reclaim=stays)
    bound(cell, "leaf", pods=4, parent="root", limit={"cpu": "2"}, reclaim=stays)
    bound(cell, "other", pods=4)
    assert shown(cell, "leaf")[1:] == ({"default/cpu": 4000}, {"default/cpu": 2000})
    assert shown(cell, "root")[1:] == ({"default/cpu": 8000}, {"default/cpu": 4000})


def test_what_several_pools_could_take_is_asked_of_each_once(cell: OneCell) -> None:
    cell.pool("a", cpu=2000)
    cell.pool("b", cpu=2000)
    bound(cell, "team", pods=6, limit={"cpu": "3"})
    usage, demand, fair = shown(cell, "team")
    assert sum(usage.values()) == 3000
    assert fair == {"a/cpu": 2000, "b/cpu": 1000}, "a limit without a pool holds for the sum"
    assert sum(demand.values()) == 6000
    assert all(demand[key] >= fair[key] for key in fair)


def test_what_no_pool_can_take_has_no_pool(cell: OneCell) -> None:
    cell.pool(cpu=2000)
    bound(cell, "team")
    cell.pod("nowhere", "team", node_selector={"disk": "fast"})
    assert shown(cell, "team") == ({}, {"cpu": 1000}, {})


def test_a_pod_that_can_wait_in_no_queue_is_nobodys_demand(cell: OneCell) -> None:
    cell.pool(cpu=2000)
    bound(cell, "team")
    cell.pod("astray", "team", queue="elsewhere")
    assert shown(cell, "team") == ({}, {}, {})
    assert cell.figures("team")["pending"] == 1
