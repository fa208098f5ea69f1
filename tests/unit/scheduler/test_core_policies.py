"""The policies, one written outside this repository among them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.passes.history import decay
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

DOCUMENTED = Path(__file__).parents[3] / "docs" / "policies.md"
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


class RichestFirst:
    """One of outside that knows nothing of guarantees, and prefers those who have none."""

    reclaims = True
    looks_back = False

    def rank(self, branch: Branch, claim: Claim) -> tuple[bool, int]:
        return (bool(branch.guarantees), -branch.share)


GUARANTEED = """
apiVersion: sluice.dev/v1alpha1
kind: Scenario
policy: richest-first
pools: [{name: default, nodes: 1, capacity: {cpu: "4"}}]
queues: [{name: greedy}, {name: owed, guaranteed: {cpu: "2"}}, {name: rich}]
events:
  - {at: 1s, submit: {name: g, queue: greedy, podSets: [{name: main, count: 4, minCount: 0, requests: {cpu: "1"}}]}}
  - {at: 1s, submit: {name: o, queue: owed, podSets: [{name: main, count: 4, minCount: 0, requests: {cpu: "1"}}]}}
"""
FULL = """
  - {at: 0s, submit: {name: r, queue: rich, podSets: [{name: main, count: 4, minCount: 0, requests: {cpu: "1"}}]}}
"""


@pytest.mark.parametrize(
    ("text", "expected", "reclaims"),
    [
        (GUARANTEED, {"g": 2, "o": 2}, 0),
        # What is owed is taken from the rich first: otherwise greedy's part of that would be taken again.
        (GUARANTEED.replace("events:", "events:" + FULL.rstrip()), {"g": 1, "o": 2, "r": 1}, 3),
    ],
    ids=["whose turn it is", "who may push others out"],
)
def test_guarantees_come_first_whatever_a_policy_says(
    text: str, expected: dict[str, int], reclaims: int
) -> None:
    policies: dict[str, Policy] = {"richest-first": RichestFirst()}
    summary = Simulation(Scenario.model_validate(yaml.safe_load(text)), policies=policies).run().summary
    assert {name: sets["main"] for name, sets in summary["admitted"].items()} == expected
    assert summary["reclaims"] == reclaims


@pytest.mark.parametrize(("half_life", "next_served"), [("1h", "late"), ("10s", "early")])
def test_how_long_use_counts_is_the_scenarios_to_say(half_life: str, next_served: str) -> None:
    """`early` used all of the cluster for 30 s; since then `late` has used a quarter of it."""
    text = f"""
apiVersion: sluice.dev/v1alpha1
kind: Scenario
policy: usage-drf
halfLife: {half_life}
pools: [{{name: default, nodes: 1, capacity: {{cpu: "4"}}}}]
queues: [{{name: a}}, {{name: b}}, {{name: c}}]
events:
  - {{at: 0s, submit: {{name: past, queue: a, runtime: 30s, podSets: [{{name: main, count: 4, requests: {{cpu: "1"}}}}]}}}}
  - {{at: 30s, submit: {{name: now, queue: b, podSets: [{{name: main, count: 1, requests: {{cpu: "1"}}}}]}}}}
  - {{at: 31s, submit: {{name: rest, queue: c, runtime: 39s, podSets: [{{name: main, count: 1, requests: {{cpu: "3"}}}}]}}}}
  - {{at: 60s, submit: {{name: early, queue: a, podSets: [{{name: main, count: 1, requests: {{cpu: "3"}}}}]}}}}
  - {{at: 60s, submit: {{name: late, queue: b, podSets: [{{name: main, count: 1, requests: {{cpu: "3"}}}}]}}}}
until: 75s
"""  # noqa: E501
    admitted = Simulation(Scenario.model_validate(yaml.safe_load(text))).run().summary["admitted"]
    assert [name for name in ("early", "late") if admitted[name]["main"]] == [next_served]


def test_what_was_used_counts_half_after_a_half_life() -> None:
    one = decay(0)
    assert decay(4096) == one // 2
    assert decay(3 * 4096) == one // 8
    assert abs(decay(2048) * decay(2048) - one * one // 2) < one * 4
    assert decay(4096 * 100) == 0
    assert all(decay(step) > decay(step + 1) for step in range(5000))


def test_a_policy_of_another_package_is_found_by_its_entry_point(tmp_path: Path) -> None:
    """The example of the documentation is installed for real, into a folder of its own, and named in a
    scenario."""
    assert "longest-queue" not in installed_policies()
    plugin, installed = tmp_path / "plugin", tmp_path / "site"
    plugin.mkdir()
    for name, content in re.findall(r"`(\S+)`:\n\n```\w+\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL):
        (plugin / name).write_text(content)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--target", str(installed), str(plugin)], check=True)
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
