"""The ledger's server: the ledger in memory, which passes Redis' contract suite, behind the network.

It forgets what a Redis may forget: its last writes, or everything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from simulation.system.network import LostError, Network
from sluice.values import Epoch
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.ledger.memory import MemoryLedger
from sluice_scheduler.ports import Commit, LedgerError, Meta, OutboxEntry

SERVER: Final = "redis"
#: So many writes can be lost in a fail-over.
REMEMBERED: Final = 40
T = TypeVar("T")


class RedisServer:
    def __init__(self) -> None:
        self.ledger = MemoryLedger()
        #: Told of each commit that was taken.
        self.heard: list[Callable[[str, Commit], None]] = []
        #: How often it has lost something.
        self.losses = 0
        self._before: deque[dict[str, Any]] = deque(maxlen=REMEMBERED)

    def write(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        before = {name: _copied(cell) for name, cell in self.ledger._cells.items()}
        result = at_once(call())
        self._before.append(before)
        return result

    def commit(self, cell: str, commit: Commit) -> None:
        self.write(partial(self.ledger.commit, cell, commit))
        for hear in self.heard:
            hear(cell, commit)

    # ---- what befalls it

    def lose(self, writes: int) -> None:
        """A replica is promoted that has not had the last writes."""
        self.losses += 1
        for _ in range(min(writes, len(self._before))):
            self.ledger._cells = self._before.pop()

    def empty(self) -> None:
        self.losses += 1
        self.ledger._cells = {}
        self._before.clear()

    def say_schema(self, cell: str, schema: int) -> None:
        """As if another version had written it, and all that a replica may have."""
        self._before.clear()
        if cell in self.ledger._cells:
            held = self.ledger._cells[cell]
            held.meta = replace(held.meta, schema=schema)


def _copied(cell: Any) -> Any:
    again = copy(cell)
    again.state, again.outbox = dict(cell.state), dict(cell.outbox)
    return again


def at_once(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("it waits")


class SimulatedLedger:
    """The ledger through the network. Entities become bytes at the client, as they do with Redis."""

    def __init__(self, server: RedisServer, network: Network) -> None:
        self._server = server
        self._network = network

    async def _ask(self, serve: Callable[[], T]) -> T:
        try:
            return await self._network.ask(SERVER, serve)
        except LostError as error:
            raise LedgerError(f"Redis: {error}") from error

    async def known_epoch(self, cell: str) -> tuple[Epoch | None, str]:
        return await self._ask(lambda: at_once(self._server.ledger.known_epoch(cell)))

    async def acquire(self, cell: str, epoch: Epoch) -> Meta:
        return await self._ask(partial(self._server.write, partial(self._server.ledger.acquire, cell, epoch)))

    async def begin(self, cell: str, meta: Meta) -> None:
        await self._ask(partial(self._server.write, partial(self._server.ledger.begin, cell, meta)))

    async def load(self, cell: str) -> tuple[list[Entity], list[OutboxEntry]]:
        return await self._ask(lambda: at_once(self._server.ledger.load(cell)))

    async def commit(self, cell: str, commit: Commit) -> None:
        await self._ask(partial(self._server.commit, cell, commit))

    async def close(self) -> None:
        """Nothing to close."""
