"""A Redis and its replica, behind one address: whoever is asked there may be another one from now on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import NamedTuple

from redis import Redis as Client
from redis.exceptions import RedisError
from sluice_local.redis import Redis
from sluice_local.state import State

from chaos.proxy import Proxy

#: So long a replica takes to have what the first has; what it is waited for, not how long it takes.
_FOLLOWS_WITHIN_S = 60


class Ledger(NamedTuple):
    """How far the ledger of the cell has come: the record that it waits for, and the next decision."""

    record: int
    decision: int


class Redises:
    def __init__(self, state: State, proxy: Proxy) -> None:
        self._proxy = proxy
        self.first, self._second = (Redis(state, name) for name in ("redis", "redis-2"))

    @property
    def url(self) -> str:
        return f"redis://:{self.first.password}@127.0.0.1:{self._proxy.port}/0"

    def start(self) -> None:
        self.first.start()
        self._proxy.target = self.first.port
        self._follow()

    def end(self) -> None:
        for each in (self.first, self._second):
            each.daemon.kill()

    def fail_over(self, *, is_lost: Callable[[], bool]) -> tuple[Ledger, Ledger]:
        """The replica stops following, and when enough `is_lost` it takes the first one's place. That comes back as
        its replica, and what only it had is gone. How far the ledger was, and is."""
        with self._client(self._second) as second:
            second.replicaof("NO", "ONE")
            has = _ledger(second)
        _until(is_lost, "nothing was written that could be lost")
        with self._client(self.first) as first:
            first.client_pause(_FOLLOWS_WITHIN_S * 1000, all=False)  # it writes no more
            had = _ledger(first)
        self.first.daemon.kill()
        self._proxy.target = self._second.port
        self._proxy.drop()
        self.first, self._second = self._second, self.first
        shutil.rmtree(self._second.directory / "data")
        self._follow()
        return had, has

    def empty(self) -> None:
        """It has come back without its disk."""
        with self._client(self.first) as first:
            first.flushall()

    def written(self) -> int:
        """How far its writes have come."""
        with self._client(self.first) as first:
            return int(first.info("replication")["master_repl_offset"])

    def _follow(self) -> None:
        self._second.start()
        with self._client(self._second) as second:
            second.config_set("masterauth", self.first.password)
            second.replicaof("127.0.0.1", str(self.first.port))

            def follows() -> bool:
                return second.info("replication")["master_link_status"] == "up"

            _until(follows, "the replica does not follow")

    def _client(self, redis: Redis) -> Client:
        return Client.from_url(redis.url, socket_timeout=10)


def _ledger(redis: Client) -> Ledger:
    record, decision = redis.hmget("sluice:{default}:meta", ["next_offset", "next_seq"])
    return Ledger(int(record or 0), int(decision or 0))


def _until(holds: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + _FOLLOWS_WITHIN_S
    while time.monotonic() < deadline:
        try:
            if holds():
                return
        except RedisError:
            pass  # it has only just come
        time.sleep(0.05)  # Redis tells nobody
    raise AssertionError(f"{complaint} within {_FOLLOWS_WITHIN_S} s")
