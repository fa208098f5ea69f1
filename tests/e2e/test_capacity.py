"""Capacity is never exceeded at any moment, seen from the cluster."""

from __future__ import annotations

import random
from typing import Any

import pytest
from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import eventually
from sluice.decisions import Evict
from sluice_local import Stack

pytestmark = pytest.mark.e2e

TENANTS = ("ant", "bee", "cat")
PODS = 150


def test_random_arrivals_ends_and_deletions(
    tenants: Tenants, running: Stack, audit: Audit, rng: random.Random
) -> None:
    capacity_milli = 12_000
    tenants.provide(pool(), *(node(f"n{i}", cpu="4") for i in range(3)))
    tenants.provide(*(queue(name, weight=weight) for name, weight in zip(TENANTS, (1, 2, 3), strict=True)))
    tenants.settle(*TENANTS)
    alive: list[tuple[str, str]] = []
    with observed(running.endpoints, *TENANTS) as seen:
        for number in range(PODS):
            namespace, name = rng.choice(TENANTS), f"p{number}"
            cpu = rng.choice(("500m", "1", "2", "3"))
            obj = pod(name, cpu=cpu, run_for=f"{rng.choice((0, 1, 2))}s")
            assert tenants.submit(namespace, obj).ok
            alive.append((namespace, name))
            if rng.random() < 0.2:
                tenants.delete(*alive.pop(rng.randrange(len(alive))))
        seen.wait_for(lambda s: len(s.finished) >= PODS, seconds=120)
    assert seen.peak["cpu"] <= capacity_milli
    assert seen.peak["cpu"] > capacity_milli * 0.7, (
        "the cluster was never nearly full: the test shows nothing"
    )
    assert not audit.admitted_twice()
    eventually(lambda: not audit.accounts(*TENANTS))


def test_what_a_lost_node_leaves_too_much_is_taken_back_and_nothing_more_admitted(
    tenants: Tenants, running: Stack, audit: Audit
) -> None:
    tenants.provide(pool(), node("n0", cpu="4"), node("n1", cpu="4"), queue("dog"))
    tenants.settle("dog")
    with observed(running.endpoints, "dog") as seen:
        for number in range(8):
            assert tenants.submit("dog", pod(f"p{number}")).ok
        seen.wait_for(lambda s: len(s.held) == 8, seconds=30)
        tenants.api.delete("/api/v1/nodes/n1")
        eventually(lambda: _capacity(tenants) == "4")
        assert tenants.submit("dog", pod("late")).ok
        seen.wait_for(lambda s: len(s.held) == 4, seconds=30)
        eventually(lambda: tenants.queue_status("dog").get("running") == 4)
        assert tenants.phases("dog")["late"] == "gated"
        tenants.delete("dog", next(name for name in tenants.phases("dog") if name != "late"))
        eventually(lambda: tenants.phases("dog").get("late") in ("Pending", "Running"))
    evicted = [d for d in audit.decisions() if isinstance(d, Evict) and d.namespace == "dog"]
    assert [d.reason for d in evicted] == ["Overcommitted"] * 4


def _capacity(tenants: Tenants) -> Any:
    status = tenants.api.get("/apis/sluice.dev/v1alpha1/resourcepools/default").body.get("status", {})
    return status.get("capacity", {}).get("cpu")
