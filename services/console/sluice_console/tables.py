"""Queues on a terminal: a table, one in full, the tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table
from rich.text import Text
from rich.tree import Tree
from sluice.values import Resources

from sluice_console import wording
from sluice_console.views import (
    PATIENCE,
    START_DEADLINE,
    TENURE,
    ConditionView,
    Figures,
    QueueView,
    by_supply,
    roots_first,
)

_NOT_YET = "not reported yet"


def show_list(console: Console, views: Sequence[QueueView]) -> None:
    table = plain_table()
    cells = {view.cell for view in views}
    headers = [
        "QUEUE",
        "WEIGHT",
        "SHARE",
        "OF",
        "USAGE",
        "DEMAND",
        "FAIR SHARE",
        "PENDING",
        "RUNNING",
    ]
    applications = ["APPS PENDING", "APPS ADMITTED"] if any(map(_has_applications, views)) else []
    headers += [*applications, "CONDITIONS"]
    for header in [*headers, "CELL"] if len(cells) > 1 else headers:
        is_number = header in ("WEIGHT", "SHARE", "PENDING", "RUNNING", *applications)
        table.add_column(header, justify="right" if is_number else "left", overflow="fold")
    for view in views:
        counts = _application_cells(view) if applications else []
        row = [view.name, str(view.weight), *_cells(view), *counts, _concerns(view)]
        table.add_row(*map(escape, [*row, view.cell] if len(cells) > 1 else row))
    console.print(table)
    tell_concerns(console, views)


def tell_concerns(console: Console, views: Sequence[QueueView]) -> None:
    """Each thing that somebody should look at, in its own sentence."""
    for view in views:
        for condition in view.concerns:
            console.print(
                Text.assemble((f"{view.name}: ", "bold"), (f"{condition.word}: ", "red"), condition.message),
                soft_wrap=True,
            )


def show_queue(
    console: Console,
    view: QueueView,
    *,
    below: Sequence[str],
    namespaces: Sequence[str],
    capacity: Resources,
    supplies: Mapping[str, str] | None = None,
) -> None:
    lines = _spec(view, below, namespaces)
    if figures := view.figures:
        of = f" of {figures.dominant_resource}, by weight" if figures.dominant_resource else ""
        lines["share"] = f"{figures.dominant_share}{of}"
        waits = figures.pending or figures.pending_workloads
        hint = f"; `sluice explain {view.name}` says why they wait" if waits else ""
        lines["pods"] = f"{figures.pending} pending, {figures.running} running{hint}"
        lines["apps"] = f"{figures.pending_workloads} pending, {figures.admitted_workloads} admitted"
        lines["lost work"] = _lost_work(figures)
    grid = plain_table(show_header=False)
    grid.add_column(style="dim")
    grid.add_column(overflow="fold")
    for name, value in lines.items():
        grid.add_row(name, escape(value))
    console.print(Text(f"queue {view.name}", style="bold"))
    console.print(grid)
    console.print()
    if figures is None:
        console.print(f"{_NOT_YET}: see `sluice status`")
        return
    console.print(_amounts_table(figures, capacity, supplies))
    if len({key.partition("/")[0] for key in figures.usage}) > 1:
        console.print()
        console.print(_pools_table(figures.usage, capacity))
    console.print()
    console.print(_conditions_table(figures.conditions))


def _spec(view: QueueView, below: Sequence[str], namespaces: Sequence[str]) -> dict[str, str]:
    facts = view.facts
    return {
        "cell": view.cell,
        "parent": view.parent or "none: a root",
        "below it": ", ".join(below) or "none",
        "weight": str(view.weight),
        "guaranteed": _bounds(facts["guaranteed"], facts["guaranteed_by_pool"]) or "nothing",
        "limit": _bounds(facts["limit"], facts["limit_by_pool"]) or "none",
        "ordering": facts["ordering"],
        "policy": facts["policy"] or "its parent's, at a root the cell's",
        "reclaim": _reclaim(facts),
        "tenure": _time(view, TENURE),
        "reservation": f"after {_time(view, PATIENCE)}" if facts["reserves"] else "off",
        "start deadline": _time(view, START_DEADLINE) if view.seconds(START_DEADLINE) else "none",
        "preemption": facts["preemption"],
        "namespaces": ", ".join(namespaces) or "none is bound to it",
    }


def show_tree(console: Console, views: Sequence[QueueView]) -> None:
    roots: list[Tree] = []
    path: list[Tree] = []  # from a root down to where the next queue hangs
    for depth, view in roots_first(views):
        del path[depth:]
        label = _label(view)
        path.append(path[-1].add(label) if path else Tree(label, guide_style="dim"))
        if not depth:
            roots.append(path[0])
    for root in roots:
        console.print(root, soft_wrap=True)


class _Trimmed(Table):
    """Without blanks at the ends of lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        segments = (each for each in super().__rich_console__(console, options) if isinstance(each, Segment))
        for line in Segment.split_lines(segments):
            while line and not line[-1].text.strip():
                line.pop()
            if line:
                line[-1] = line[-1]._replace(text=line[-1].text.rstrip())
            yield from line
            yield Segment.line()


