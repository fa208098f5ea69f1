"""A cell that another worker takes over before each record beside one that runs on: they decide the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluice.decisions import Decision
from sluice.events import CellConfig, Event
from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.simulator.cell import CONFIG, SimulatedCell


class TakenOver(SimulatedCell):
    """A ledger gives what it stores back in no order."""

    def _begun_with(self, entities: Iterable[Entity]) -> State:
        return super()._begun_with(reversed(list(entities)))


class TwinCell(SimulatedCell):
    """Statuses aside: who takes over looks through all of them, and may tell one earlier."""

    def __init__(self, policies: Mapping[str, Policy], config: CellConfig = CONFIG) -> None:
        self.other: SimulatedCell | None = None
        super().__init__(policies, config)
        self.other = TakenOver(policies, config, tells=False)

    def feed(self, events: list[Event], *, more: bool = False) -> list[Decision]:
        decisions = super().feed(events, more=more)
        if self.other is not None:
            self.other.restart()
            others = self.other.feed(events, more=more)
            assert [each for each in decisions if each.seq] == [each for each in others if each.seq]
        return decisions
