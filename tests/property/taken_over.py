"""A cell that runs on beside one that another worker takes over before each record: they never differ."""

from __future__ import annotations

from dataclasses import replace

from objects import Objects
from properties import Content, differences
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import Entity, Report
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.simulator.cell import SimulatedCell


def whoever_takes_over_decides_the_same(content: Content) -> None:
    objects = Objects(content)
    for _ in objects.play():
        one, other = objects.cell, objects.cell.other
        assert other is not None
        wrong = [*one.state.validate(), *other.state.validate()]
        assert not wrong, wrong
        there, others = stored(one), stored(other)
        assert there == others, differences(there, others)


def stored(cell: SimulatedCell) -> dict[str, bytes]:
    """What there is but for statuses, which only one of the two cells tells."""
    entities = (entity for table in cell.state._tables.values() for entity in table)
    return {each.key: dump(_unshown(each)) for each in entities if not isinstance(each, Report)}


def _unshown(entity: Entity) -> Entity:
    return replace(entity, shown="", reclaimed={}) if isinstance(entity, Workload) else entity
