"""`sluice status`: whether all is well."""

from __future__ import annotations

import time

from sluice_console import health
from sluice_console.commands import Context
from sluice_console.errors import OK, PROBLEM
from sluice_console.lines import LogLines
from sluice_console.redis_reader import Snapshot
from sluice_console.topics import Topics, dead_letter_topics


def show(context: Context) -> int:
    found = [_cell_status(context, snapshot) for snapshot in context.snapshots(health.KINDS)]
    missing = [cell for cell in context.cells if cell not in {each.cell for each in found}]
    if context.options.json:
        context.print_json({"cells": [each.as_json() for each in found], "notBegun": missing})
    else:
        for each in found:
            health.show_status(context.out, each)
        for cell in missing:
            context.out.print(f"cell {cell} has not begun: no scheduler has taken it over", style="red")
    return PROBLEM if missing or any(each.problems for each in found) else OK


def _cell_status(context: Context, snapshot: Snapshot) -> health.CellStatus:
    settings = context.settings
    partition = settings.cells[snapshot.cell]
    logs = (settings.events_topic, settings.decisions_topic)
    letters = dead_letter_topics(settings)
    with Topics(settings, partition, (*logs, *letters)) as topics:
        bounds = topics.bounds()
        recent = topics.read({name: bounds[name].last(health.RECENT) for name in logs})
    return health.judge(
        snapshot,
        partition=partition,
        events=bounds[settings.events_topic],
        recent_events=LogLines("event").of(recent[settings.events_topic]),
        recent_decisions=LogLines("decision").of(recent[settings.decisions_topic]),
        dead_letters=sum(bounds[name].end - bounds[name].first for name in letters),
        now_ms=time.time_ns() // 1_000_000,
    )
