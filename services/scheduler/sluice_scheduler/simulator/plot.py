"""Pictures. matplotlib is asked for only here: install it to use --plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from textwrap import fill
from typing import Any, Final, NamedTuple

from sluice.targets import TargetError, expect_writable

from sluice_scheduler.simulator.compare import Outcome
from sluice_scheduler.simulator.samples import (
    Interval,
    Sample,
    averaged,
    contended_times,
    most_contended,
    window,
)
from sluice_scheduler.simulator.scenario import ScenarioError

#: A picture has no more panels one above the other; the queues that were contended least are only named.
PANELS_MAX: Final = 8
_NAMED_MAX: Final = 20
_LETTERS_PER_INCH: Final = 14
#: More points of a line than this lie over each other: what is drawn instead is their means.
_POINTS_MAX: Final = 300
_HELD, _DESERVED, _ASKED, _CONTENDED = "tab:blue", "black", "tab:red", "0.86"


class Unit(NamedTuple):
    name: str
    ms: int


_SECONDS: Final = Unit("seconds", 1_000)
_UNITS: Final = (
    Unit("days", 24 * 3_600_000),
    Unit("hours", 3_600_000),
    Unit("minutes", 60_000),
)


def unit_of(span_ms: float) -> Unit:
    """The largest of which there are at least three."""
    return next((unit for unit in _UNITS if span_ms >= 3 * unit.ms), _SECONDS)


def expect_picture(path: Path) -> None:
    """ScenarioError if no picture could be written there: asked before a run that takes long."""
    figure = _pyplot().figure()
    try:
        expect_writable(path)
        wanted, known = path.suffix.removeprefix(".").lower(), figure.canvas.get_supported_filetypes()
        if wanted and wanted not in known:
            raise ScenarioError(
                f"--plot: {path}: no picture is called .{wanted}: name one of {', '.join(known)}"
            )
    except TargetError as error:
        raise ScenarioError(f"--plot: {error}: {error.remedy}") from error
    finally:
        _pyplot().close(figure)


def plot_queues(samples: Sequence[Sample], path: Path) -> None:
    _save(draw_queues(samples), path)


def plot_comparison(outcomes: Sequence[Outcome], path: Path) -> None:
    _save(draw_comparison(outcomes), path)


def draw_queues(samples: Sequence[Sample]) -> Any:
    """A panel a queue: what it held, beside what it deserved and asked for."""
    queues = most_contended(samples, PANELS_MAX)
    figure, panels = _pyplot().subplots(
        len(queues), 1, figsize=(9, 1.2 + 1.3 * len(queues)), sharex=True, sharey=True, squeeze=False
    )
    scale = Scale.of([samples], queues)
    for (axes,), queue in zip(panels, queues, strict=True):
        _draw_queue(axes, samples, queue, scale)
        axes.set_title(queue, loc="left", fontsize="small")
    panels[-1][0].set_xlabel(scale.unit.name)
    _finish(figure, [samples], queues)
    return figure


def draw_comparison(outcomes: Sequence[Outcome]) -> Any:
    """The same with a column a policy, and how long each queue waited."""
    everybody = [outcome.samples for outcome in outcomes]
    queues = _most_contended_of_any(everybody)
    rows, columns = len(queues) + 1, len(outcomes)
    figure = _pyplot().figure(figsize=(3 + 3 * columns, 3 + 1.3 * len(queues)))
    grid = figure.add_gridspec(rows, columns, height_ratios=[*[1] * len(queues), 1.6])
    scale = Scale.of(everybody, queues)
    panels: list[list[Any]] = []
    for row, queue in enumerate(queues):
        panels.append([])
        for column, outcome in enumerate(outcomes):
            first = panels[0][0] if panels[0] else None
            axes = figure.add_subplot(grid[row, column], sharex=first, sharey=first)
            panels[row].append(axes)
            _draw_queue(axes, outcome.samples, queue, scale)
            axes.tick_params(labelbottom=row == len(queues) - 1, labelleft=column == 0)
        panels[row][0].set_title(queue, loc="left", fontsize="small")
    for axes, outcome in zip(panels[0], outcomes, strict=True):
        axes.set_title(f"{outcome.policy}: Jain {outcome.result.evenness:.3f}", fontsize="medium")
    for axes in panels[-1]:
        axes.set_xlabel(scale.unit.name)
    _draw_waits(figure.add_subplot(grid[-1, :]), outcomes)
    _finish(figure, everybody, queues)
    return figure


def _pyplot() -> Any:
    try:
        import_module("matplotlib").use("Agg")
    except ModuleNotFoundError as error:
        raise ScenarioError("--plot: to draw, pip install matplotlib") from error
    return import_module("matplotlib.pyplot")


def _most_contended_of_any(everybody: Sequence[Sequence[Sample]]) -> list[str]:
    """The queues of all policies' pictures are the same: those of the first, and of the others what fits."""
    found = [queue for samples in everybody for queue in most_contended(samples, PANELS_MAX)]
    chosen = set(list(dict.fromkeys(found))[:PANELS_MAX])
    return [queue for queue in everybody[0][0].portions if queue in chosen]


