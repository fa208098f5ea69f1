"""Units in the order in which they go."""

from __future__ import annotations

import os
import random

from sluice.events import PodFacts
from sluice_scheduler.core import State
from sluice_scheduler.core.state.alike import Entry, Newest, size_of
from sluice_scheduler.core.state.units import Units, entry_of
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.installed import installed_policies


def test_what_was_admitted_by_a_time_is_found_without_what_came_later() -> None:
    seed = int(os.environ.get("SLUICE_TEST_SEED") or random.SystemRandom().randrange(2**31))
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(200):
        units = Units()
        for number in range(chance.randint(0, 12)):
            entry = (-chance.randint(0, 2), chance.randint(0, 9), number, str(number))
            units.add(entry, growth=chance.random() < 0.7)
        time_ms = chance.randint(-1, 10)
        in_order = [*reversed(units.growth), *reversed(units.gangs)]
        assert list(units.admitted_by(time_ms)) == [entry for entry in in_order if entry[1] <= time_ms]
        later = [entry[1] for entry in in_order if entry[1] > time_ms]
        assert units.first_after(time_ms) == min(later, default=None)


def test_who_leaps_comes_to_the_same_in_an_order_of_the_round() -> None:
    entries = [(0, number, number, str(number)) for number in range(40)]
    firsts = set()
    for number in range(24):
        newest = Newest(entries, 5, 40)
        begun = [next(newest) for _ in range(16)]
        newest.leap(number)
        rest = list(newest)
        assert begun == entries[:23:-1]
        assert sorted(rest) == entries[5:24]
        firsts.add(rest[0])
    assert len(firsts) > 12, "rounds begin at places far from each other"
    assert list(Newest(entries, 5, 40)) == entries[:4:-1]


def test_growth_by_size_is_the_growth() -> None:
    """From the first search on it is kept, whatever comes and goes; what it finds first of each size is the newest."""
    seed = int(os.environ.get("SLUICE_TEST_SEED") or random.SystemRandom().randrange(2**31))
    print("seed", seed)
    chance = random.Random(seed)
    state = State(installed_policies())
    units = Units()
    for number in range(400):
        if units.growth and chance.random() < 0.4:
            units.remove(chance.choice(units.growth), growth=True)
        else:
            facts = PodFacts(
                requests={"cpu": chance.randint(1, 3)}, priority=chance.randint(0, 2), created_ms=0
            )
            pod = Pod(
                facts=facts,
                cluster="c",
                uid=str(number),
                name="",
                resource_version=1,
                admitted_ms=chance.randint(0, 9),
            )
            state.pods.put(pod)
            units.add(entry_of(pod, facts.priority), growth=True)
        time_ms = chance.choice([None, chance.randint(-1, 10)])
        if number % 7:
            continue
        by_age: list[Entry] = []
        by_size: list[Entry] = []
        for newest_first, sizes in units.growth_by_size(state, time_ms):
            by_age += newest_first
            for cost, row in sizes.items():
                found = list(row.newest_first(time_ms))
                assert found == sorted(found, reverse=True)
                assert {size_of(state.pod(entry[3])) for entry in found} <= {cost}
                by_size += found
        assert by_age == list(units.admitted_by(time_ms))
        assert sorted(by_size) == sorted(by_age)
