"""A cell that another worker takes over before each record beside one that runs on: they decide the same."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.decisions import Decision
from sluice.events import CellConfig, Event
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.simulator.cell import CONFIG, SimulatedCell


class TwinCell(SimulatedCell):
    """Statuses aside: who takes over looks through all of them, and may tell one earlier."""

    def __init__(self, policies: Mapping[str, Policy], config: CellConfig = CONFIG) -> None:
        self._other: SimulatedCell | None = None
        super().__init__(policies, config)
        self._other = SimulatedCell(policies, config, tells=False)

    def feed(self, events: list[Event], *, more: bool = False) -> list[Decision]:
        decisions = super().feed(events, more=more)
        if self._other is not None:
            self._other.restart()
            others = self._other.feed(events, more=more)
            assert [each for each in decisions if each.seq] == [each for each in others if each.seq]
        return decisions
