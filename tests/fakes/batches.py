"""How records could have been batched otherwise."""

from __future__ import annotations

from sluice.decisions import Decision
from sluice.events import Event
from sluice_scheduler.simulator.cell import SimulatedCell

_feed = SimulatedCell.feed


def one_by_one(cell: SimulatedCell, events: list[Event]) -> list[Decision]:
    """In the place of `SimulatedCell.feed`: a commit behind every record, not one behind all of a moment."""
    last = len(events) - 1
    return [
        decision for index, event in enumerate(events) for decision in _feed(cell, [event], more=index < last)
    ]
