"""Kill -9 of any part at any moment, under load: nothing is lost, nobody is admitted twice, work goes on."""

from __future__ import annotations

import random
import threading
from http.client import HTTPException

import pytest
from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import eventually
from sluice_local import Stack
from sluice_local.services import SERVICES
from sluice_local.stack import Status

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

TENANTS = ("ant", "bee")
PODS = 120
CAPACITY_MILLI = 6_000


@pytest.mark.parametrize("victim", ["watcher", "scheduler", "actuator", "kafka", "redis", "kube-apiserver"])
def test_a_part_is_killed_under_load(
    victim: str, tenants: Tenants, running: Stack, audit: Audit, rng: random.Random
) -> None:
    tenants.provide(pool(), *(node(f"n{i}", cpu="3") for i in range(2)), *map(queue, TENANTS))
    tenants.settle(*TENANTS)
    with observed(running.endpoints, *TENANTS) as seen:
        load = threading.Thread(target=submit_all, args=(tenants, seed := rng.random()))
        print(f"load seed {seed}")
        load.start()
        # Twice, at random moments of the load: once while pods come, once while many wait.
        for part in (rng.uniform(0.05, 0.3), rng.uniform(0.35, 0.6)):
            seen.wait_for(lambda s, part=part: len(s.finished) >= PODS * part, seconds=120)
            running.kill(victim)
            opened = len(seen.opened)
            running.start(victim)
            seen.wait_for(lambda s, opened=opened: len(s.opened) > opened, seconds=60)
        load.join()
        seen.wait_for(lambda s: len(s.finished) >= PODS, seconds=180)
    assert seen.peak["cpu"] <= CAPACITY_MILLI
    assert set(seen.opened.values()) == {1}, "a gate opens once"
    assert not audit.admitted_twice()
    eventually(lambda: not audit.accounts(*TENANTS), seconds=30)


def test_kafka_is_away_for_longer_than_anybody_waits(tenants: Tenants, running: Stack) -> None:
    """Nobody restarts anything: each service says that it can't work, and goes on by itself."""
    tenants.provide(pool(), node("n0"), queue("ant"))
    tenants.settle("ant")
    before = {name: processes(running)[name].pid for name in SERVICES}
    running.kill("kafka")
    assert tenants.submit("ant", pod("meanwhile")).ok
    eventually(
        lambda: not any(processes(running)[name].ready for name in ("watcher", "scheduler")), seconds=120
    )
    eventually(lambda: "starting over" in last_lines(running, "watcher"), seconds=120)
    running.start("kafka")
    eventually(lambda: tenants.phases("ant")["meanwhile"] != "gated", seconds=90)
    eventually(lambda: all(processes(running)[name].ready for name in SERVICES), seconds=60)
    assert {name: processes(running)[name].pid for name in SERVICES} == before


def processes(running: Stack) -> dict[str, Status]:
    return {status.name: status for status in running.status()}


def last_lines(running: Stack, service: str) -> str:
    return "".join(log.read_text()[-4096:] for log in running.logs(service))


def submit_all(tenants: Tenants, seed: float) -> None:
    """All pods are created in the end, whatever dies meanwhile: as any controller would, by trying again."""
    rng = random.Random(seed)
    for number in range(PODS):
        obj = pod(f"p{number}", run_for="0s" if rng.random() < 0.5 else "1s")
        namespace = rng.choice(TENANTS)
        eventually(lambda obj=obj, namespace=namespace: _created(tenants, namespace, obj), seconds=60)


def _created(tenants: Tenants, namespace: str, obj: dict) -> bool:
    try:
        return tenants.submit(namespace, obj).status in (201, 409)
    except (OSError, HTTPException):
        return False
