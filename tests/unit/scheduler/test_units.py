"""Units in the order in which they go."""

from __future__ import annotations

import os
import random

from sluice_scheduler.core.state.units import Units


def test_growth_that_was_admitted_by_a_time_is_found_without_what_came_later() -> None:
    seed = int(os.environ.get("SLUICE_TEST_SEED") or random.SystemRandom().randrange(2**31))
    print("seed", seed)
    chance = random.Random(seed)
    for _ in range(200):
        units = Units()
        for number in range(chance.randint(0, 12)):
            entry = (-chance.randint(0, 2), chance.randint(0, 9), number, str(number))
            units.add(entry, growth=True)
        time_ms = chance.randint(-1, 10)
        assert list(units.grown_by(time_ms)) == [e for e in reversed(units.growth) if e[1] <= time_ms]
        later = [entry[1] for entry in units.growth if entry[1] > time_ms]
        assert units.first_grown_after(time_ms) == min(later, default=None)
