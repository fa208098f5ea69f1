"""The public openb trace, split into tenants, under three policies."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.compare import Outcome, compare, table
from sluice_scheduler.simulator.fairness import evenness, fair_parts, tree_of
from sluice_scheduler.simulator.main import main
from sluice_scheduler.simulator.scenario import Queue, Scenario
from sluice_scheduler.simulator.statistics import jain
from sluice_scheduler.simulator.trace import DEFAULT_COLUMNS, read_trace

TRACES = Path(__file__).parents[1] / "traces"
PODS, NODES, TENANTS = (TRACES / name for name in ("openb-pods.csv.gz", "openb-nodes.csv.gz", "tenants.yaml"))
#: On so few of its nodes the trace's pods have to wait.
PART = 0.008


def test_jains_index() -> None:
    assert jain([2, 2, 2, 2]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(1 / 4)
    assert jain([1, 3]) == pytest.approx(16 / 20)


def test_what_would_be_fair_is_filled_level_by_level() -> None:
    queues = [Queue(name="team", weight=1), Queue(name="a", parent="team"), Queue(name="b", parent="team")]
    tree = tree_of([*queues, Queue(name="c", weight=1)])
    asked = {"a": {"cpu": 0.1}, "b": {"cpu": 2.0}, "c": {"cpu": 0.8}}
    fair = fair_parts(tree, asked)
    assert {name: round(fair[name] * asked[name]["cpu"], 6) for name in fair} == {
        "a": 0.1,
        "b": 0.4,
        "c": 0.5,
    }
    # The paper's worked example: dominant shares of two thirds each.
    flat = tree_of([Queue(name="a"), Queue(name="b")])
    tasks = {"a": {"cpu": 100 / 9, "memory": 400 / 18}, "b": {"cpu": 300 / 9, "memory": 100 / 18}}
    assert fair_parts(flat, tasks) == pytest.approx({"a": 3 / 100, "b": 2 / 100})
    filled = {"a": {"cpu": 0.2}, "b": {"cpu": 0.8}}
    assert evenness(flat, filled, {"a": {"cpu": 0.2}, "b": {"cpu": 2.0}}) == pytest.approx(1)
    hog = {"a": {"cpu": 1.0}, "b": {"cpu": 0.0}}
    assert evenness(flat, hog, {"a": {"cpu": 1.0}, "b": {"cpu": 1.0}}) == pytest.approx(1 / 2)


def test_policies_are_compared_as_a_table_lines_and_a_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = tmp_path / "pods.csv"
    nodes = tmp_path / "nodes.csv"
    nodes.write_text("sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,1,X\n")
    head = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase"
    rows = [f"{head},creation_time,deletion_time,scheduled_time"]
    # A thousand seconds of one tenant's work are there when the other's first pods come.
    rows += [f"a{n},4000,1024,0,0,,A,Running,0,{100 + n % 2},0" for n in range(20)]
    rows += [f"b{n},4000,1024,0,0,,B,Running,10,110,10" for n in range(2)]
    pods.write_text("\n".join(rows) + "\n")
    arguments = ["--trace", str(pods), "--nodes", str(nodes), "--compare", "drf,fifo"]
    assert main([*arguments, "--json", "--plot", str(tmp_path / "out.png")]) == 0
    drf, fifo = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (drf["policy"], fifo["policy"]) == ("drf", "fifo")
    assert drf["wait_ms"]["b"]["p50"] < 200_000
    assert fifo["wait_ms"]["b"]["p50"] > 900_000  # behind all of the other's
    assert 0 < drf["jain"] <= 1
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert main(arguments) == 0
    assert "Jain" in capsys.readouterr().out


HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,qos,creation_time,deletion_time,scheduled_time\n"
POD = "a0,4000,1024,0,0,A,0,100,0\n"
NODE = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,8192,1,X\n"


@pytest.mark.parametrize(
    ("pods", "queues", "words"),
    [
        (HEAD + POD.replace("4000", "many"), "", "pods.csv:2: cpu_milli: 'many' is not a number"),
        (HEAD + POD.replace("1024", ""), "", "pods.csv:2: memory_mib: '' is not a number"),
        (HEAD + POD.replace("A,0", "A,-5"), "", "pods.csv:2: creation_time: '-5' is not"),
        (HEAD + POD.replace("A", ""), "", "pods.csv:2: qos: is empty"),
        (HEAD + POD + POD, "", "pods.csv:3: name: a0 stands in line 2 already"),
        (HEAD + "a0,4000\n", "", "pods.csv:2: "),
        (HEAD.replace("qos", "team") + POD, "", "no column 'qos': name the one for tenant with --columns"),
        (HEAD, "", "pods.csv: there is no line in it"),
        (HEAD + POD, "- {name: a}\n- {name: a}\n", "queues.yaml:2: queues.1.name: a is named twice"),
        (HEAD + POD, "- {name: a}\n- {name: b, parent: x}\n", "queues.yaml:2: queues.1.parent: there is no"),
        (HEAD + POD, "queues:\n- {name: a}\n- {name: b, wieght: 2}\n", "queues.yaml:3: queues.1.wieght"),
        (HEAD + POD, "[]", "queues.yaml:1: queues: write one entry at least"),
        (HEAD + POD, "name: a", "queues.yaml:1: the file must be a list of queues"),
    ],
)
def test_a_mistake_in_a_trace_is_told_with_its_line_and_column(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pods: str, queues: str, words: str
) -> None:
    assert main(trace_arguments(tmp_path, pods, queues)) == 2
    assert words in capsys.readouterr().err


def trace_arguments(folder: Path, pods: str, queues: str = "") -> list[str]:
    arguments = []
    for option, name, text in (
        ("--trace", "pods.csv", pods),
        ("--nodes", "nodes.csv", NODE),
        ("--queues", "queues.yaml", queues),
    ):
        if text:
            (folder / name).write_text(text)
            arguments += [option, str(folder / name)]
    return arguments


def test_columns_have_the_names_that_one_says_and_a_pod_without_an_end_runs_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pods = HEAD.replace("qos", "team").replace("cpu_milli", "milli") + POD + POD.replace("a0", "a1")
    pods = pods.replace("a1,4000,1024,0,0,A,0,100", "a1,4000,1024,0,0,A,0.5,")
    arguments = [*trace_arguments(tmp_path, pods), "--json", "--columns", "tenant=team,cpu_milli=milli"]
    assert main(arguments) == 0
    *lines, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert [(x["at"], x["type"], x["workload"]) for x in lines] == [
        (0.0, "admit", "a0"),
        (0.5, "admit", "a1"),
        (100.0, "finish", "a0"),
    ]
    assert summary["admitted"] == {"a1": {"main": 1}}


@pytest.mark.parametrize(("option", "text"), [("--part", "0"), ("--part", "nan"), ("--columns", "who=qos")])
def test_a_trace_is_not_played_by_settings_without_a_meaning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, text: str
) -> None:
    assert main([*trace_arguments(tmp_path, HEAD + POD), option, text]) == 2
    assert f"{option}: " in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_openb_trace() -> None:
    scenario = read_trace(PODS, NODES, queues=TENANTS, columns=DEFAULT_COLUMNS, part=PART)
    assert len(scenario.events) == 8_152
    found = compared(scenario)
    for outcome in found.values():
        assert not outcome.result.summary["pending"]


@pytest.mark.timeout(120)
def test_on_few_nodes_drf_shares_openb_more_evenly_than_fifo() -> None:
    """Of the whole trace only the last 700 pods, on as few nodes as make these contend: seconds."""
    scenario = read_trace(PODS, NODES, queues=TENANTS, columns=DEFAULT_COLUMNS, part=0.0028)
    scenario.events = scenario.events[-700:]
    found = compared(scenario)
    lines = {name: outcome.as_line() for name, outcome in found.items()}
    assert min(lines["drf"]["jain"], lines["usage-drf"]["jain"]) > lines["fifo"]["jain"] > 0.5
    assert found["fifo"].result.summary["reclaims"] == 0 < found["drf"].result.summary["reclaims"]
    for line in lines.values():
        assert line["contended_ms"] > 0
        assert line["contended_utilisation"]["default/gpu-milli"] > 0.75
        assert set(line["mean_shares"]) == set(line["wait_mean_ms"])
    told = "\n".join(table(list(found.values())))
    for column in ("wait mean", "p50", "p99", "contended", "Jain", "reclaims", "mean share", "mean use"):
        assert column in told
    plug_ins = [replace(outcome, policy=f"{outcome.policy}-of-somebody") for outcome in found.values()]
    assert len({len(line) for line in table(plug_ins)[:4]}) == 1, "columns stand under their heads"


def compared(scenario: Scenario) -> dict[str, Outcome]:
    names = ["drf", "fifo", "usage-drf"]
    found = {outcome.policy: outcome for outcome in compare(scenario, names, installed_policies())}
    assert list(found) == names
    return found
