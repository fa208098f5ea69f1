"""Growth has waited no longer than its pods, however old its application is; in its queue it stands where that does."""

from __future__ import annotations

from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set


def full(policy: str, **replicas: Any) -> Applications:
    """An application of team `a` that is an hour old, and no room for any pod of it."""
    cell = Applications("a", "b", cpu=2000)
    cell.configure(policy=policy)
    cell.application("ray", pod_set("worker", 9, 0, **replicas), tenant="a", created_ms=0)
    cell.pods("busy", "busy-too", tenant="b")
    return cell


def grow(cell: Applications, *names: str, at_ms: int) -> None:
    cell.pods(*names, of="ray", pod_set="worker", tenant="a", created_ms=at_ms)


@pytest.mark.parametrize("policy", ["fifo", "priority"])
def test_whose_pod_came_first_comes_first(policy: str) -> None:
    cell = full(policy)
    cell.pods("b-first", tenant="b", created_ms=3_600_000)
    grow(cell, "grown", at_ms=3_601_000)
    cell.pods("b-last", tenant="b", created_ms=3_602_000)
    cell.become("Succeeded", "busy")
    assert cell.open == {"busy-too", "b-first"}
    cell.become("Succeeded", "busy-too")
    assert cell.open == {"b-first", "grown"}


@pytest.mark.parametrize("policy", ["fifo", "priority"])
def test_a_replica_is_as_old_as_the_pod_that_made_it_complete(policy: str) -> None:
    cell = full(policy, replica_size=2)
    grow(cell, "first", at_ms=3_600_000)
    cell.pods("b-first", "b-second", tenant="b", created_ms=3_601_000)
    grow(cell, "second", at_ms=3_602_000)
    cell.become("Succeeded", "busy")
    cell.become("Succeeded", "busy-too")
    assert cell.open == {"b-first", "b-second"}


def test_in_its_own_queue_it_stands_where_its_application_does() -> None:
    cell = full("fifo")
    cell.pods("a-first", tenant="a", created_ms=3_600_000)
    grow(cell, "grown", at_ms=3_601_000)
    cell.become("Succeeded", "busy")
    assert cell.open == {"busy-too", "grown"}


def test_it_waits_a_tenure_itself_before_it_goes_before_all_others() -> None:
    cell = full("fifo")
    cell.configure(tenure_ms=60_000, patience_ms=60_000, reclaim_after_ms=1 << 40)
    cell.pods("large", tenant="b", requests={"cpu": 2000}, created_ms=0)
    grow(cell, "grown", at_ms=100_000)
    cell.pass_seconds(130)
    assert [turn.claim for turn in cell.state.turns if turn.cost] == ["pod/sim/pod-large"]
