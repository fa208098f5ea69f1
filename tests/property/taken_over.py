"""A cell that runs on beside one that another worker takes over before each record: they never differ."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.twins import TwinCell
from objects import Objects
from properties import Content, differences
from sluice_scheduler.core.passes.budget import Budget
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import Entity, Report
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.simulator.cell import SimulatedCell


def whoever_takes_over_decides_the_same(content: Content) -> None:
    objects = Objects(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Budget.__init__, "__defaults__", (content["pieces"],))
        for _ in objects.play():
            _compare(objects.cell)


def _compare(cell: TwinCell) -> None:
    assert cell.other is not None
    wrong = [*cell.state.validate(), *cell.other.state.validate()]
    assert not wrong, wrong
    one, other = stored(cell), stored(cell.other)
    assert one == other, differences(one, other)


def stored(cell: SimulatedCell) -> dict[str, bytes]:
    """What there is but for statuses, which only one of the two cells tells."""
    entities = (entity for table in cell.state._tables.values() for entity in table)
    return {each.key: dump(_unshown(each)) for each in entities if not isinstance(each, Report)}


def _unshown(entity: Entity) -> Entity:
    return replace(entity, shown="", reclaimed={}) if isinstance(entity, Workload) else entity
