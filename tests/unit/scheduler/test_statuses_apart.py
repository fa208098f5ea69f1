"""Statuses have no place in the sequence of decisions: they may be lost, told again, or told in other words."""

from __future__ import annotations

import asyncio
import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from fakes.owned_cell import SETTINGS, OwnedCell, until
from sluice.codec import DECISIONS, EPOCH_HEADER, find_header
from sluice.decisions import Admit, CreateWorkload, Decision, ReportPool, ReportQueue, ReportWorkload, Status
from sluice.events import (
    OutcomeEvent,
    PodEvent,
    PodFacts,
    PodSetFacts,
    TickEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.values import Epoch
from sluice_scheduler import published, takeover
from sluice_scheduler.core.reports import report, shown
from sluice_scheduler.ledger import OutboxEntry
from sluice_scheduler.ledger.memory import MemoryLedger

START_MS = 2_000_000


@pytest.fixture
async def cell() -> OwnedCell:
    """It is open, ten pods are admitted, statuses of its queue and pool were told, and nobody owns it."""
    cell = OwnedCell()
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        tick(cell, START_MS)
        await until(lambda: cell.admitted == 10 and len(told(cell, Status)) == 2)
        await rest(cell, START_MS)
    return cell


async def rest(cell: OwnedCell, time_ms: int) -> None:
    """Three commits in which nothing changes: the ledger says by the last that all statuses are published."""
    for later_ms in (10, 20, 30):
        tick(cell, time_ms + later_ms)
        await cell.settled()
        await asyncio.sleep(0.01)


def tick(cell: OwnedCell, time_ms: int) -> None:
    cell.tell(TickEvent(time_ms=time_ms, cluster=SETTINGS.cluster))


def application(cell: OwnedCell, name: str) -> None:
    main = PodSetFacts(name="main", count=2, min_count=2, max_count=None, requests={"cpu": 1})
    facts = WorkloadFacts(pod_sets=(main,), created_ms=1, kind="RayCluster", suspendable=True)
    cell.see(WorkloadEvent, name, namespace="a", workload=facts)


def told(cell: OwnedCell, kind: type[Decision]) -> list[Any]:
    return [each for each in cell.decisions if isinstance(each, kind)]


def sequence(cell: OwnedCell) -> list[tuple[int, bytes]]:
    """The decisions that have a place in it, and their bytes."""
    every = zip(cell.decisions, cell.published, strict=True)
    return [(decision.seq, message.value) for decision, message in every if decision.seq]


async def keep(cell: OwnedCell, cuts: list[MemoryLedger]) -> None:
    """A backup after each commit."""
    write = cell.ledger.write

    def kept(name: str, commit: Any) -> None:
        write(name, commit)
        backup = MemoryLedger()
        backup._cells = copy.deepcopy(cell.ledger._cells)
        cuts.append(backup)

    cell.ledger.write = kept  # type: ignore[method-assign, assignment]


async def test_statuses_are_published_and_take_no_seq(cell: OwnedCell) -> None:
    assert [type(each) for each in cell.decisions if not each.seq] == [ReportQueue, ReportPool]
    assert [seq for seq, _ in sequence(cell)] == list(range(1, 13))
    assert len({message.header("ce_id") for message in cell.published}) == len(cell.published)
    held = cell.ledger._cells["default"]
    assert 0 not in held.outbox
    assert held.meta.next_seq == 13


# ---- a ledger that came back older


@pytest.mark.parametrize("seed", range(12))
async def test_a_ledger_set_back_by_any_number_of_commits_decides_the_same_in_other_words(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """The next owner is of another core: it tells statuses in other words, in another order, and fewer at a
    time."""
    rng = random.Random(seed)
    cuts: list[MemoryLedger] = []
    await keep(cell, cuts)
    async with cell.owned():
        for number in range(10, 25):
            cell.pods(number, number + 1)
            if rng.random() < 0.5:
                application(cell, f"app-{number}")
            if rng.random() < 0.7:
                tick(cell, START_MS + number * 100)
            if rng.random() < 0.7:
                await cell.settled()
        await until(lambda: cell.admitted == 25)
        await cell.settled()
    before, statuses = sequence(cell), len(told(cell, Status))
    monkeypatch.setattr(report, "_queue_in_words", lambda *_: "in other words")
    monkeypatch.setattr(shown, "WAITING_TOLD_MAX", rng.randint(0, 2))
    monkeypatch.setattr(takeover, "CORE_VERSION", takeover.CORE_VERSION + 1)
    monkeypatch.setattr(published, "PIECE", rng.choice([3, 50, published.PIECE]))
    cell.ledger = rng.choice(cuts[:-1])
    async with cell.owned() as taken:
        for number in range(25, 28):
            cell.pods(number, number + 1)
            tick(cell, START_MS + number * 100)
            await until(lambda number=number: cell.admitted == number + 1)
        await cell.settled()
        assert not taken.missing
    assert sequence(cell)[: len(before)] == before
    assert [seq for seq, _ in sequence(cell)] == list(range(1, len(sequence(cell)) + 1))
    assert cell.rebuilds == ["the ledger is empty"]
    assert any(each.sentence == "in other words" for each in told(cell, Status)[statuses:])


async def test_what_was_told_after_that_is_corrected_though_it_is_never_decided_again(
    cell: OwnedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eleven pods were shown. The next owner has no turn for that status while there are eleven, and then there
    are ten, as its ledger says that it was told last."""
    backup = cell.backup()
    async with cell.owned():
        cell.pods(10, 11)
        tick(cell, START_MS + 1000)
        await until(lambda: told(cell, ReportQueue)[-1].running == 11)
        await cell.settled()
    cell.ledger = backup
    cell.see(PodEvent, "pod-10", namespace="a", change="DELETED", pod=PodFacts(requests={}, created_ms=10))
    monkeypatch.setattr(report, "TOLD_MAX", 0)
    async with cell.owned():
        await rest(cell, START_MS + 2000)
        assert told(cell, ReportQueue)[-1].running == 11
        monkeypatch.setattr(report, "TOLD_MAX", 20)
        tick(cell, START_MS + 3000)
        await until(lambda: told(cell, ReportQueue)[-1].running == 10)


# ---- a crash between commit and publishing


async def test_a_status_that_was_committed_and_not_published_is_told_by_the_next_owner(
    cell: OwnedCell,
) -> None:
    cell.topics.log.hold()
    async with cell.owned():
        cell.pods(10, 20)
        application(cell, "ray")
        await rest(cell, START_MS + 1000)
        await rest(cell, START_MS + 2000)
    cell.topics.log.release()
    assert len(told(cell, Status)) == 2
    async with cell.owned():
        tick(cell, START_MS + 3000)
        await until(lambda: len(told(cell, Status)) == 5)
    assert told(cell, ReportQueue)[-1].admitted_workloads == 1
    assert told(cell, ReportPool)[-1].reserved == {"cpu": 22}
    assert told(cell, ReportWorkload)[-1].phase == "Running"
    decided, *later = [find_header(each.headers, EPOCH_HEADER) for each in cell.published[-4:]]
    assert decided != later[0] == later[1] == later[2], "the next owner tells them as its own"


async def test_a_dynamicworkload_whose_making_was_lost_is_made_when_its_status_finds_none(
    cell: OwnedCell,
) -> None:
    cell.topics.log.hold()
    async with cell.owned():
        application(cell, "ray")
        tick(cell, START_MS + 1000)
        await cell.settled()
    cell.topics.log.release()
    async with cell.owned():
        tick(cell, START_MS + 2000)
        await until(lambda: bool(told(cell, ReportWorkload)))
        assert not told(cell, CreateWorkload)
        lost = told(cell, ReportWorkload)[-1]
        gone = {"epoch": "1-1", "decision": lost.type, "result": "Gone", "cluster": SETTINGS.cluster}
        cell.tell(OutcomeEvent(seq=0, uid=lost.uid, time_ms=START_MS + 2500, **gone))
        tick(cell, START_MS + 3000)
        await until(lambda: len(told(cell, CreateWorkload)) == 1 and len(told(cell, ReportWorkload)) == 2)


async def test_what_was_published_is_not_told_again_at_each_take_over(cell: OwnedCell) -> None:
    async with cell.owned():
        await rest(cell, START_MS + 1000)
    assert len(told(cell, Status)) == 2


# ---- ledgers of before


async def test_a_ledger_whose_outbox_holds_statuses_with_a_seq_is_taken_over(cell: OwnedCell) -> None:
    """As the version before has written it: it is rebuilt, and seq goes on behind what stands there."""
    held = cell.ledger._cells["default"]
    status = replace(told(cell, ReportQueue)[0], seq=13)
    ce_type = DECISIONS.ce_type(status.type)
    entry = OutboxEntry(seq=13, epoch=Epoch(1, 1), ce_type=ce_type, value=DECISIONS.value(status))
    held.outbox[13] = entry.pack()
    held.meta = replace(held.meta, next_seq=14, schema=1)
    async with cell.owned() as taken:
        await until(lambda: cell.seqs[-1] == 14)
        assert not taken.missing
    assert "has schema 1, of an older version" in cell.rebuilds[-1]


async def test_statuses_with_a_seq_that_were_published_before_stand_in_nobodys_way(cell: OwnedCell) -> None:
    old = replace(told(cell, ReportQueue)[0], seq=13)
    cell.published.append(DECISIONS.encode(old, source="test", epoch=Epoch(1, 200)))
    cell.lease.resource_version = 300
    held = cell.ledger._cells["default"]
    held.meta = replace(held.meta, next_seq=14, schema=1)
    async with cell.owned():
        await until(lambda: cell.seqs[-1] == 14)
    assert len(told(cell, Admit)) == 10
