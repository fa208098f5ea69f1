"""Which units stand within a guarantee, and which would if others went."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from one_cell import OneCell
from sluice_scheduler.core.fairness.claims import Cost, Dim
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.passes.covered import Covered

CPU: Dim = ("c", "p", "cpu")
GPU: Dim = ("c", "p", "gpu")


class OnePod:
    """What is asked of a unit."""

    is_whole = False

    def __init__(self, key: str, cost: Cost) -> None:
        self.key = key
        self.pods = [self]
        self.cost = cost


def covered(guarantees: list[Bound], units: list[OnePod]) -> Covered:
    found: Any = units
    return Covered(guarantees, found)


def within(guarantees: list[Bound], units: list[OnePod]) -> list[int]:
    """Slow and obvious: how much of each is held by those that fit, the first first."""
    left = [bound.amount for bound in guarantees]
    for unit in units:
        parts = [bound.part(unit.cost) for bound in guarantees]
        if all(part <= rest for part, rest in zip(parts, left, strict=True)):
            left = [rest - part for part, rest in zip(parts, left, strict=True)]
    return [bound.amount - rest for bound, rest in zip(guarantees, left, strict=True)]


def test_what_is_lost_is_what_working_it_out_anew_says() -> None:
    seed = int(os.environ.get("SLUICE_TEST_SEED") or random.SystemRandom().randrange(2**31))
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(300):
        guarantees = [Bound((CPU,), chance.randint(0, 12), "cpu"), Bound((GPU,), chance.randint(0, 4), "gpu")]
        units = [
            OnePod(str(number), ((CPU, chance.randint(0, 4)), (GPU, chance.randint(0, 2))))
            for number in range(chance.randint(1, 12))
        ]
        found = covered(guarantees, units)
        while units:
            gone = chance.sample(units, chance.randint(1, len(units)))
            keys = [unit.key for unit in gone]
            rest = [unit for unit in units if unit not in gone]
            held, then = within(guarantees, units), within(guarantees, rest)
            steps, lost = found.lost_without(keys)
            assert lost == tuple(was - will_be for was, will_be in zip(held, then, strict=True))
            assert steps or held == then
            if chance.random() < 0.5:
                found.remove(keys)
                units = rest
            elif chance.random() < 0.2:
                break


@pytest.mark.parametrize("gone", [0, 500, 999])
def test_who_steps_in_is_found_without_going_through_all(gone: int) -> None:
    """The next that was admitted takes the place, and for those behind it nothing changes."""
    units = [OnePod(str(number), ((CPU, 1),)) for number in range(10_000)]
    steps, lost = covered([Bound((CPU,), 1000, "cpu")], units).lost_without([str(gone)])
    assert (steps, lost) == (1001 - gone, (0,))


def test_a_guarantee_is_honoured_where_another_has_many_pods() -> None:
    """All of top's guarantee is held by k0, which was there first; k1 steps in for what is taken from k0, whose pods
    have always just saved their work, and so are the first that are tried."""
    cell = OneCell()
    cell.pool(cpu=300_000)
    cell.queue("top", guaranteed={"cpu": "150"})
    cell.queue("k0", parent="top")
    cell.queue("k1", parent="top", weight=10)
    cell.queue("b", guaranteed={"cpu": "1"})
    for queue in ("k0", "k1", "b"):
        cell.namespace(queue)
    for queue in ("k0", "k1"):
        for number in range(150):
            cell.pod(f"{queue}-{number}", queue)
            cell.pod(f"{queue}-{number}", queue, gated=False)
        cell.tick()
    saved_ms = cell.state.now_ms
    for number in range(150):
        cell.pod(f"k0-{number}", "k0", gated=False, saved_ms=saved_ms)
    cell.tick()
    cell.pod("b-0", "b")
    cell.tick()
    assert [pod.queue[0] for pod in cell.state.pods if pod.evicting] == ["k"]
