"""Each decision carries the hash of the one before it, whatever happens to owners, ledgers and topics."""

from __future__ import annotations

import asyncio
from typing import Any

from fakes.owned_cell import SETTINGS, OwnedCell, until
from sluice.chain import BEGINNING, PREVIOUS_HEADER, link
from sluice.codec import EPOCH_HEADER, Message
from sluice.events import OutcomeEvent, RebuildEvent


def links(messages: list[Message]) -> list[tuple[str, str]]:
    """What each decision carries, and what it should by those before it in the log."""
    found, expected = [], BEGINNING
    for message in messages:
        previous = message.header(PREVIOUS_HEADER) or ""
        found.append((previous, expected))
        expected = link(previous, message.header("ce_type") or "", message.value)
    return found


def assert_chained(cell: OwnedCell) -> None:
    assert cell.published
    for carried, expected in links(cell.published):
        assert carried == expected


async def admitting(cell: OwnedCell, count: int) -> None:
    first = cell.admitted
    async with cell.owned() as owner:
        await until(lambda: not owner.missing)
        if not first:
            await cell.open()
        cell.pods(first, first + count)
        await until(lambda: cell.admitted == first + count)
        await cell.settled()


async def test_it_goes_on_under_the_next_owner() -> None:
    cell = OwnedCell()
    await admitting(cell, 5)
    await admitting(cell, 5)
    assert len({message.header(EPOCH_HEADER) for message in cell.published}) == 2
    assert_chained(cell)


async def test_what_was_committed_and_not_published_keeps_its_place() -> None:
    cell = OwnedCell()
    await admitting(cell, 5)
    cell.topics.log.hold()
    async with cell.owned():
        cell.pods(5, 10)
        await cell.settled()
    cell.topics.log.release()
    await admitting(cell, 5)
    assert cell.admitted == 10
    assert_chained(cell)


async def test_a_ledger_that_came_back_older_comes_to_the_same_hashes() -> None:
    cell = OwnedCell()
    await admitting(cell, 5)
    backup = cell.backup()
    await admitting(cell, 5)
    cell.ledger = backup
    await admitting(cell, 5)
    assert cell.seqs == list(range(1, len(cell.seqs) + 1))
    assert_chained(cell)


async def test_a_rebuild_goes_on_with_it() -> None:
    cell = OwnedCell()
    await admitting(cell, 5)
    cell.ledger = OwnedCell().ledger
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2)
        await cell.settled()
        await asyncio.sleep(0.01)
    [_, rebuild] = [
        event for event in cell.topics.log.events(SETTINGS.events_topic) if isinstance(event, RebuildEvent)
    ]
    last = cell.published[6]
    assert rebuild.previous == link(
        last.header(PREVIOUS_HEADER) or "", last.header("ce_type") or "", last.value
    )
    assert_chained(cell)


async def test_a_ledger_of_before_a_rebuild_goes_on_with_what_was_published() -> None:
    """The owner before the rebuild had committed three decisions that were never published."""
    cell = OwnedCell()
    await admitting(cell, 5)
    backup = cell.backup()
    cell.topics.log.hold()
    async with cell.owned():
        cell.pods(5, 8)
        await cell.settled()
    cell.topics.log.release()
    cell.topics.id = "another"
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2 and len(cell.published) == 8)
        await cell.settled()
    cell.topics.id, cell.ledger = "made first", backup
    [*_, fence] = cell.published
    about: dict[str, Any] = {"time_ms": 1, "cluster": SETTINGS.cluster, "decision": "fence"}
    epoch = fence.header(EPOCH_HEADER) or ""
    cell.tell(OutcomeEvent(seq=11, epoch=epoch, result="Applied", **about))
    async with cell.owned():
        await until(lambda: len(cell.published) == 9)
    assert cell.seqs == [*range(1, 8), 11, 12]
    assert_chained(cell)


async def test_it_begins_behind_decisions_of_a_version_without() -> None:
    cell = OwnedCell()
    await admitting(cell, 5)
    for message in cell.published:
        del message.headers[-1]
    cell.ledger = OwnedCell().ledger
    async with cell.owned():
        await until(lambda: len(cell.rebuilds) == 2 and len(cell.published) == 8)
    assert cell.published[-1].header(PREVIOUS_HEADER) == BEGINNING
