"""What `python -m tests.bench.core` prints and draws: each figure as soon as it is known, beside its aim."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from . import core_costs as costs

#: By size.
Figures = Mapping[int, float]


class Panel(NamedTuple):
    """Cost against size; a line for each way to measure it, and what it shall stay under."""

    title: str
    size: str
    unit: str
    lines: dict[str, Figures]
    aim: float | None = None


class Report:
    """`scale`: what sizes are divided by, for a quick look; aims are for the full size."""

    def __init__(self, scale: int) -> None:
        self._scale = scale
        self.panels: list[Panel] = []

    def of(self, size: int) -> int:
        return max(1, size // self._scale)

    def row(self, what: str, figure: float, unit: str, *, most: float = 0, least: float = 0) -> float:
        verdict = ""
        if self._scale == 1 and (most or least):
            kept = figure <= most if most else figure >= least
            verdict = f"{'under' if most else 'over'} {most or least:,g} {unit}{'' if kept else '   MISSED'}"
        shown = f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"
        print(f"{what:<72} {shown:>9} {unit:<6} {verdict}")
        return figure

    def admissions(self) -> None:
        """An aim is three quarters of what the first edition does on the same machine: side by side in
        docs/benchmarks.md."""
        lines: dict[str, dict[str, dict[int, float]]] = {"queues": {}, "pending pods": {}}
        for fan_out, name in ((0, "flat"), (costs.FAN_OUT, f"{costs.FAN_OUT} to a parent")):
            by_queues = lines["queues"][name] = {}
            by_pending = lines["pending pods"][name] = {}
            for queues in (100, 300, 1_000):
                n = self.of(queues)
                by_queues[n] = costs.admission_us(n, self.of(100_000), fan_out=fan_out)
            largest = by_queues[self.of(1_000)]
            for pending in (1_000, 10_000):
                n = self.of(pending)
                by_pending[n] = costs.admission_us(self.of(1_000), n, fan_out=fan_out)
            by_pending[self.of(100_000)] = largest
            what = f"admissions, {self.of(1_000):,} queues, {self.of(100_000):,} pending, {name}"
            self.row(what, 1e6 / largest, "/s")
            first, *_, last = by_pending.values()
            self.row("  of that: cost by size, most pending to fewest", last / first, "x", most=1.5)
            first, *_, last = by_queues.values()
            self.row("  of that: cost by size, most queues to fewest", last / first, "x", most=1.5)
        for size, by_name in lines.items():
            self.panels.append(Panel(f"an admission, by {size}", size, "us", dict(by_name)))
        self.row(f"{self.of(100_000):,} pending pods", costs.memory_mb(self.of(100_000)), "MB")

    def shapes(self) -> None:
        lines: dict[str, dict[int, float]] = {"in 1 queue": {}, "in 100 queues": {}}
        for queues, found in ((1, lines["in 1 queue"]), (self.of(100), lines["in 100 queues"])):
            for size in (1_000, 10_000, 100_000):
                n = self.of(size)
                came, found[n] = costs.shapes_us(n, queues)
            what = f"{n:,} pending of as many shapes, {queues} queues"
            self.row(f"{what}: an admission", found[n], "us", most=100)
            self.row(f"{what}: an arrival", came, "us")
        self.panels.append(Panel("an admission of many shapes", "shapes", "us", dict(lines), 100))

    def one_pod(self) -> None:
        small: dict[int, float] = {}
        wide: dict[int, float] = {}
        for queues in (100, 300, 1_000, 3_000):
            n = self.of(queues)
            one = costs.end_in_full(n)
            small[n] = one.mean_ms
            if queues == 1_000:
                self.row(f"a pod ends, full: {n:,} queues, 1 pool", one.mean_ms, "ms", most=1)
                self.row("  of that: the longest step", one.most_ms, "ms")
                tree = costs.end_in_full(n, fan_out=costs.FAN_OUT)
                self.row("  the same in a tree", tree.mean_ms, "ms", most=1)
            if queues <= 1_000:
                many = costs.end_in_full(n, pools=20, kinds=10, fan_out=costs.FAN_OUT)
                wide[n] = many.mean_ms
        self.row(
            f"a pod ends, full: {self.of(1_000):,} queues, 20 pools, 10 kinds", many.mean_ms, "ms", most=5
        )
        self.row("  of that: the longest step", many.most_ms, "ms")
        lines: dict[str, Figures] = {"1 pool": small, "20 pools, 10 kinds": wide}
        self.panels.append(Panel("a pod ends in a full cluster", "queues", "ms", lines))
        arrived, shown, ended = costs.life_us(10, self.of(20_000))
        self.row("a pod's life: it arrives and is admitted", arrived, "us")
        self.row("  it is seen open", shown, "us")
        self.row("  it ends", ended, "us")
        self.row("an event that changes nothing", costs.no_op_us(self.of(10_000)), "us", most=50)

    def ticks(self) -> None:
        by_queues = {n: costs.ticks_ms(n) for n in map(self.of, (250, 500, 1_000, 2_000))}
        n = max(by_queues)
        self.row(
            f"a tick: {n:,} queues, 20 pools, 50 kinds, with room", by_queues[n].with_room, "ms", most=50
        )
        self.row("  where every queue waits", by_queues[n].all_wait, "ms", most=50)
        self.row("  where all that wait are bound to a pool each", by_queues[n].all_bound, "ms", most=50)
        lines: dict[str, Figures] = {
            "with room": {n: each.with_room for n, each in by_queues.items()},
            "every queue waits": {n: each.all_wait for n, each in by_queues.items()},
            "all bound to a pool each": {n: each.all_bound for n, each in by_queues.items()},
        }
        self.panels.append(Panel("a tick, 20 pools, 50 kinds", "queues", "ms", lines, 50))
        event, tick = costs.young_ms(self.of(4_000), self.of(100))
        what = f"{self.of(4_000):,} young victims, {self.of(100)} claimants"
        self.row(f"{what}: an event", event, "ms", most=2)
        self.row(f"{what}: a tick", tick, "ms", most=2)

    def taking_back(self) -> None:
        lines: dict[str, Figures] = {}
        for claimants in (1, 200):
            for sizes, name in ((costs.alike, "alike"), (costs.mixed, "of mixed sizes")):
                found: dict[int, float] = {}
                for count in (1_000, 2_000, 4_000):
                    taken = costs.taken_back(self.of(count), sizes=sizes, claimants=self.of(claimants))
                    found[self.of(count)] = taken.work_s
                what = f"taking back {taken.pods:,} pods {name}, {self.of(claimants)} claimants"
                self.row(what, taken.work_s, "s", most=1)
                self.row("  of that: the longest step", taken.longest_ms, "ms", most=100)
                lines[f"{name}, {self.of(claimants)} claimants"] = found
        self.panels.append(Panel("taking back, all the work", "pods", "s", lines, 1))

    def edits(self) -> None:
        lines: dict[str, dict[int, float]] = {"a Queue": {}, "a node": {}, "a pool": {}}
        for pods in (10_000, 30_000, 100_000):
            n = self.of(pods)
            found = costs.edits(n, self.of(1_000))
            for name, figure in zip(lines, found, strict=False):
                lines[name][n] = figure
        for name in lines:
            self.row(f"an edit of {name}, {n:,} pods: the longest step", lines[name][n], "ms", most=100)
        self.row(f"a tick, {n:,} pods in one pool", found.tick_ms, "ms", most=50)
        self.panels.append(Panel("an edit, the longest step", "pods", "ms", dict(lines), 100))


def plot(panels: Iterable[Panel], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    drawn = list(panels)
    columns: Final = 4
    rows = -(-len(drawn) // columns)
    figure, grid = pyplot.subplots(rows, columns, figsize=(3.6 * columns, 3.2 * rows), squeeze=False)
    places = [axes for row in grid for axes in row]
    for axes in places[len(drawn) :]:
        axes.set_visible(False)
    for axes, panel in zip(places, drawn, strict=False):
        _draw(axes, panel)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _draw(axes: Any, panel: Panel) -> None:
    for name, figures in panel.lines.items():
        axes.plot(list(figures), list(figures.values()), marker="o", markersize=4, label=name)
    if panel.aim is not None:
        axes.axhline(
            panel.aim, color="0.5", linestyle="--", linewidth=1, label=f"aim: {panel.aim:g} {panel.unit}"
        )
    sizes = sorted({size for figures in panel.lines.values() for size in figures})
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.minorticks_off()
    highest = max(figure for figures in panel.lines.values() for figure in figures.values())
    axes.set_ylim(0, 1.1 * max(highest, panel.aim or 0.0) * (1.3 if len(panel.lines) > 3 else 1))
    axes.set_title(panel.title, fontsize="medium")
    axes.set_xlabel(panel.size)
    axes.set_ylabel(panel.unit)
    axes.legend(fontsize="x-small", framealpha=0.6)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    options = parser.parse_args(arguments)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    report = Report(10 if options.quick else 1)
    measured: list[Callable[[], None]] = [
        report.admissions,
        report.shapes,
        report.one_pod,
        report.ticks,
        report.taking_back,
        report.edits,
    ]
    for measure in measured:
        measure()
    if not options.quick:
        report.row("the openb trace under drf, fifo and usage-drf", costs.openb_s(), "s")
    if options.plot:
        plot(report.panels, options.plot)
