"""The log of a cell that lived through minutes of churn: what Kafka would hold of it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from fakes.cell import FakeTopics
from property.histories import FlakySimulation
from sluice.chain import BEGINNING, link
from sluice.codec import DECISIONS, EVENTS
from sluice.decisions import Decision
from sluice.events import Event
from sluice.settings import Settings
from sluice.values import Epoch
from sluice_scheduler.simulator import run
from sluice_scheduler.simulator.cell import SimulatedCell
from sluice_scheduler.simulator.scenario import Scenario

SETTINGS = Settings()
EPOCH = Epoch(1, 1)
FORMS = ("workload", "group", "plain", "job")


class RecordedCell(SimulatedCell):
    """Whatever it steps and decides stands in topics."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.topics = FakeTopics(SETTINGS)
        self._chain = BEGINNING
        super().__init__(*arguments, **options)

    def _step(self, offset: int, event: Event) -> list[Decision]:
        decisions = super()._step(offset, event)
        self.topics.tell([EVENTS.encode(event, source="test")])
        published = self.topics.log.messages[SETTINGS.decisions_topic, 0]
        for decision in decisions:
            previous = self._chain if decision.seq else ""
            message = DECISIONS.encode(decision, source="test", epoch=EPOCH, previous=previous)
            published.append(message)
            if decision.seq:
                self._chain = link(previous, DECISIONS.ce_type(decision.type), message.value)
        return decisions


def churn(*, seed: int, lasts_s: int, every_s: float) -> FakeTopics:
    """Applications of three tenants come, grow, shrink, fail and finish; nodes come and go; some writes fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "SimulatedCell", RecordedCell)
        simulation = FlakySimulation(
            Scenario.model_validate(_scenario(random.Random(seed), lasts_s, every_s))
        )
    simulation.run()
    cell = simulation.cell
    assert isinstance(cell, RecordedCell)
    return cell.topics


def _scenario(rng: random.Random, lasts_s: int, every_s: float) -> dict[str, Any]:
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "policy": "drf",
        "tenure": "10s",
        "patience": "20s",
        "pools": [
            {"name": "p", "nodes": 4, "capacity": {"cpu": "8", "gpu": "4"}},
            {"name": "r", "nodes": 1, "capacity": {"cpu": "8"}},
        ],
        "queues": [
            {"name": "ant", "weight": 2},
            {"name": "bee", "guaranteed": {"cpu": "2"}},
            {"name": "cat", "limit": {"cpu": "60%"}, "ordering": "strictFifo"},
        ],
        "events": list(_events(rng, lasts_s, every_s)),
        "until": lasts_s,
    }


def _events(rng: random.Random, lasts_s: int, every_s: float) -> Iterator[dict[str, Any]]:
    names: list[str] = []
    for number in range(int(lasts_s / every_s)):
        at = {"at": number * every_s}
        name = f"{rng.choice(FORMS)}-{number}"
        names.append(name)
        count = rng.randint(1, 5)
        pods = {
            "name": "main",
            "count": count,
            "minCount": rng.randint(0, count),
            "requests": rng.choice(({"cpu": "1"}, {"cpu": "2"}, {"cpu": "1", "gpu": "1"})),
        }
        submit = {"name": name, "queue": rng.choice(("ant", "bee", "cat")), "podSets": [pods]}
        yield at | {"submit": submit | {"runtime": rng.randint(2, 9), "priority": rng.randint(0, 1)}}
        for other in rng.sample(names, min(2, len(names))):
            kind, amount = rng.choice(
                (("grow", "by"), ("shrink", "by"), ("fail", "count"), ("succeed", "count"))
            )
            yield at | {kind: {"workload": other, "podSet": "main", amount: 1}}
        if rng.random() < 0.1:
            yield at | {"setPool": {"name": "p", "nodes": rng.randint(2, 5)}}
