"""What a scenario file may say, and what is told to whoever got it wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from sluice_scheduler.simulator.main import main
from sluice_scheduler.simulator.scenario import ScenarioError, duration_ms, parse
from sluice_scheduler.simulator.schema import schema

REPOSITORY = Path(__file__).parents[3]
GOOD = """apiVersion: sluice.dev/v1alpha1
kind: Scenario
pools:
  - {name: default, nodes: 1, capacity: {cpu: 0.5}}
queues:
  - {name: a}
events:
  - {at: 0s, submit: {name: w, queue: a, podSets: [{name: main, count: 1, requests: {cpu: 500m}}]}}
"""


GROW = "  - {at: 2s, grow: {workload: w, podSet: main}}"
GROWN_TOO_LATE = "grow: w has ended by 2s: let it grow earlier, or submit another"


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("cpu: 0.5", "cpu: many", 4, "pools.0.capacity.cpu"),
        ("queue: a,", "queue: b,", 8, "there is no queue b"),
        ("count: 1", "count: one", 8, "events.0.submit.podSets.0.count"),
        ("at: 0s", "at: soon", 8, "write for example 10s"),
        ("kind: Scenario", "kind: Play", 2, "kind"),
        ("{name: a}", "{name: a, wieght: 2}", 6, "queues.0.wieght"),
        ("{name: a}", "{name: a, parent: p}", 6, "there is no queue p"),
        ("queues:", "queues: [", 6, "no YAML"),
        ("{name: a}", "{name: a, reclaim: {grace: 10s}}", 6, "graceSeconds"),
        ("{name: a}", "{name: a, parent: a}", 6, "a stands below itself"),
        ("events:", "events:\n  - {at: 0s, setQueue: {name: a, limit: {cpu: lots}}}", 8, "setQueue.limit"),
        ("events:", "events:\n  - {at: 0s, setQueue: {name: a, wieght: 2}}", 8, "setQueue.wieght"),
        ("events:", "events:\n  - {at: 0s, setQueue: {name: a, parent: a}}", 8, "stands below itself"),
        ("at: 0s", "at: .inf", 8, "write for example 10s"),
        ("kind: Scenario", "kind: Scenario\nexpect: [{at: 1s, shares: {nobody: 1}}]", 3, "no queue nobody"),
        ("kind: Scenario", "kind: Scenario\npolicy: lottery", 3, "policy: there is no policy lottery"),
        ("{name: a}", "{name: a, policy: lottery}", 6, "queues.0.policy: there is no policy lottery"),
        (
            "events:",
            "events:\n  - {at: 0s, setQueue: {name: a, policy: x}}",
            8,
            "setQueue.policy: there is no",
        ),
        ("kind: Scenario", "kind: Scenario\nhalfLife: 0s", 3, "halfLife"),
        ("{name: a}", "{name: a, weight: 1, weight: 2}", 6, "queues.0.weight: stands in line 6 already"),
        ("  - {name: a}", "  - {name: a}\npools: []", 7, "pools: stands in line 3 already: take one"),
        ("500m}}]}}", "500m}}]}}\n  - {at: 1s, cancel: {workload: w}}\n" + GROW, 10, GROWN_TOO_LATE),
        ("500m}}]}}", "500m}}], runtime: 1s}}\n" + GROW, 9, GROWN_TOO_LATE),
        ("kind: Scenario", "kind: Scenario\nexpect: [{at: 1s, admitted: {w: {x: 0}}}]", 3, "there is no"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_field(  # noqa: PLR0917
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, line: int, words: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(GOOD.replace(old, new))
    assert main([str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file}:{line}:" in told
    assert words in told


def test_what_was_expected_and_did_not_hold_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(GOOD + "expect:\n  - {at: 0s, admitted: {w: {main: 2}}}\n")
    assert main([str(file), "--json"]) == 1
    captured = capsys.readouterr()
    assert f"{file}:10: at 0s admitted w.main is 1, expected 2" in captured.err
    lines = [json.loads(line) for line in captured.out.splitlines()]
    assert lines[0]["type"] == "admit"
    assert lines[-1]["type"] == "summary"
    assert lines[-1]["usage"] == {"a": {"default/cpu": 0.5}}


def test_the_example_of_the_documentation_is_whole_and_does_what_it_says(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", (REPOSITORY / "docs/simulate.md").read_text(), re.DOTALL)
    file = tmp_path / "scenario.yaml"
    file.write_text(example)
    assert "expect:" in example
    assert main([str(file)]) == 0


def test_json_is_yaml_too() -> None:
    assert parse(json.dumps(yaml.safe_load(GOOD))) == parse(GOOD)


def test_times() -> None:
    texts = ("10s", "1.5s", "100ms", "1h30m", 2)
    assert [duration_ms(text) for text in texts] == [10_000, 1_500, 100, 5_400_000, 2_000]
    with pytest.raises(ScenarioError, match="10 parsecs"):
        parse(GOOD.replace("0s", "10 parsecs"))


def test_the_library_follows_the_published_schema() -> None:
    for path in sorted((REPOSITORY / "tests/scenarios").glob("*.yaml")):
        jsonschema.validate(yaml.safe_load(path.read_text()), json.loads(schema()))
