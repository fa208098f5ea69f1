"""Fixtures for all tests: real servers, and the seed that a random test ran with."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest
from hypothesis import settings
from sluice.decisions import Decision
from sluice.events import Event
from sluice_local import Stack, forget_given_endpoints
from sluice_scheduler.simulator.cell import SimulatedCell

settings.register_profile("thorough", max_examples=80, deadline=None, print_blob=True)
settings.register_profile("quick", settings.get_profile("thorough"), max_examples=20)
settings.load_profile("thorough")


def pytest_configure() -> None:
    """A developer's shell may name a cluster that means something to somebody."""
    forget_given_endpoints()


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
