"""The policies, one written outside this repository among them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sluice_scheduler.core.history import decay
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

PLUGIN = Path(__file__).parents[2] / "plugins" / "longest_queue"
SCENARIO = """
apiVersion: sluice.dev/v1alpha1
kind: Scenario
pools: [{name: default, nodes: 1, capacity: {cpu: "4"}}]
queues: [{name: a, reclaim: {enabled: false}}, {name: b}]
events:
  - {at: 0s, submit: {name: early, queue: a, priority: 1, podSets: [{name: main, count: 4, minCount: 0, requests: {cpu: "1"}}], runtime: 10s}}
  - {at: 1s, submit: {name: a-next, queue: a, priority: 1, podSets: [{name: main, count: 4, minCount: 0, requests: {cpu: "1"}}]}}
  - {at: 2s, submit: {name: b-next, queue: b, priority: 9, podSets: [{name: main, count: 8, minCount: 0, requests: {cpu: "1"}}]}}
until: 10s
"""  # noqa: E501


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fifo", {"a-next": 4, "b-next": 0}),  # it came first
        ("priority", {"a-next": 0, "b-next": 4}),  # it is the most important
        ("usage-drf", {"a-next": 0, "b-next": 4}),  # a has had its time
        ("drf", {"a-next": 2, "b-next": 2}),
    ],
)
def test_who_comes_next_is_the_policys_choice(policy: str, expected: dict[str, int]) -> None:
    simulation = Simulation(Scenario.model_validate(yaml.safe_load(SCENARIO)), policy=policy)
    admitted = simulation.run().summary["admitted"]
    assert {name: admitted[name]["main"] for name in expected} == expected


def test_what_was_used_counts_half_after_a_half_life() -> None:
    one = decay(0)
    assert decay(4096) == one // 2
    assert decay(3 * 4096) == one // 8
    assert abs(decay(2048) * decay(2048) - one * one // 2) < one * 4
    assert decay(4096 * 100) == 0
    assert all(decay(step) > decay(step + 1) for step in range(5000))


def test_a_policy_of_another_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    """It is installed for real, into a folder of its own, and named in a scenario."""
    assert "longest-queue" not in installed_policies()
    installed = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(installed), str(PLUGIN)], check=True)
    file = tmp_path / "scenario.yaml"
    file.write_text(SCENARIO)
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); "
        "from sluice_scheduler.simulator.main import main; "
        f"sys.exit(main([{str(file)!r}, '--policy', 'longest-queue', '--json']))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert '"b-next": {"main": 4}' in run.stdout.splitlines()[-1]
