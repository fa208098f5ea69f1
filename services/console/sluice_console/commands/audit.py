"""`sluice audit`: both logs as one."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Final

from sluice_console import letters
from sluice_console.commands import Context
from sluice_console.errors import OK, ConsoleError
from sluice_console.lines import Line, LogLines, Source, merged
from sluice_console.topics import Topics, dead_letter_topics

_POLL_S: Final = 1.0
#: An idle cell's log is all ticks; so many records from its end nobody looks for anything else.
_LOOK_BACK_MAX: Final = 20_000


def show_tail(context: Context) -> int:
    """One cell's logs after another's; only one can be followed."""
    cells = context.cells
    if context.options.follow and len(cells) > 1:
        raise ConsoleError(
            "only one cell can be followed at a time", remedy=f"name one with --cell: {', '.join(cells)}"
        )
    for cell in cells:
        _tail(context, context.settings.cells[cell])
    return OK


def show_dead_letters(context: Context) -> int:
    """The last of each log's, cell by cell."""
    settings, shown = context.settings, 0
    names = dead_letter_topics(settings)
    for cell in context.cells:
        with Topics(settings, settings.cells[cell], names) as topics:
            bounds = topics.bounds()
            found = topics.read({name: bound.last(context.options.n) for name, bound in bounds.items()})
        for letter in [letter for name in names for letter in found[name]]:
            shown += 1
            if context.options.json:
                context.print_json(letters.as_json(letter))
            else:
                context.out.print(letters.as_text(letter), soft_wrap=True)
    if not shown and not context.options.json:
        context.out.print("no dead letters")
    return OK


def _tail(context: Context, partition: int) -> None:
    options, settings = context.options, context.settings
    sources: dict[str, Source] = {settings.events_topic: "event", settings.decisions_topic: "decision"}
    chosen = {
        name: source
        for name, source in sources.items()
        if not (options.events and source == "decision") and not (options.decisions and source == "event")
    }
    with Topics(settings, partition, tuple(chosen)) as topics:
        logs = {name: LogLines(source) for name, source in chosen.items()}
        _print_lines(context, _last_lines(topics, logs, options.n, ticks=options.ticks))
        while options.follow:
            arrived = topics.poll(_POLL_S)
            fresh = merged([logs[name].of(records) for name, records in arrived.items()])
            _print_lines(context, (line for line in fresh if options.ticks or not line.is_tick))


def _last_lines(topics: Topics, logs: dict[str, LogLines], wanted: int, *, ticks: bool) -> Sequence[Line]:
    """The last lines that are shown, reading further back until there are enough of them.

    One log may reach further back in time than the other: only behind the beginnings of both is all there.
    """
    bounds = topics.bounds()
    depth = 2 * wanted + 200
    while True:
        spans = {name: bound.last(depth) for name, bound in bounds.items()}
        records = topics.read(spans)
        lines = {name: logs[name].of(records[name]) for name in logs}
        cut = [lines[name] for name in lines if spans[name].first > bounds[name].first and lines[name]]
        whole_from_ms = max((log[0].time_ms for log in cut), default=0)
        shown = [line for line in merged(list(lines.values())) if ticks or not line.is_tick]
        whole = [line for line in shown if line.time_ms >= whole_from_ms]
        if len(whole) >= wanted or not cut or depth >= _LOOK_BACK_MAX:
            return shown[-wanted:] if wanted else ()
        depth *= 4
        logs.update({name: log.afresh() for name, log in logs.items()})


def _print_lines(context: Context, lines: Iterable[Line]) -> None:
    for line in lines:
        if context.options.json:
            context.print_json(line.as_json())
        else:
            context.out.print(line.as_text(), soft_wrap=True)
    sys.stdout.flush()
