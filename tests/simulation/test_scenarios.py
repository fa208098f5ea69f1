"""Every file of the scenario library does what it says, under crashes too, and comes to rest."""

from pathlib import Path

import pytest
from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import load

LIBRARY = Path(__file__).parents[1] / "scenarios"
FILES = sorted(LIBRARY.glob("*.yaml"))
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
