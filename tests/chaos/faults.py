"""What goes wrong: each fault lasts as long as it is entered, and is mended when it is left."""

from __future__ import annotations

import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from cluster_api import eventually
from sluice_local import Stack
from sluice_local.process import Daemon

from chaos.proxy import Proxy
from chaos.redises import Redises

SERVICES = ("watcher", "scheduler", "scheduler-2", "actuator")
PROXIED = ("kafka", "redis", "kube-apiserver")
#: Longer than any session of Kafka's that the services have.
_LONG_S = (12.0, 45.0)
_SHORT_S = (2.0, 20.0)


@dataclass
class World:
    """What there is to be harmed."""

    stack: Stack
    redises: Redises
    proxies: dict[str, Proxy]
    rng: random.Random

    def daemon(self, name: str) -> Daemon:
        return self.redises.first.daemon if name == "redis" else Daemon(self.stack.directory / name)

    def pid(self, name: str) -> int:
        pid = self.daemon(name).pid()
        assert pid is not None, f"{name} does not run"
        return pid

    def revive(self) -> list[str]:
        """Start services anew that have ended by themselves, as Kubernetes does: one that was fenced off, for one."""
        ended = [name for name in SERVICES if self.daemon(name).pid() is None]
        for name in ended:
            self.start(name)
        return ended

    def go_on(self, name: str) -> None:
        """It stands still no longer. Simulated kubelets may have lost the API server for good then: they begin anew."""
        os.kill(self.pid(name), signal.SIGCONT)
        if name == "kube-apiserver":
            self.renew_nodes()

    def renew_nodes(self) -> None:
        self.daemon("kwok").kill()
        self.stack.start("kwok")

    def start(self, name: str) -> None:
        if name == "redis":
            self.redises.first.start()
        elif name.startswith("scheduler"):
            self.stack.start("scheduler", instance=name)
        else:
            self.stack.start(name)
        if name == "kube-apiserver":
            self.renew_nodes()


#: It may tell what came of it.
Fault = Callable[[World], AbstractContextManager[str | None]]


def _pause(world: World, span_s: tuple[float, float]) -> None:
    time.sleep(world.rng.uniform(*span_s))  # how long a fault lasts is all there is to it


@contextmanager
def killed(world: World, name: str) -> Iterator[None]:
    world.daemon(name).kill()
    try:
        yield
    finally:
        world.start(name)


@contextmanager
def restarted(world: World, name: str) -> Iterator[None]:
    """As an upgrade does it."""
    world.daemon(name).stop(grace_s=30)
    try:
        yield
    finally:
        world.start(name)


@contextmanager
def stopped(world: World, name: str, span_s: tuple[float, float]) -> Iterator[None]:
    """It neither works nor ends, and others may do its work meanwhile."""
    os.kill(world.pid(name), signal.SIGSTOP)
    try:
        _pause(world, span_s)
        yield
    finally:
        world.go_on(name)


@contextmanager
def dropped(world: World, name: str) -> Iterator[None]:
    for _ in range(world.rng.randint(1, 5)):
        world.proxies[name].drop()
        _pause(world, (0.0, 1.0))
    yield


@contextmanager
def half_open(world: World, name: str) -> Iterator[None]:
    """Nobody is told that nothing comes through."""
    world.proxies[name].stall()
    try:
        _pause(world, _SHORT_S)
        yield
    finally:
        world.proxies[name].go_on()


@contextmanager
def disk_full(world: World, name: str) -> Iterator[None]:
    """No file of it may grow any more: it has room again when it is started anew."""
    daemon, pid = world.daemon(name), world.pid(name)
    files = (each for each in (daemon.directory / "data").rglob("*") if each.is_file())
    largest = max((_size(each) for each in files if _grows(each)), default=0)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
    try:
        eventually(lambda: daemon.pid() != pid, seconds=60)
        yield
    finally:
        daemon.kill()
        world.start(name)


def _grows(file: Path) -> bool:
    """Kafka makes its indexes as large as they may become."""
    return file.suffix in (".log", ".aof")


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def last_writes_lost(world: World) -> Iterator[str]:
    """A replica of Redis takes over that has not got the last writes."""
    before = world.redises.written()
    had, has = world.redises.fail_over(is_lost=lambda: world.redises.written() > before + 2_000)
    yield (
        f"the ledger fell from record {had.record} back to {has.record}, "
        f"and from decision {had.decision} to {has.decision}"
    )


@contextmanager
def emptied(world: World) -> Iterator[None]:
    world.redises.empty()
    yield


@contextmanager
def tokens_ended(world: World) -> Iterator[None]:
    """Whoever has a token of before is nobody, until it reads its file again."""
    world.stack.renew_accounts()
    yield


def faults() -> dict[str, Fault]:
    """By name, each as often as the next."""
    found: dict[str, Fault] = {}
    for name in (*SERVICES, "kafka", "redis", "kube-apiserver", "etcd"):
        found[f"kill -9 {name}"] = partial(killed, name=name)
    for name in (*SERVICES, "kube-apiserver"):
        found[f"restart {name}"] = partial(restarted, name=name)
    for name in SERVICES:
        found[f"stop {name} for longer than a session"] = partial(stopped, name=name, span_s=_LONG_S)
    for name in ("kafka", "redis", "kube-apiserver"):
        found[f"stop {name}"] = partial(stopped, name=name, span_s=_SHORT_S)
    for name in PROXIED:
        found[f"reset connections to {name}"] = partial(dropped, name=name)
        found[f"half-open connections to {name}"] = partial(half_open, name=name)
    for name in ("kafka", "redis"):
        found[f"disk of {name} full"] = partial(disk_full, name=name)
    found["redis fails over without its last writes"] = last_writes_lost
    found["redis comes back empty"] = emptied
    found["tokens end"] = tokens_ended
    return found
