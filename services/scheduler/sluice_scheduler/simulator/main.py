"""`sluice-simulate`: play a scenario or a cluster trace. `sluice simulate` runs it."""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any, Final

from sluice.programs import ends_quietly

from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.explain import explain
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.simulator.compare import compare, table
from sluice_scheduler.simulator.plot import expect_picture, plot_comparison, plot_queues
from sluice_scheduler.simulator.reading import Place, line_of, load, text_of
from sluice_scheduler.simulator.run import ImpossibleEventError, RestlessError, Result, Simulation
from sluice_scheduler.simulator.samples import play
from sluice_scheduler.simulator.scenario import Scenario, ScenarioError
from sluice_scheduler.simulator.told import summarised
from sluice_scheduler.simulator.trace import DEFAULT_COLUMNS, read_trace

EXIT_EXPECTATION, EXIT_MALFORMED = 1, 2
#: A table shows so many of the last lines.
LINES_MAX: Final = 200
OF_A_TRACE: Final = ("trace", "nodes", "queues", "columns", "part")


@ends_quietly()
def main(argv: list[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    try:
        return _run(arguments)
    except ScenarioError as error:
        print(f"sluice simulate: {error}", file=sys.stderr)
        return EXIT_MALFORMED
    except ImpossibleEventError as error:
        print(f"sluice simulate: {_in_file(arguments, ('events', error.index), str(error))}", file=sys.stderr)
        return EXIT_MALFORMED
    except RestlessError as error:
        print(f"sluice simulate: {error}", file=sys.stderr)
        return EXIT_EXPECTATION


def _run(arguments: argparse.Namespace) -> int:
    if arguments.plot:
        expect_picture(arguments.plot)
    scenario = _scenario(arguments)
    policies = installed_policies()
    compared = [name for name in arguments.compare.split(",") if name]
    for name in [*compared, arguments.policy]:
        if name and name not in policies:
            known = ", ".join(sorted(policies))
            raise ScenarioError(f"there is no policy {name!r}; installed are: {known}")
    if compared:
        return _compare(scenario, compared, policies, arguments)
    simulation, samples = play(scenario, policy=arguments.policy, policies=policies)
    result = simulation.result
    if arguments.json:
        summary = summarised(result.summary, simulation.world, details=arguments.details)
        for line in (*result.lines, summary):
            print(json.dumps(line))
    else:
        _print_table(result, details=arguments.details)
        _print_waiting(scenario, simulation)
    if arguments.plot:
        plot_queues(samples, arguments.plot)
    for index, message in result.failures:
        print(_in_file(arguments, ("expect", index), message), file=sys.stderr)
    return EXIT_EXPECTATION if result.failures else 0


def _in_file(arguments: argparse.Namespace, place: Place, message: str) -> str:
    return f"{arguments.file}:{line_of(text_of(Path(arguments.file)), place)}: {message}"


def _compare(
    scenario: Scenario, names: list[str], policies: dict[str, Policy], arguments: argparse.Namespace
) -> int:
    outcomes = compare(scenario, names, policies)
    for line in [json.dumps(o.as_line()) for o in outcomes] if arguments.json else table(outcomes):
        print(line)
    if arguments.plot:
        plot_comparison(outcomes, arguments.plot)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice simulate",
        description="Play a scenario, or a cluster trace, on the real scheduler core in simulated time.",
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="a scenario (YAML or JSON)")
    parser.add_argument("--policy", default="", help="another policy than the file's")
    parser.add_argument(
        "--compare", default="", metavar="NAME,…", help="play it under each of these policies, and compare"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line, the summary last")
    parser.add_argument(
        "--details", action="store_true", help="of a large run too: every line, every workload in the summary"
    )
    parser.add_argument("--plot", type=Path, metavar="PNG", help="draw what each queue held over time")
    parser.add_argument("--trace", type=Path, metavar="CSV", help="pods of a cluster trace, instead of FILE")
    parser.add_argument("--nodes", type=Path, metavar="CSV", help="the trace's nodes")
    parser.add_argument("--part", type=float, metavar="X", help="play the trace on this part of its nodes")
    parser.add_argument("--queues", type=Path, metavar="YAML", help="a list of queues for the trace")
    parser.add_argument(
        "--columns",
        metavar="FIELD=COLUMN,…",
        help="how the trace names its columns; default: "
        + ",".join(f"{k}={v}" for k, v in DEFAULT_COLUMNS.items()),
    )
    return parser


def _scenario(arguments: argparse.Namespace) -> Scenario:
    of_a_trace = [
        name
        for name in ("trace", "nodes", "queues", "columns", "part")
        if getattr(arguments, name) is not None
    ]
    if arguments.file and not of_a_trace:
        return load(Path(arguments.file))
    if arguments.file or not arguments.trace or not arguments.nodes:
        beside = f"; --{of_a_trace[0]} is of a trace" if arguments.file else ""
        raise ScenarioError(f"give a FILE, or --trace with --nodes{beside}")
    part = 1.0 if arguments.part is None else arguments.part
    if not 0 < part < math.inf:
        raise ScenarioError(f"--part: {part:g} is no part of the nodes: write for example 0.03")
    return read_trace(
        arguments.trace,
        arguments.nodes,
        queues=arguments.queues,
        columns=_columns(arguments.columns or ""),
        part=part,
    )


def _columns(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",") if part]
    unknown = [field for field, _, _ in pairs if field not in DEFAULT_COLUMNS]
    if unknown or any(not column for _, _, column in pairs):
        raise ScenarioError(f"--columns: write FIELD=COLUMN,…; fields are {', '.join(DEFAULT_COLUMNS)}")
    return DEFAULT_COLUMNS | {field: column for field, _, column in pairs}


def _print_table(result: Result, *, details: bool) -> None:
    lines = result.lines if details else result.lines[-LINES_MAX:]
    if len(lines) < len(result.lines):
        print(f"{len(result.lines) - len(lines)} lines before these; --details shows all")
    for line in lines:
        print("{at:>10.3f}  {type:<8} {workload:<24} {podSet:<12} {count:>5}  {sentence}".format(**line))
    summary: dict[str, Any] = result.summary
    print(
        f"\nat {summary['at']:g}s: {summary['decisions']} decisions, {summary['reclaims']} pods reclaimed, "
        f"{summary['lost_work_total_ms'] / 1000:.0f}s of running time lost\n"
    )
    print(
        f"{'queue':<24} {'share':>8} {'deserves':>8} {'wait p50':>10} {'wait p99':>10} {'waiting':>8} "
        f"{'lost work':>10}  usage"
    )
    for queue, share in summary["shares"].items():
        wait = summary["wait_ms"][queue]
        usage = ", ".join(f"{name} {amount:g}" for name, amount in summary["usage"][queue].items())
        lost_s = summary["lost_work_ms"][queue] / 1000
        waits = (
            f"{wait['p50'] / 1000:>9.1f}s {wait['p99'] / 1000:>9.1f}s {summary['still_waiting'][queue]:>8}"
        )
        deserved = summary["deserved"][queue]
        print(f"{queue:<24} {share:>8.4f} {deserved:>8.4f} {waits} {lost_s:>9.0f}s  {usage}")
    for name, part in summary["utilisation"].items():
        print(f"mean use of {name}: {part:.1%}")


def _print_waiting(scenario: Scenario, simulation: Simulation) -> None:
    """Why, and for how long, what is pending in the end goes on waiting."""
    for queue in scenario.queues:
        if not queue.parent and simulation.world.waiting:
            print("", *explain(simulation.cell.state, queue.name), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
