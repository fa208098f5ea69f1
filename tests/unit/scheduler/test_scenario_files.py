"""What a scenario file may say, and what is told to whoever got it wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from sluice_scheduler.core.passes import claimants, reclaim
from sluice_scheduler.core.passes.claimants import Claimants
from sluice_scheduler.core.passes.move import Move
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.compare import compare, table
from sluice_scheduler.simulator.main import main
from sluice_scheduler.simulator.reading import load, parse
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import ScenarioError, duration_ms
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
        ("queues:", "queues: [", 6, ":6:3: not valid YAML"),
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
        ("kind: Scenario", "kind: Scenario\nexpect: [{at: 1s, shares: {a: .nan}}]", 3, "finite number"),
        ("events:", "events:\n  - {at: 0s, setQueue: {name: [a]}}", 8, "needs the name of a queue"),
        ("events:", "events:\n  - {at: 0s, setQueue: {weight: 2}}", 8, "needs the name of a queue"),
        ("{name: a}", "{name: a, cell: other}", 6, "queues.0.cell: there is no cell other"),
        ("nodes: 1", "nodes: 99999999", 4, "pools.0.nodes"),
        ("queue: a,", "queue: a, priority: 99999999999,", 8, "events.0.submit.priority"),
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
    assert "Input should" not in told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("count: 1", "count: one", "8: events.0.submit.podSets.0.count: write a whole number, not 'one'"),
        ("count: 1", "count: 1.5", "8: events.0.submit.podSets.0.count: write a whole number, not 1.5"),
        ("count: 1", "count: []", "8: events.0.submit.podSets.0.count: write a whole number"),
        ("count: 1", "count: -1", "8: events.0.submit.podSets.0.count: write 0 or more, not -1"),
        ("count: 1, ", "", "8: events.0.submit.podSets.0.count: it is missing: write it"),
        (
            "name: w",
            "name: 5",
            "8: events.0.submit.name: write a text, in quotes if it looks like a number, not 5",
        ),
        ("name: w", "name: ''", "8: events.0.submit.name: write a text that is not empty, not ''"),
        ("nodes: 1", "nodes: 999999", "4: pools.0.nodes: write 100000 or less, not 999999"),
        ("nodes: 1", "nods: 1", "4: pools.0.nods: there is no such field: correct its name, or take it out"),
        ("kind: Scenario", "kind: Play", "2: kind: write 'Scenario', not 'Play'"),
        ("kind: Scenario", "kind: Scenario\nhalfLife: 0s", "3: halfLife: write more than 0, not 0"),
        (
            "kind: Scenario",
            "kind: Scenario\nuntil: soon",
            "3: until: 'soon' is not a time: write for example 10s",
        ),
        ("  - {name: a}", "  a: {name: a}", "5: queues: write a list"),
        ("  - {name: a}", "  - a", "6: queues.0: write a mapping, not 'a'"),
        ("\n  - {name: a}", " []", "5: queues: write one entry at least"),
        (
            "{name: a}",
            "{name: a, ordering: fifo}",
            "6: queues.0.ordering: write 'strictFifo' or 'bestEffortFifo'",
        ),
        (
            "{name: a}",
            "{name: a, policy: My}",
            "6: queues.0.policy: write lower-case letters, digits and hyphens",
        ),
        (
            "{name: a}",
            "{name: a, reclaim: {enabled: perhaps}}",
            "reclaim.enabled: write true or false, not 'per",
        ),
        ("events:", "events:\n  - {at: 0, setQueue: {name: a, weight: x}}", "setQueue.weight: write a whole"),
    ],
)
def test_what_is_wanted_is_said_in_our_own_words(old: str, new: str, told: str) -> None:
    with pytest.raises(ScenarioError) as raised:
        parse(GOOD.replace(old, new), name="scenario")
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (GOOD.encode().replace(b"{name: a}", b"{name: \xe9}"), ":6: no UTF-8"),
        (b"[" * 5_000, ":1: not valid YAML"),
    ],
)
def test_what_is_no_text_or_no_yaml_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, words: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_bytes(content)
    assert main([str(file)]) == 2
    assert f"{file}{words}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--part", "0.5"], "--part is of a trace"),
        (["--policy", "lottery"], "there is no policy 'lottery'"),
        (
            ["--plot", "/nowhere/out.png"],
            "--plot: /nowhere/out.png can't be written: there is no folder /nowhere",
        ),
        (["--plot", "/"], "--plot: / is a folder: name a file in it"),
        (["--plot", "out.doc"], "--plot: out.doc: no picture is called .doc: name one of "),
    ],
)
def test_what_is_asked_for_in_vain_is_told_before_anything_is_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(GOOD)
    assert main([str(file), *arguments]) == 2
    told = capsys.readouterr()
    assert words in told.err
    assert told.out == ""


LINES = """apiVersion: sluice.dev/v1alpha1
kind: Scenario
pools:
  - {name: default, nodes: 1, capacity: {cpu: "4", memory: 8Gi}}
