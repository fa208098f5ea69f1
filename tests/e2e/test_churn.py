"""Fifty applications grow, shrink, fail and finish at random, for minutes, while parts of the product are
killed.
"""

from __future__ import annotations

import random

import pytest
from audit import Audit
from churn import TENANTS, life, nothing_is_left
from cluster import Tenants, node, observed, pool, queue
from sluice_local import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

LASTS_S = 180
CAPACITY_MILLI = 12_000
VICTIMS = ("scheduler", "watcher", "actuator", "kafka", "redis")


def test_fifty_applications_and_everything_that_can_happen_to_them(
    tenants: Tenants, running: Stack, audit: Audit, rng: random.Random
) -> None:
    tenants.provide(pool(), *(node(f"n{i}", cpu="4") for i in range(3)), *map(queue, TENANTS))
    tenants.settle(*TENANTS)
    print(f"churn seed {(seed := rng.random())}")
    endpoints = running.endpoints
    with observed(endpoints, *TENANTS) as seen, life(running, tenants, seed, LASTS_S) as lived:
        for victim in 2 * rng.sample(VICTIMS, len(VICTIMS)):
            opened = len(seen.opened)
            seen.wait_for(lambda s, o=opened: len(s.opened) > o + 10 or not lived.is_alive(), seconds=LASTS_S)
            running.kill(victim)
            running.start(victim)
        lived.end()
        seen.wait_for(lambda s: not s.held, seconds=60)
        print(f"{len(seen.opened)} pods were opened, at most {seen.peak['cpu']}m of cpu held")
        assert seen.peak["cpu"] <= CAPACITY_MILLI
    nothing_is_left(tenants, audit)
    audit.prove(running)
