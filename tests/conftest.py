"""Fixtures for all tests: real servers, and the seed that a random test ran with."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bug_reports import made_since
from hypothesis import settings
from sluice.decisions import Decision
from sluice.events import Event
from sluice_local import Stack, forget_given_endpoints
from sluice_local.kubernetes import ApiServer
from sluice_local.node.real import RealNode
from sluice_local.process import Daemon
from sluice_local.state import State
from sluice_scheduler.simulator.cell import SimulatedCell
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("thorough", max_examples=80, deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=20)
settings.load_profile("thorough")


BEGAN = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    """A developer's shell may name a cluster that means something to somebody. Workers share one seed."""
    forget_given_endpoints()
    seed_of_this_run()
    config.stash[BEGAN] = time.time()


class SharingServers(LoadScopeScheduling):
    """Tests that share servers run in one worker; of those on whole stacks a file at a time. `make test` has more
    workers than cores, for such tests wait most of their time."""

    def _split_scope(self, nodeid: str) -> str:
        folder = nodeid.split("/")[1]
        if folder == "e2e":
            return nodeid.split("::", maxsplit=1)[0]
        return folder if folder == "integration" else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> SharingServers:
    return SharingServers(config, log)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers of workers that were interrupted: these end at once, and tidy nothing up."""
    if not hasattr(config, "workerinput"):
        temporary: Path = config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        for record in temporary.glob("popen-gw*/**/process.json"):
            Daemon(record.parent).kill()
        for memory in temporary.glob("popen-gw*/**/stack.json"):
            state = State(memory.parent)
            RealNode(state, ApiServer(state), print).down()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for folder in made_since(config.stash[BEGAN]):
        terminalreporter.write_line(f"bug report: {folder.relative_to(config.rootpath)}")


def pytest_report_header() -> str:
    return f"seed: {seed_of_this_run()} (SLUICE_TEST_SEED repeats it)"


def seed_of_this_run() -> int:
    """One seed for the whole run, printed in the header and given again through the environment."""
    return int(os.environ.setdefault("SLUICE_TEST_SEED", str(random.SystemRandom().randrange(2**31))))


@pytest.fixture
def rng() -> random.Random:
    return random.Random(seed_of_this_run())


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Kafka, Redis and an API server, shared by tests that leave them as they found them."""
    import containers

    with containers.servers() as given, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        without = ("kube-controller-manager", "kube-scheduler", "kwok")
        stack = Stack("shared", without=without, given=given, say=print)
        stack.up()
        yield stack
        stack.down(purge=True)


@pytest.fixture(scope="module")
def own_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A whole stack of a module's own, to kill parts of."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("own", say=print)
        stack.up()
        yield stack
        stack.down(purge=True)


@pytest.fixture(scope="session")
def machine() -> None:
    """One that can have a real node; elsewhere the test is skipped, and says why."""
    import real_node

    real_node.required()


@pytest.fixture(scope="session", autouse=True)
def validated() -> Iterator[None]:
    """Whatever a test has a simulated cell do: what is derived stays what the accounts say."""
    feed = SimulatedCell.feed

    def feed_and_validate(cell: SimulatedCell, events: list[Event], *, more: bool = False) -> list[Decision]:
        decided = feed(cell, events, more=more)
        assert cell.state.validate() == []
        return decided

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", feed_and_validate)
        yield
