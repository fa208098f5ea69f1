"""A snapshot is written in pieces while rows come, change and go, and holds what stood in the ledger at its end."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from fakes.cell import FakeTopics
from fakes.clock import FakeClock
from sluice.settings import Settings
from sluice.snapshots import Gathering, Part, Snapshot
from sluice.values import Epoch
from sluice_scheduler import snapshots
from sluice_scheduler.core import State
from sluice_scheduler.core.stored.entities import Cell, Unmanaged
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.ports import Commit
from sluice_scheduler.simulator.cell import CONFIG
from sluice_scheduler.snapshots import Snapshots, entities_of

SETTINGS = Settings(snapshot_records=100, snapshot_minutes=0)


class World:
    """A cell of pools in which anything may change behind each record."""

    def __init__(self, rng: random.Random) -> None:
        self.topics = FakeTopics(SETTINGS)
        self.state = State({}, [Cell(config=CONFIG, next_seq=1)], derives=False)
        self.snapshots = Snapshots(
            cell="default", settings=SETTINGS, log=self.topics, clock=FakeClock(), topics="1/2"
        )
        self.offset = 0
        self.held: dict[int, dict[str, bytes]] = {}  # by offset
        self._rng = rng

    def step(self) -> None:
        for _ in range(self._rng.randint(0, 4)):
            name = f"p{self._rng.randint(0, 60)}"
            pool = Unmanaged(cluster="c", pool=name, pods=self.offset, requests={})
            if self._rng.random() < 0.3:
                self.state.unmanaged.discard(pool.key)
            else:
                self.state.unmanaged.put(pool)
        self.offset += 1
        about: dict[str, Any] = {"expected_offset": 0, "expected_seq": 1, "next_seq": 1, "published": 1}
        commit = Commit(
            epoch=Epoch(1, 1),
            next_offset=self.offset,
            changes=self.state.take_changes(),
            decisions=[],
            **about,
        )
        self.held[self.offset] = self.rows()
        self.snapshots.follow(self.state, commit)

    def rows(self) -> dict[str, bytes]:
        found = {key: self.state.entity(key) for key in self.state.all_keys()}
        return {key: dump(entity) for key, entity in found.items() if entity is not None}

    async def live(self, steps: int) -> None:
        writing = asyncio.create_task(self.snapshots.publish())
        for _ in range(steps):
            self.step()
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        writing.cancel()

    async def found(self) -> list[Snapshot]:
        gathering = Gathering("default")
        found = [gathering.take(received) async for received in self.topics.snapshots(0)]
        return [each for each in found if each is not None]


async def test_it_holds_what_the_ledger_held(monkeypatch: pytest.MonkeyPatch, rng: random.Random) -> None:
    monkeypatch.setattr(snapshots, "ROWS_MAX", 5)
    world = World(rng)
    await world.live(600)
    found = await world.found()
    assert len(found) >= 4
    assert max(len(each.parts) for each in found) > 5
    for each in found:
        assert each.rows() == world.held[each.standing.next_offset]
        assert {entity.key: dump(entity) for entity in entities_of(each)} == each.rows()


@pytest.mark.parametrize("lost", [0, 3, -1])
async def test_one_that_has_lost_a_part_is_none(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random, lost: int
) -> None:
    monkeypatch.setattr(snapshots, "ROWS_MAX", 5)
    world = World(rng)
    await world.live(400)
    before = await world.found()
    torn = before[1]
    del world.topics.log.messages[SETTINGS.snapshots_topic, 0][torn.parts[lost].offset]
    left = [each.standing for each in await world.found()]
    assert left == [each.standing for each in before if each is not torn]


async def test_of_one_that_was_given_up_nothing_more_is_written(
    monkeypatch: pytest.MonkeyPatch, rng: random.Random
) -> None:
    monkeypatch.setattr(snapshots, "ROWS_MAX", 5)
    world = World(rng)
    for _ in range(150):
        world.step()
    world.snapshots.give_up()
    began = world.offset
    await world.live(250)
    records = world.topics.records(SETTINGS.snapshots_topic, 0, 0, 10**6)
    parts = [part for part in map(Part.read, records) if part]
    assert parts
    assert all(int(part.snapshot.rpartition("-")[2]) > began for part in parts)


async def test_a_kafka_that_is_slow_is_not_flooded(rng: random.Random) -> None:
    world = World(rng)
    for _ in range(2_000):
        world.step()
    assert world.snapshots._waiting.qsize() <= snapshots.WAITING_MAX
