"""Faults on real servers under load, for as long as one says: `make chaos MINUTES=20`.

Fifty applications a few minutes grow, shrink, fail and end (tests/e2e/churn.py), while one fault after another is
brought about. At each fault a pod comes to a queue of its own for which there is room: how long after the fault's end
its gate is open is the recovery. What the API server shows is checked all the time: capacity is never passed, no gate
opens twice; in the end nothing is left, and the log proves all decisions.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from asked import some_minutes
from audit import Audit
from bug_reports import REPORTS
from churn import TENANTS, life, nothing_is_left
from cluster import Observer, Tenants, node, observed, pod, pool, queue
from cluster_api import Api, eventually
from sluice_local import Stack, forget_given_endpoints, paths
from sluice_local.state import State

from chaos.faults import PROXIED, World, faults
from chaos.proxy import Proxy
from chaos.redises import Redises
from chaos.report import Report

CAPACITY_MILLI = 12_000
PROBE = "probe"
#: Nobody waits longer than this for a pod that fits, whatever has happened.
RECOVERS_WITHIN_S = 180
_QUIET_S = (0.5, 8.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="make chaos")
    parser.add_argument("--minutes", type=some_minutes, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**31))
    parser.add_argument("--fault", help="only faults whose name begins like this")
    arguments = parser.parse_args()
    chosen = [each for each in faults() if each.startswith(arguments.fault or "")]
    if not chosen:
        there = "".join(f"\n  {each}" for each in faults())
        parser.error(f"no fault begins with {arguments.fault}; there are:{there}")
    print(
        f"seed {arguments.seed}: the same faults in the same order, though not at the same moments",
        flush=True,
    )
    forget_given_endpoints()
    report = Report()
    with a_world(random.Random(arguments.seed)) as world:
        try:
            play(world, chosen, arguments.minutes * 60, report)
        except BaseException as error:
            folder = REPORTS / f"chaos-{arguments.seed}"
            Audit(world.stack).export(world.stack, folder)
            (folder / "error.txt").write_text(repr(error))
            print(f"{report.table()}\n\nbug report: {folder}", flush=True)
            raise
    print(
        f"{report.table()}\n\nnothing was lost, nothing was admitted twice, and the log proves it", flush=True
    )
    return 0


@contextmanager
def a_world(rng: random.Random) -> Iterator[World]:
    """A stack of its own, with two schedulers, whose services reach every server through a proxy."""
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="sluice-chaos-"))
        ends.enter_context(patch.dict("os.environ", {"XDG_STATE_HOME": folder}))
        proxies = {name: ends.enter_context(Proxy()) for name in PROXIED}
        redises = Redises(State(paths.stacks() / "chaos"), proxies["redis"])
        ends.callback(redises.end)
        redises.start()
        ports = {name: proxy.port for name, proxy in proxies.items() if name != "redis"}
        stack = Stack("chaos", given={"SLUICE_REDIS": redises.url}, proxies=ports, say=print)
        ends.callback(stack.down, purge=True)
        for name in ports:
            proxies[name].target = stack.port_behind(name)
        stack.up(services=True)
        stack.start("scheduler", instance="scheduler-2")
        yield World(stack, redises, proxies, rng)


def play(world: World, chosen: list[str], lasts_s: float, report: Report) -> None:
    stack = world.stack
    tenants, audit = Tenants(Api(stack.endpoints)), Audit(stack)
    for_all, for_probe = {"for": "all"}, {"for": PROBE}
    tenants.provide(pool("default", **for_all), pool(PROBE, **for_probe), queue(PROBE))
    nothing = {PROBE: {"limit": {"cpu": "0"}}}
    tenants.provide(*(queue(name, pools=nothing) for name in TENANTS))
    tenants.provide(*(node(f"n{i}", labels=for_all) for i in range(3)), node("probes", labels=for_probe))
    tenants.settle(*TENANTS, PROBE)
    until = time.monotonic() + lasts_s
    with (
        observed(stack.endpoints, *TENANTS) as seen,
        observed(stack.endpoints, PROBE) as probes,
        life(stack, tenants, world.rng.random(), lasts_s) as lived,
    ):
        run = Run(world, tenants, seen, probes, report, time.monotonic())
        while time.monotonic() < until:
            run.suffer(world.rng.choice(chosen))
            lived.goes_on()
            time.sleep(world.rng.uniform(*_QUIET_S))  # faults come when they come
        lived.end()
        seen.wait_for(lambda s: not s.held, seconds=120)
    for each in (seen, probes):
        assert set(each.opened.values()) <= {1}, "a gate opens once"
    nothing_is_left(tenants, audit)
    assert not audit.admitted_twice()
    audit.prove(stack)


@dataclass
class Run:
    world: World
    tenants: Tenants
    seen: Observer
    probes: Observer
    report: Report
    began_s: float

    def suffer(self, fault: str) -> None:
        for name in self.world.revive():
            print(f"{name} had ended by itself, and was started anew", flush=True)
        opened, probed = len(self.seen.opened), len(self.probes.opened)
        at_s = time.monotonic() - self.began_s
        with faults()[fault](self.world) as told:
            pass
        began = time.monotonic()
        _submit(self.tenants, f"p{probed}-{self.world.rng.randrange(10**6)}")
        self.probes.wait_for(lambda s: len(s.opened) > probed, seconds=RECOVERS_WITHIN_S)
        took, meanwhile = time.monotonic() - began, len(self.seen.opened) - opened
        held = self.seen.peak.get("cpu", 0)
        assert held <= CAPACITY_MILLI, f"{held}m of {CAPACITY_MILLI}m cpu were held"
        print(self.report.note(fault, took, meanwhile, at_s=at_s, told=told), flush=True)


def _submit(tenants: Tenants, name: str) -> None:
    """As soon as the API server takes it."""
    obj = pod(name, cpu="100m", memory="1Mi", run_for="0s")
    obj["spec"]["nodeSelector"] = {"for": PROBE}

    def created() -> bool:
        try:
            return tenants.submit(PROBE, obj).status in (201, 409)
        except OSError:
            return False

    eventually(created, seconds=RECOVERS_WITHIN_S)


if __name__ == "__main__":
    sys.exit(main())
