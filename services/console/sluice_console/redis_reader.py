"""The ledger, read and never written. The only module here that knows Redis.

sluice:{CELL}:meta     hash: epoch, next_offset, next_seq, published, told_ms, chain, topic_id, cluster_uid
sluice:{CELL}:state    hash: an entity's key (`queue/<cluster>/<uid>`) → the entity as JSON
sluice:{CELL}:outbox   hash: seq → a decision that is committed and not yet known to be in Kafka
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import redis
from pydantic_core import from_json
from redis.exceptions import RedisError
from sluice.programs import START_OR_POINT
from sluice.values import Epoch

from sluice_console.errors import ConsoleError

#: An entity as its JSON describes it; what it may hold is defined by the scheduler's core.
Entity: TypeAlias = Mapping[str, Any]

_ANSWERS_WITHIN_S: Final = 5
_SCANNED_AT_A_TIME: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a cell's ledger stands."""

    epoch: Epoch
    next_offset: int
    next_seq: int
    published: int  # every decision below this seq is in Kafka
    chain: str  # the hash of the decision before `next_seq`; empty if an older version wrote the ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What the ledger holds of a cell: of the kinds that were asked for, as they were when they were read."""

    cell: str
    position: Position
    entities: Mapping[str, tuple[Entity, ...]]  # by kind, each in order of its key

    def of(self, kind: str) -> tuple[Entity, ...]:
        return self.entities.get(kind, ())

    @property
    def about(self) -> Entity:
        """The cell itself: its configuration and its time. Empty before its first record is committed."""
        return next(iter(self.of("cell")), {})

    @property
    def home(self) -> str:
        """The cluster whose Queues and ResourcePools rule the cell."""
        clusters = self.about.get("config", {}).get("clusters") or ("",)
        return str(clusters[0])


class RedisReader:
    def __init__(self, url: str) -> None:
        with _explained(url):
            self._redis = redis.Redis.from_url(
                url, socket_connect_timeout=_ANSWERS_WITHIN_S, socket_timeout=_ANSWERS_WITHIN_S
            )
        self._url = url

    def snapshot(self, cell: str, kinds: Collection[str]) -> Snapshot | None:
        """A cell's entities of these kinds; None when no ledger has begun."""
        position = self.position(cell)
        if position is None:
            return None
        with _explained(self._url):
            found = sorted(self._rows(f"sluice:{{{cell}}}:state", kinds))
        entities: dict[str, list[Entity]] = {}
        for key, value in found:
            entities.setdefault(key.partition("/")[0], []).append(from_json(value))
        return Snapshot(
            cell=cell,
            position=position,
            entities={kind: tuple(rows) for kind, rows in entities.items()},
        )

    def position(self, cell: str) -> Position | None:
        """None when no ledger has begun."""
        with _explained(self._url):
            meta = cast(Mapping[bytes, bytes], self._redis.hgetall(f"sluice:{{{cell}}}:meta"))
            if b"next_offset" not in meta:
                return None
            return Position(
                epoch=Epoch.parse(meta[b"epoch"].decode()),
                next_offset=int(meta[b"next_offset"]),
                next_seq=int(meta[b"next_seq"]),
                published=int(meta[b"published"]),
                chain=meta.get(b"chain", b"").decode(),
            )

    def _rows(self, state_key: str, kinds: Collection[str]) -> Iterator[tuple[str, bytes]]:
        """Redis' patterns know no alternatives: it sorts out by first letter, which spares us the pods."""
        initials = "".join(sorted({kind[0] for kind in kinds}))
        for key, value in self._redis.hscan_iter(state_key, match=f"[{initials}]*", count=_SCANNED_AT_A_TIME):
            name = key.decode()
            if name.partition("/")[0] in kinds:
                yield name, value


@contextmanager
def _explained(url: str) -> Iterator[None]:
    try:
        yield
    except (RedisError, ValueError) as error:
        address = url.rpartition("@")[2].removeprefix("redis://")  # never its password
        raise ConsoleError(
            f"Redis at {address} gives no answer: {error}",
            remedy=START_OR_POINT.format(variable="SLUICE_REDIS"),
        ) from error
