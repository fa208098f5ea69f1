"""Pictures. matplotlib is asked for only here: install it to use --plot."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from sluice_scheduler.simulator.run import Result


def plot_shares(result: Result, path: Path) -> None:
    """The queues' dominant shares over time."""
    mpl = import_module("matplotlib")
    mpl.use("Agg")
    pyplot = import_module("matplotlib.pyplot")

    times = [at / 1000 for at, _ in result.series]
    figure, axes = pyplot.subplots(figsize=(9, 4.5))
    for queue in result.series[-1][1] if result.series else ():
        axes.step(times, [shares[queue] for _, shares in result.series], where="post", label=queue)
    axes.set_xlabel("seconds")
    axes.set_ylabel("dominant share, by weight")
    axes.set_ylim(bottom=0)
    axes.legend(loc="best", fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
