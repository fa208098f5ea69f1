"""Two schedulers: the second takes over within seconds, and a fenced one changes nothing."""

from __future__ import annotations

import os
import signal
import time

import pytest
from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import eventually
from redis import Redis
from sluice_local import Stack

pytestmark = pytest.mark.e2e

#: From the death of an owner to the first gate that its successor opens.
TAKEOVER_S = 10


def pid_of(stack: Stack, name: str) -> int:
    pid = next(status.pid for status in stack.status() if status.name == name)
    assert pid is not None
    return pid


def test_a_second_scheduler_takes_over(tenants: Tenants, running: Stack, audit: Audit) -> None:
    tenants.provide(pool(), node("n0", cpu="100"), queue("ant"))
    tenants.settle("ant")
    running.start("scheduler", instance="scheduler-2")
    try:
        with observed(running.endpoints, "ant") as seen:
            assert tenants.submit("ant", pod("before")).ok
            seen.wait_for(lambda s: len(s.opened) == 1, seconds=30)
            for survivor in (
                "scheduler-2",
                "scheduler",
            ):  # whichever owns the cell, one of the two kills hits it
                dead = "scheduler" if survivor == "scheduler-2" else "scheduler-2"
                opened = len(seen.opened)
                running.kill(dead)
                died = time.monotonic()
                assert tenants.submit("ant", pod(f"after-{dead}")).ok
                seen.wait_for(lambda s, opened=opened: len(s.opened) > opened, seconds=60)
                took = time.monotonic() - died
                print(f"{dead} died; the next gate opened {took:.1f} s later")
                assert took < TAKEOVER_S
                running.start("scheduler", instance=dead)
    finally:
        running.stop("scheduler-2")
    assert not audit.admitted_twice()


def test_a_fenced_scheduler_changes_nothing(tenants: Tenants, running: Stack, audit: Audit) -> None:
    """An owner that was asleep while another took over wakes up, and finds that it may not commit."""
    tenants.provide(pool(), node("n0", cpu="100"), queue("bee"))
    tenants.settle("bee")
    sleeper = pid_of(running, "scheduler")
    with observed(running.endpoints, "bee") as seen:
        assert tenants.submit("bee", pod("first")).ok
        seen.wait_for(lambda s: len(s.opened) == 1, seconds=30)
        before = epoch_held(audit)
        os.kill(sleeper, signal.SIGSTOP)
        try:
            running.start("scheduler", instance="scheduler-2")
            for number in range(20):
                assert tenants.submit("bee", pod(f"p{number}")).ok
            seen.wait_for(lambda s: len(s.opened) == 21, seconds=60)
            assert epoch_held(audit) > before
        finally:
            os.kill(sleeper, signal.SIGCONT)
        for number in range(20, 30):
            assert tenants.submit("bee", pod(f"p{number}")).ok
        seen.wait_for(lambda s: len(s.opened) == 31, seconds=60)
    running.stop("scheduler-2")
    # `decisions` fails on holes, and on a seq that was published with two contents.
    audit.decisions()
    assert not audit.admitted_twice()
    eventually(lambda: len(audit.accounts("bee")) == 31, seconds=30)


def epoch_held(audit: Audit) -> tuple[int, int]:
    held = Redis.from_url(audit.settings.redis).hget("sluice:{default}:meta", "epoch")
    generation, _, version = held.decode().partition("-")  # type: ignore[union-attr]
    return int(generation), int(version)
