"""The last released version is replaced under load, one service after the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from audit import Audit
from cluster import Observer, Tenants, node, observed, pod, pool, queue
from cluster_api import Api, eventually
from releases import programs_of_the_last
from sluice_local import Stack
from sluice_local.services import SERVICES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]

#: Nobody waits longer for a gate than while one scheduler takes over from another.
PAUSE_S = 10
EVERY_S = 0.5


class Stream:
    """A pod now and then, for each of which there is room; how long each one's gate took."""

    def __init__(self, tenants: Tenants, seen: Observer) -> None:
        self._tenants = tenants
        self._seen = seen
        self._stop = threading.Event()
        self.created_s: list[float] = []
        self.longest_s = 0.0

    @contextmanager
    def flowing(self) -> Iterator[None]:
        thread = threading.Thread(target=self._flow)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def wait_for_more(self, pods: int) -> None:
        """So many more come, and all that came until then have their gates open."""
        wanted = len(self.created_s) + pods
        eventually(lambda: len(self.created_s) >= wanted, seconds=60)
        self._seen.wait_for(lambda s: len(s.opened) >= wanted, seconds=60)

    def _flow(self) -> None:
        while not self._stop.wait(EVERY_S):
            assert self._tenants.submit("ant", pod(f"p{len(self.created_s)}", cpu="100m", run_for="1s")).ok
            self.created_s.append(time.monotonic())
            waiting_s = self.created_s[len(self._seen.opened) :]
            self.longest_s = max(self.longest_s, *(time.monotonic() - each for each in waiting_s), 0.0)


def test_the_last_release_is_replaced_under_load(own_stack: Stack, tmp_path: Path) -> None:
    """Scheduler and actuator together, for what they tell each other is new; then the watcher."""
    old = programs_of_the_last(tmp_path)
    tenants, audit = Tenants(Api(own_stack.endpoints)), Audit(own_stack)
    for service in SERVICES:
        own_stack.start(service, instance=f"old-{service}", programs=old)
    tenants.provide(pool(), node("n0", cpu="100"), queue("ant"))
    tenants.settle("ant")
    with observed(own_stack.endpoints, "ant") as seen:
        stream = Stream(tenants, seen)
        with stream.flowing():
            stream.wait_for_more(10)
            for replaced in (("actuator", "scheduler"), ("watcher",)):
                for service in replaced:
                    own_stack.stop(f"old-{service}")
                own_stack.services_up(replaced)
                stream.wait_for_more(10)
    print(f"{len(stream.created_s)} pods came; the longest wait was {stream.longest_s:.1f} s")
    assert stream.longest_s < PAUSE_S
    assert set(seen.opened.values()) == {1}, "a gate opens once"
    eventually(lambda: not audit.accounts("ant"), seconds=30)
