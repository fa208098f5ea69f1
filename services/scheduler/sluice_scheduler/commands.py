"""The commands that come with this package, and what `sluice --help` says of them (entry points `sluice.commands`).

Nothing more: whoever lists commands need not load the scheduler.
"""

from __future__ import annotations

from typing import Final

from sluice.programs import run

EXPLAIN: Final = "why something waits, where it stands, and when it may be served"
REPLAY: Final = "play a cell's log again on the real core, and compare every decision"
SIMULATE: Final = "play a scenario or a cluster's trace on the real scheduler core, in simulated time"


def explain() -> int:
    return run("sluice_scheduler.explain")


def replay() -> int:
    return run("sluice_scheduler.replay.main")


def simulate() -> int:
    return run("sluice_scheduler.simulator.main")
