"""The ledger in Redis. All keys of a cell share one hash tag, so that one script may write them all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, cast

import redis.asyncio as redis
from redis.exceptions import RedisError
from sluice.chain import BEGINNING
from sluice.values import Epoch

from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.ledger import entities
from sluice_scheduler.ports import (
    SCHEMA,
    Commit,
    FencedError,
    LedgerError,
    Meta,
    NewerLedgerError,
    OutboxEntry,
    SilentLedgerError,
    UnreadableLedgerError,
)

_SCRIPTS: Final = Path(__file__).parent
#: So long a write may take to reach the replicas' disks.
SAFE_WITHIN_S: Final = 5


class RedisLedger:
    def __init__(self, url: str, *, replicas: int = 0) -> None:
        """Every write is on the disks of Redis and of so many replicas before it counts as done."""
        self._url = url
        self._replicas = replicas
        self._redis = redis.Redis.from_url(url, socket_timeout=10, socket_connect_timeout=5)
        self._acquire, self._begin, self._commit = (
            self._redis.register_script((_SCRIPTS / f"{name}.lua").read_text())
            for name in ("acquire", "begin", "commit")
        )

    @staticmethod
    def keys(cell: str) -> list[str]:
        return [f"sluice:{{{cell}}}:{part}" for part in ("meta", "state", "outbox")]

    async def known_epoch(self, cell: str) -> tuple[Epoch | None, str]:
        meta = self.keys(cell)[0]
        call = cast(Awaitable[list[bytes | None]], self._redis.hmget(meta, ["epoch", "cluster_uid"]))
        epoch, uid = await self._ask(call)
        known = None
        with suppress(ValueError):  # the Lease mints a later one in any case
            known = Epoch.parse((epoch or b"").decode())
        return known, (uid or b"").decode()

    async def acquire(self, cell: str, epoch: Epoch) -> Meta:
        reply = await self._run(self._acquire, cell, [epoch.generation, epoch.resource_version, SCHEMA])
        found = {name.decode(): value.decode() for name, value in zip(reply[::2], reply[1::2], strict=True)}
        return _meta(epoch, found)

    async def begin(self, cell: str, meta: Meta) -> None:
        arguments = [str(meta.epoch), meta.topic_id, meta.cluster_uid, meta.next_offset, meta.next_seq]
        await self._run(self._begin, cell, [*arguments, meta.chain, SCHEMA])

    async def load(self, cell: str) -> tuple[list[Entity], list[OutboxEntry]]:
        meta, state, outbox = self.keys(cell)
        asked = cast(Awaitable[Any], self._redis.hmget(meta, ["topic_id", "schema"]))
        topic_id, schema = await self._ask(asked)
        try:
            if topic_id is not None:
                entities.check_schema(int(schema or 0))
            rows = {key.decode(): value for key, value in (await self._rows(state)).items()}
            waiting = {int(seq): packed for seq, packed in (await self._rows(outbox)).items()}
        except ValueError as error:
            raise UnreadableLedgerError(f"the ledger holds what nobody wrote: {error}") from error
        return entities.load_all(rows), entities.load_outbox(waiting)

    async def commit(self, cell: str, commit: Commit) -> None:
        puts = {key: entity for key, entity in commit.changes.items() if entity is not None}
        drops = [key for key, entity in commit.changes.items() if entity is None]
        arguments: list[str | int | bytes] = [
            str(commit.epoch),
            commit.expected_offset,
            commit.next_offset,
            commit.expected_seq,
            commit.next_seq,
            commit.published,
            commit.told_ms,
            commit.chain,
            len(puts),
            len(drops),
            len(commit.decisions),
        ]
        for key, entity in puts.items():
            arguments += (key, entities.dump(entity))
        arguments += drops
        for entry in commit.decisions:
            arguments += (entry.seq, entry.pack())
        await self._run(self._commit, cell, arguments)

    async def close(self) -> None:
        await self._redis.aclose()

    async def _rows(self, key: str) -> dict[bytes, bytes]:
        rows: dict[bytes, bytes] = await self._ask(cast(Awaitable[Any], self._redis.hgetall(key)))
        return rows

    async def _run(self, script: Any, cell: str, arguments: list[Any]) -> list[bytes]:
        reply: list[bytes] = await self._ask(self._write(script, self.keys(cell), arguments))
        answer, rest = reply[0].decode(), reply[1:]
        if answer == "ok":
            return rest
        held = rest[0].decode()
        if answer == "newer":
            raise NewerLedgerError(cell, int(held))
        if answer == "fenced" and held:
            raise FencedError(f"cell {cell} belongs to epoch {held}")
        raise LedgerError(f"cell {cell}: the ledger's {answer} is {held or 'lost'}")

    async def _write(self, script: Any, keys: list[str], arguments: list[Any]) -> Any:
        """WAITAOF speaks of what its own connection has written, and of all that was written before it.

        If the replicas take too long nobody knows what a fail-over would bring back. So the writer gives up,
        and begins by acquiring the ledger, which is a write of the same kind.
        """
        if not self._replicas:
            return await script(keys=keys, args=arguments)
        async with self._redis.client() as connection:
            reply = await script(keys=keys, args=arguments, client=connection)
            local, replicas = await connection.execute_command(  # type: ignore[no-untyped-call]
                "WAITAOF", 1, self._replicas, SAFE_WITHIN_S * 1000
            )
        if local < 1 or replicas < self._replicas:
            raise LedgerError(
                f"Redis: after {SAFE_WITHIN_S} s a write was on the disk of {replicas} of {self._replicas} "
                "replicas (SLUICE_REDIS_REPLICAS)"
            )
        return reply

    async def _ask(self, call: Awaitable[Any]) -> Any:
        """Shielded: a call that was cut off would leave its answer to the next one on its connection."""
        try:
            return await asyncio.shield(asyncio.ensure_future(call))
        except RedisError as error:
            raise SilentLedgerError(f"Redis: {error}") from error


def _meta(epoch: Epoch, found: dict[str, str]) -> Meta:
    """A ledger that has not begun has nothing but its epoch. One without a schema is of the first version."""
    if "topic_id" not in found:
        return Meta(epoch=epoch)
    try:
        return Meta(
            epoch=epoch,
            topic_id=found["topic_id"],
            cluster_uid=found["cluster_uid"],
            next_offset=int(found["next_offset"]),
            next_seq=int(found["next_seq"]),
            published=int(found["published"]),
            told_ms=int(found.get("told_ms", 0)),
            chain=found.get("chain", BEGINNING),
            schema=int(found.get("schema", 0)),
        )
    except (KeyError, ValueError) as error:
        return Meta(epoch=epoch, flaw=f"the ledger does not say where it stands: {error!r}")
