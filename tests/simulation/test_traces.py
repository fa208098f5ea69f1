"""The public openb trace, split into tenants, under three policies."""

from __future__ import annotations

import json
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
    assert lines["drf"]["jain"] > lines["usage-drf"]["jain"] > lines["fifo"]["jain"] > 0.5
    assert found["fifo"].result.summary["reclaims"] == 0 < found["drf"].result.summary["reclaims"]
    for line in lines.values():
        assert line["contended_ms"] > 0
        assert line["contended_utilisation"]["default/gpu-milli"] > 0.8
        assert set(line["mean_shares"]) == set(line["wait_mean_ms"])
    told = "\n".join(table(list(found.values())))
    for column in ("wait mean", "p50", "p99", "contended", "Jain", "reclaims", "mean share", "mean use"):
        assert column in told


def compared(scenario: Scenario) -> dict[str, Outcome]:
    names = ["drf", "fifo", "usage-drf"]
    found = {outcome.policy: outcome for outcome in compare(scenario, names, installed_policies())}
    assert list(found) == names
    return found