def plain_table(*, show_header: bool = True) -> Table:
    """Columns and nothing else: reads as well in a file as on a terminal."""
    return _Trimmed(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header, header_style="bold"
    )


def _cells(view: QueueView) -> list[str]:
    figures = view.figures
    if figures is None:
        return ["-"] * 5 + ["-", "-"]
    return [
        figures.dominant_share,
        figures.dominant_resource or "-",
        wording.amounts(figures.usage),
        wording.amounts(figures.demand),
        wording.amounts(figures.fair_share),
        str(figures.pending),
        str(figures.running),
    ]


def _has_applications(view: QueueView) -> bool:
    return view.figures is not None and view.figures.has_applications


def _application_cells(view: QueueView) -> list[str]:
    figures = view.figures
    if figures is None:
        return ["-", "-"]
    return [str(figures.pending_workloads), str(figures.admitted_workloads)]


def _lost_work(figures: Figures) -> str:
    """Running time that was taken from a queue."""
    if not figures.lost_work_ms:
        return "none"
    return f"{wording.age(figures.lost_work_ms)}, {wording.age(figures.lost_work_hour_ms)} in the last hour"


def _concerns(view: QueueView) -> str:
    if view.figures is None:
        return _NOT_YET
    return ", ".join(condition.word for condition in view.concerns) or "-"


def _label(view: QueueView) -> Text:
    label = Text.assemble((view.name, "bold"), (f"  weight {view.weight}", "dim"))
    figures = view.figures
    if figures is None:
        return label.append(f"  {_NOT_YET}", "yellow")
    label.append(f"  share {figures.dominant_share}", "cyan")
    if figures.dominant_resource:
        label.append(f" of {figures.dominant_resource}", "dim")
    label.append(f"  {figures.running} running, {figures.pending} pending")
    if figures.has_applications:
        label.append(f", apps: {figures.admitted_workloads} admitted, {figures.pending_workloads} pending")
    for word, amounts in (("holds", figures.usage), ("deserves", figures.fair_share)):
        if amounts:
            label.append(f"  {word} {wording.amounts(amounts)}", "dim")
    for condition in view.concerns:
        label.append(f"  {condition.word}: {condition.message}", "red")
    return label


def _amounts_table(figures: Figures, capacity: Resources, supplies: Mapping[str, str] | None) -> Table:
    """A row a resource of each supply, as shares are measured."""
    usage, whole = figures.usage, capacity
    if supplies is not None:
        usage, whole = by_supply(usage, supplies), by_supply(whole, supplies)
    return _rows(
        {"USAGE": usage, "DEMAND": figures.demand, "FAIR SHARE": figures.fair_share},
        {"CAPACITY": whole},
        of="RESOURCE",
    )


def _pools_table(usage: Resources, capacity: Resources) -> Table:
    return _rows({"USAGE": usage}, {"CAPACITY": capacity}, of="IN POOL")


def _rows(columns: Mapping[str, Resources], beside: Mapping[str, Resources], *, of: str) -> Table:
    """A row for each key of the columns; those beside them have more keys than anybody wants to see."""
    table = plain_table()
    for header in (of, *columns, *beside):
        table.add_column(header, justify="left" if header == of else "right")
    for key in sorted({key for column in columns.values() for key in column}):
        resource = wording.split(key)[1]
        shown = [*columns.values(), *beside.values()]
        table.add_row(
            escape(key), *(wording.amount(resource, each[key]) if key in each else "-" for each in shown)
        )
    return table


def _conditions_table(conditions: Sequence[ConditionView]) -> Table:
    table = plain_table()
    for header in ("CONDITION", "STATUS", "SINCE", "MESSAGE"):
        table.add_column(header, overflow="fold")
    for condition in conditions:
        table.add_row(
            Text(condition.type, style="red" if condition.matters else ""),
            condition.status,
            wording.date_time(condition.since_ms),
            escape(condition.message) or "as expected",
        )
    return table


def _bounds(amounts: Mapping[str, str], by_pool: Mapping[str, Mapping[str, str]]) -> str:
    words = [f"{resource} {text}" for resource, text in amounts.items()]
    words += [f"{pool}/{resource} {text}" for pool, own in by_pool.items() for resource, text in own.items()]
    return ", ".join(words)


def _time(view: QueueView, time: str) -> str:
    seconds = f"{view.seconds(time)} s"
    return seconds if view.says(time) else f"{seconds}, the cell's"


def _reclaim(facts: Mapping[str, Any]) -> str:
    if not facts["reclaim"]:
        return "off"
    grace, least = facts["grace_ms"] // 1000, facts["minimum_run_ms"] // 1000
    after = f"after {least} s of running" if least else "at any time"
    return f"on, {after}, with {grace} s of grace" if grace else f"on, {after}, without grace"