queues:
  - {name: a}
  - {name: b}
  - {name: c, guaranteed: {cpu: 1}}
  - {name: more, parent: c, guaranteed: {cpu: 2}}
events:
  - {at: 0s, submit: {name: base, queue: a, podSets: [{name: main, count: 2, requests: {cpu: "1", memory: 512Mi}}]}}
  - at: 0s
    submit:
      name: gang
      queue: a
      podSets: [{name: x, count: 1, requests: {cpu: "1"}}, {name: y, count: 1, requests: {cpu: "1", memory: 1Gi}}]
  - {at: 2s, submit: {name: w, queue: b, podSets: [{name: main, count: 2, requests: {cpu: "1"}}], runtime: 1500ms}}
  - {at: 3s, submit: {name: lost, queue: more, podSets: [{name: main, count: 2, requests: {cpu: "1"}}]}}
until: 5s
"""


def test_each_line_of_json_is_what_the_contract_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(LINES)
    assert main([str(file), "--json"]) == 0
    *lines, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert all(line["reason"] and line["sentence"] for line in lines)
    assert [(x["at"], x["type"], x["workload"], x["podSet"], x["count"]) for x in lines] == [
        (0.0, "admit", "base", "main", 2),
        (0.0, "admit", "gang", "x", 1),
        (0.0, "admit", "gang", "y", 1),
        (2.0, "requeue", "gang", "x", 1),
        (2.0, "requeue", "gang", "y", 1),
        (2.0, "reclaim", "gang", "x", 1),
        (2.0, "reclaim", "gang", "y", 1),
        (2.0, "admit", "w", "main", 2),
        (3.0, "reject", "lost", "main", 2),
        (3.5, "finish", "w", "main", 2),
        (3.5, "admit", "gang", "x", 1),
        (3.5, "admit", "gang", "y", 1),
    ]
    gibi = 2**30
    waited = {"p50": 0, "p99": 1500}  # since they were taken back: they wait anew
    at_once = {"p50": 0, "p99": 0}
    assert summary == {
        "type": "summary",
        "at": 5.0,
        "lost_work_ms": {"a": 4000, "b": 0, "c": 0, "more": 0},
        "lost_work_total_ms": 4000,
        "admitted": {"base": {"main": 2}, "gang": {"x": 1, "y": 1}, "lost": {"main": 0}},
        "pending": {"base": {"main": 0}, "gang": {"x": 0, "y": 0}, "lost": {"main": 2}},
        "usage": {"a": {"default/cpu": 4.0, "default/memory": 2 * gibi}, "b": {}, "c": {}, "more": {}},
        "shares": {"a": 1.0, "b": 0.0, "c": 0.0, "more": 0.0},
        "deserved": {"a": 1.0, "b": 0.0, "c": 0.0, "more": 0.0},
        "reclaims": 2,
        # Ten about pods; admissions of base, gang, w and gang again; gang's end between; a notice on `more`.
        "decisions": 10 + 4 + 1 + 1,
        "wait_ms": {"a": waited, "b": at_once, "c": at_once, "more": {"p50": 2000, "p99": 2000}},
        "still_waiting": {"a": 0, "b": 0, "c": 0, "more": 2},
        "utilisation": {"default/cpu": 1.0, "default/memory": round(1 / 8 + 1 / 8 * 3.5 / 5, 6)},
    }


MANY = """apiVersion: sluice.dev/v1alpha1
kind: Scenario
pools:
  - {name: default, nodes: 1, capacity: {cpu: 150}}
