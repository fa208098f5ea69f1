"""Every file of the scenario library does what it says, under crashes too, and comes to rest."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.batches import one_by_one
from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.reading import load
from sluice_scheduler.simulator.run import Simulation

LIBRARY = Path(__file__).parents[1] / "scenarios"
LARGE = LIBRARY / "large-kueue-15000.yaml"
FILES = sorted(set(LIBRARY.glob("*.yaml")) - {LARGE})
assert FILES, f"no scenarios in {LIBRARY}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario_holds(path: Path) -> None:
    result = Simulation(load(path)).run()
    assert result.failures == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_another_worker_that_takes_over_after_any_commit_decides_the_same(path: Path) -> None:
    calm = Simulation(load(path)).run()
    crashing = Simulation(load(path), after_feed=SimulatedCell.restart).run()
    assert crashing.lines == calm.lines
    assert crashing.summary == calm.summary


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_five_more_rounds_change_nothing(path: Path) -> None:
    simulation = Simulation(load(path))
    simulation.run()
    assert [simulation.cell.more_rounds() for _ in range(5)] == [[]] * 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_how_records_were_batched_leaves_no_trace(path: Path) -> None:
    whole = Simulation(load(path)).run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", one_by_one)
        apart = Simulation(load(path)).run()
    assert apart.lines == whole.lines
    assert apart.summary == whole.summary


def test_the_order_of_hashes_leaves_no_trace() -> None:
    """The whole library, decided by processes that hash strings in different ways."""
    play = (
        "import sys; from pathlib import Path; from sluice_scheduler.simulator.run import Simulation; "
        "from sluice_scheduler.simulator.reading import load; "
        "[print(Simulation(load(Path(name))).run().lines) for name in sys.argv[1:]]"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", play, *map(str, FILES)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "31337")
    ]
    assert told[0]
    assert told[0] == told[1] == told[2]


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_kueues_fifteen_thousand_workloads_end_within_75_seconds() -> None:
    """The lower bound is 66 s; Kueue takes 350 s on two cores, in real time."""
    summary = Simulation(load(LARGE)).run().summary
    assert summary["pending"] == {}
    assert 66 <= summary["at"] < 75
    assert min(summary["utilisation"].values()) > 0.88
