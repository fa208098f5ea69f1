"""Pictures. matplotlib is asked for only here: install it to use --plot."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from sluice_scheduler.simulator.compare import Outcome
from sluice_scheduler.simulator.run import Result
from sluice_scheduler.simulator.scenario import ScenarioError


def plot_shares(result: Result, path: Path) -> None:
    """The queues' dominant shares over time."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    _draw_shares(axes, result)
    axes.legend(loc="best", fontsize="small")
    _save(figure, path)


def plot_comparison(outcomes: list[Outcome], path: Path) -> None:
    """Shares over time under each policy, and how long each queue waited."""
    pyplot = _pyplot()
    figure, all_axes = pyplot.subplots(len(outcomes) + 1, 1, figsize=(9, 3 * len(outcomes) + 3))
    for axes, outcome in zip(all_axes, outcomes, strict=False):
        _draw_shares(axes, outcome.result)
        axes.set_title(f"{outcome.policy}: Jain {outcome.result.evenness:.3f}", fontsize="medium")
    all_axes[0].legend(loc="best", fontsize="x-small", ncols=2)
    queues = list(outcomes[0].mean_waits_s)
    for number, outcome in enumerate(outcomes):
        places = [index + (number - len(outcomes) / 2) * 0.8 / len(outcomes) for index in range(len(queues))]
        waits = list(outcome.mean_waits_s.values())
        all_axes[-1].bar(places, waits, width=0.8 / len(outcomes), align="edge", label=outcome.policy)
    all_axes[-1].set_xticks(range(len(queues)), queues)
    all_axes[-1].set_ylabel("mean wait, seconds")
    all_axes[-1].legend(fontsize="small")
    _save(figure, path)


def _pyplot() -> Any:
    try:
        import_module("matplotlib").use("Agg")
    except ModuleNotFoundError as error:
        raise ScenarioError("--plot: to draw, pip install matplotlib") from error
    return import_module("matplotlib.pyplot")


def _draw_shares(axes: Any, result: Result) -> None:
    times = [at / 1000 for at, _ in result.series]
    for queue in result.series[-1][1] if result.series else ():
        axes.step(times, [shares[queue] for _, shares in result.series], where="post", label=queue)
    axes.set_xlabel("seconds")
    axes.set_ylabel("dominant share, by weight")
    axes.set_ylim(bottom=0)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # no such folder; no format of this name
        raise ScenarioError(f"--plot: {path}: {getattr(error, 'strerror', None) or error}") from error