queues: [{name: a}, {name: b}]
events:
  - at: 0s
    submit: {name: w, queue: a, repeat: REPEAT, podSets: [{name: main, count: 1, requests: {cpu: 1}}]}
"""


@pytest.mark.parametrize(
    ("repeat", "arguments", "named", "omitted"),
    [
        (100, [], 100, None),
        (200, [], 20, 180),
        (200, ["--details"], 200, None),
        (101, [], 0, 101),  # none of them waits
    ],
)
def test_a_summary_of_many_workloads_names_few_and_counts_all(  # noqa: PLR0917
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    repeat: int,
    arguments: list[str],
    named: int,
    omitted: int | None,
) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(MANY.replace("REPEAT", str(repeat)))
    assert main([str(file), "--json", *arguments]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    waiting = max(0, repeat - 150)
    assert len(summary["pending"]) == len(summary["admitted"]) == named
    if omitted is None:
        assert "omitted" not in summary
        assert "totals" not in summary
        assert sum(sets["main"] for sets in summary["pending"].values()) == waiting
    else:
        assert summary["totals"] == {
            "a": {"workloads": repeat, "admitted": repeat - waiting, "pending": waiting},
            "b": {"workloads": 0, "admitted": 0, "pending": 0},
        }
        assert summary["omitted"] == {"workloads": omitted, "hint": "--details names all of them"}
        assert all(sets == {"main": 1} for sets in summary["pending"].values()), "those that wait"


def test_a_table_says_what_it_leaves_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "many.yaml"
    file.write_text(MANY.replace("REPEAT", "230").replace("cpu: 150", "cpu: 230"))
    assert main([str(file)]) == 0
    assert capsys.readouterr().out.startswith("30 lines before these; --details shows all\n")
    assert main([str(file), "--details"]) == 0
    assert capsys.readouterr().out.count("admit") >= 230


def test_who_was_never_admitted_has_waited_until_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    file.write_text(MANY.replace("REPEAT", "152") + "until: 60s\n")
    assert main([str(file), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["wait_ms"]["a"] == {"p50": 0, "p99": 60_000}
    assert summary["still_waiting"] == {"a": 2, "b": 0}
    assert main([str(file)]) == 0
    told = capsys.readouterr().out.splitlines()
    [at] = [at for at, line in enumerate(told) if line.startswith("queue ")][:1]
    head, a, b = (line.split() for line in told[at : at + 3])
    assert head[1:8] == ["share", "deserves", "wait", "p50", "wait", "p99", "waiting"]
    assert a[:6] == ["a", "1.0000", "1.0000", "0.0s", "60.0s", "2"]
    assert b[:6] == ["b", "0.0000", "0.0000", "0.0s", "0.0s", "0"]
    [outcome] = compare(load(file), ["drf"], installed_policies())
    assert outcome.as_line()["still_waiting"] == {"a": 2, "b": 0}
    assert outcome.mean_waits_s["a"] == pytest.approx(2 * 60 / 152)
    head, line = (each.split() for each in table([outcome])[:2])
    assert line[head.index("waiting") - 1] == "2", "two words are above the mean"


def test_a_simulation_in_which_nothing_happens_decides_nothing() -> None:
    calm = parse(GOOD.partition("events:")[0])
    assert Simulation(calm).run().summary["decisions"] == 0


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


def test_decisions_that_do_not_come_to_an_end_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both queues believe that they are owed what they have in common."""
    for question in ("_is_right", "_is_due"):
        monkeypatch.setattr(Move, question, lambda move: True)
    monkeypatch.setattr(Move, "_may_take_from", lambda move, branch: True)
    monkeypatch.setattr(Claimants, "_may_push", lambda claimants, leaf, claim: True)
    monkeypatch.setattr(claimants, "is_barred", lambda state, claim: False)
    monkeypatch.setattr(reclaim, "is_barred", lambda state, claim: False)
    assert main([str(REPOSITORY / "tests/scenarios/shared-guarantee-sibling-off.yaml")]) == 1
    assert "at 2s decisions do not come to an end" in capsys.readouterr().err


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
