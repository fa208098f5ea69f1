"""The whole system in one process: fresh seeds, runs that once failed, and defects that checkers must see."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

import pytest
from simulation.system.actions import KEPT, Trace, draw_trace
from simulation.system.checkers import Witness, check_at_rest
from simulation.system.cluster import PODS
from simulation.system.mutations import MUTATIONS
from simulation.system.play import play
from simulation.system.run import System, pod
from simulation.system.shrink import shrink

#: The run's, which the header prints.
SEED: Final = int(os.environ["SLUICE_TEST_SEED"])
FILES: Final = sorted(KEPT.glob("*.json"))
#: Fresh seeds are played for so long, in two tests that may run side by side.
FRESH_S: Final = 40.0
#: So many runs are tried, where the seed of the table does not show it any more.
NEXT_SEEDS: Final = 40


def test_pods_of_two_queues_go_through() -> None:
    system = System(seed=1)
    witness = Witness(system)
    system.furnish()
    system.start()
    for number in range(20):
        path = f"/api/v1/namespaces/{'ab'[number % 2]}/pods/p{number}"
        body = pod(1 + number % 2, runs=5)
        system.loop.call_later(5 + number * 0.3, system.api.make, path, body)
    system.loop.run_until(60)
    check_at_rest(witness)
    assert witness.violations == []
    assert [each["status"]["phase"] for each in system.api.of(PODS)] == ["Succeeded"] * 20


def _fresh_seeds(half: int) -> Iterator[int]:
    """From the seed of this run on, which the header prints."""
    until_s = time.monotonic() + FRESH_S
    number = half
    while time.monotonic() < until_s:
        yield SEED + number
        number += 2


@pytest.mark.parametrize("half", [0, 1])
def test_fresh_seeds(half: int) -> None:
    count = 0
    for seed in _fresh_seeds(half):
        assert play(draw_trace(seed)) == [], f"`make sim SEED={seed}` repeats and shrinks it"
        count += 1
    print(f"{count} fresh seeds, every second from {SEED + half} on")


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_what_once_failed_in_the_whole_system_holds(file: Path) -> None:
    assert play(Trace.load(file.read_text())) == []


def test_a_seed_is_one_run() -> None:
    """Whatever else draws chance in this process."""
    random.seed("one")
    once = _heard(12)
    random.seed("another")
    assert _heard(12) == once


def _heard(seed: int) -> list[tuple[str, bytes]]:
    """All that was ever appended."""
    heard: list[tuple[str, bytes]] = []
    trace = draw_trace(seed)
    play(
        trace,
        lambda system: system.broker.heard.append(
            lambda topic, _, __, each: heard.append((topic, each.value))
        ),
    )
    assert heard
    return heard


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_defect_is_seen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation = MUTATIONS[name]
    mutation.break_it(monkeypatch)
    seen = set()
    for trace in islice(mutation.traces(), NEXT_SEEDS):
        seen = {each.checker for each in play(trace)[:1]}
        if mutation.checker in seen:
            break
    assert seen == {mutation.checker}


def test_a_trace_is_shrunk_to_what_it_fails_by() -> None:
    trace = draw_trace(3)
    least = trace.actions[5]
    shortest = shrink(trace, lambda shorter: least in shorter.actions)
    assert shortest.actions == (least,)
    assert Trace.load(shortest.dump()) == shortest
