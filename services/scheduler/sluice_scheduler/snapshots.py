"""Snapshots of what a cell's ledger holds, written in pieces while the cell goes on, for replays to begin with.

Behind each commit a snapshot goes on by a piece; rows that have changed since they were written are written again.
When nothing is left to be written, all of it is what that commit left in the ledger, and the last part says so.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import OrderedDict
from typing import Final

from sluice.settings import Settings
from sluice.snapshots import Part, Snapshot, Standing

from sluice_scheduler.core import State
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.ledger.entities import dump, load_all
from sluice_scheduler.ports import SCHEMA, Clock, Commit, Log

log = logging.getLogger(__name__)

#: So many rows are written behind one commit, and so many bytes but for the last of them: a millisecond or two.
ROWS_MAX: Final = 200
BYTES_MAX: Final = 200_000
#: So many parts may wait to be taken by Kafka; while they do, no further one is written.
WAITING_MAX: Final = 4


class Snapshots:
    """Those that one owner writes: one at its beginning, then one every so many records or minutes."""

    def __init__(self, *, cell: str, settings: Settings, log: Log, clock: Clock, topics: str) -> None:
        """`topics`: the id of those in which offsets and decisions are counted."""
        self._cell = cell
        self._topics = topics
        self._topic = settings.snapshots_topic
        self._partition = settings.cells[cell]
        self._records = settings.snapshot_records or math.inf
        self._interval_s = settings.snapshot_minutes * 60 or math.inf
        self._log = log
        self._clock = clock
        never = not settings.snapshot_records and not settings.snapshot_minutes
        self._due_offset = self._due_s = math.inf if never else 0.0
        self._name = ""  # of the one that is under way
        self._number = 0
        self._keys: list[str] = []  # what is still to be written, from its end on
        self._changed: OrderedDict[str, None] = OrderedDict()
        self._waiting: asyncio.Queue[Part] = asyncio.Queue()

    def follow(self, state: State, commit: Commit) -> None:
        """Called behind each commit, before anything else is stepped."""
        if not state.begun:
            return
        if self._name:
            self._changed.update(dict.fromkeys(commit.changes))
        elif commit.next_offset >= self._due_offset or self._clock.monotonic_s() >= self._due_s:
            self._begin(state, commit)
        if self._name and self._waiting.qsize() < WAITING_MAX:
            self._go_on(state, commit)

    def _begin(self, state: State, commit: Commit) -> None:
        self._name, self._number = f"{commit.epoch}-{commit.next_offset}", 0
        self._keys, self._changed = state.all_keys(), OrderedDict()
        self._due_offset = commit.next_offset + self._records
        self._due_s = self._clock.monotonic_s() + self._interval_s

    def _go_on(self, state: State, commit: Commit) -> None:
        rows: dict[str, bytes | None] = {}
        size = 0
        while (self._keys or self._changed) and len(rows) < ROWS_MAX and size < BYTES_MAX:
            key = self._keys.pop() if self._keys else self._changed.popitem(last=False)[0]
            entity = state.entity(key)
            row = rows[key] = None if entity is None else dump(entity)
            size += len(row or b"")
        standing = None
        if not self._keys and not self._changed:
            standing = Standing(
                next_offset=commit.next_offset,
                next_seq=commit.next_seq,
                time_ms=state.now_ms,
                schema=SCHEMA,
            )
        part = Part(
            cell=self._cell,
            snapshot=self._name,
            number=self._number,
            rows=rows,
            standing=standing,
            topics=self._topics,
        )
        self._waiting.put_nowait(part)
        self._number += 1
        if standing is not None:
            self._name = ""

    async def publish(self) -> None:
        while True:
            part = await self._waiting.get()
            message = await asyncio.to_thread(part.message)
            await self._log.append(self._topic, self._partition, [message])
            if part.standing is not None:
                details = {"cell": self._cell}
                log.info("wrote a snapshot at offset %s", part.standing.next_offset, extra=details)

    def give_up(self) -> None:
        """The one that is under way; the next is written when it is due."""
        self._name = ""
        while not self._waiting.empty():
            self._waiting.get_nowait()


def entities_of(snapshot: Snapshot) -> list[Entity]:
    """UnreadableLedgerError for what this version did not write."""
    return load_all(snapshot.rows())