class Scale(NamedTuple):
    """What all panels of a picture share: the time that they show, in which unit, and up to which share."""

    within: Interval
    unit: Unit
    top: float

    @classmethod
    def of(cls, everybody: Sequence[Sequence[Sample]], queues: Sequence[str]) -> Scale:
        within = window(everybody)
        drawn = [averaged(samples, within, _POINTS_MAX) for samples in everybody]
        return cls(within, unit_of(within.end_ms - within.start_ms), _top(drawn, queues))


def _draw_queue(axes: Any, samples: Sequence[Sample], queue: str, scale: Scale) -> None:
    """What is beyond the scale runs along its edge."""
    unit, top = scale.unit, scale.top
    contended = contended_times(samples)
    samples = _to_the_end(averaged(samples, scale.within, _POINTS_MAX), scale.within.end_ms)
    times = [sample.at_ms / unit.ms for sample in samples]
    waits = [(start / unit.ms, (end - start) / unit.ms) for start, end in contended]
    axes.broken_barh(waits, (0, 1), transform=axes.get_xaxis_transform(), color=_CONTENDED, zorder=0)
    held = [sample.portions[queue].held for sample in samples]
    axes.fill_between(times, held, step="post", color=_HELD, alpha=0.6, linewidth=0.5)
    for figures, style in (
        ([sample.portions[queue].deserved for sample in samples], {"color": _DESERVED}),
        ([sample.portions[queue].asked for sample in samples], {"color": _ASKED, "linestyle": "--"}),
    ):
        if any(figure is not None for figure in figures):
            known = [float("nan") if figure is None else min(figure, 0.99 * top) for figure in figures]
            axes.step(times, known, where="post", linewidth=1, **style)
    axes.set_xlim(scale.within.start_ms / unit.ms, scale.within.end_ms / unit.ms)
    axes.set_ylim(0, top)


def _to_the_end(samples: Sequence[Sample], end_ms: int) -> Sequence[Sample]:
    """Another policy's run may be longer: in one that is over nothing changes any more."""
    last = samples[-1]
    return [*samples, replace(last, at_ms=end_ms)] if last.at_ms < end_ms else samples


def _draw_waits(axes: Any, outcomes: Sequence[Outcome]) -> None:
    queues = list(outcomes[0].mean_waits_s)
    unit = unit_of(max((wait * 1000 for each in outcomes for wait in each.mean_waits_s.values()), default=0))
    width = 0.8 / len(outcomes)
    for number, outcome in enumerate(outcomes):
        places = [index + (number - len(outcomes) / 2) * width for index in range(len(queues))]
        waits = [wait * 1000 / unit.ms for wait in outcome.mean_waits_s.values()]
        axes.bar(places, waits, width=width, align="edge", label=outcome.policy)
    axes.set_xticks(range(len(queues)), queues)
    if len(queues) > PANELS_MAX:
        axes.tick_params(axis="x", labelrotation=90, labelsize="x-small")
    axes.set_ylabel(f"mean wait, {unit.name}")
    axes.legend(fontsize="small")


def _finish(figure: Any, everybody: Sequence[Sequence[Sample]], queues: Sequence[str]) -> None:
    """What all panels share: a legend, and the names of the queues that have no panel."""
    width, height = figure.get_size_inches()
    figure.supylabel("dominant share, by weight", fontsize="medium")
    others = [queue for queue in everybody[0][0].portions if queue not in queues]
    _legend(figure, [portion for samples in everybody for portion in samples], queues)
    if others:
        more = f" and {len(others) - _NAMED_MAX} more" if len(others) > _NAMED_MAX else ""
        text = f"contended less, and not drawn: {', '.join(others[:_NAMED_MAX])}{more}"
        figure.supxlabel(fill(text, int(width * _LETTERS_PER_INCH)), fontsize="small")
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / height))


def _save(figure: Any, path: Path) -> None:
    try:
        figure.savefig(path, dpi=120)
    except (OSError, ValueError) as error:  # no such folder; no format of this name
        raise ScenarioError(f"--plot: {path}: {getattr(error, 'strerror', None) or error}") from error
    finally:
        _pyplot().close(figure)


def _legend(figure: Any, samples: Sequence[Sample], queues: Sequence[str]) -> None:
    patch, line = import_module("matplotlib.patches").Patch, import_module("matplotlib.lines").Line2D
    drawn = [sample.portions[queue] for sample in samples for queue in queues]
    handles = [patch(color=_HELD, alpha=0.6, linewidth=0, label="held")]
    if any(portion.deserved is not None for portion in drawn):
        handles.append(line([], [], color=_DESERVED, linewidth=1, label="deserved"))
    if any(portion.asked is not None for portion in drawn):
        handles.append(line([], [], color=_ASKED, linewidth=1, linestyle="--", label="asked for"))
    handles.append(patch(color=_CONTENDED, label="some pod waits"))
    figure.legend(handles=handles, loc="upper right", ncols=len(handles), fontsize="small", frameon=False)


def _top(everybody: Sequence[Sequence[Sample]], queues: Sequence[str]) -> float:
    """Of the scale: all that was held and deserved. Much more may be asked for than there is."""
    drawn = [sample.portions[queue] for samples in everybody for sample in samples for queue in queues]
    highest = max((max(portion.held, portion.deserved or 0.0) for portion in drawn), default=0.0)
    asked = max((portion.asked or 0.0 for portion in drawn), default=0.0)
    return 1.05 * max(highest, min(asked, 1.25 * highest)) or 1.0
