"""What the decisions topic already holds of a cell: nothing that stands there is published again.

Decisions are appended in order of seq, so all up to the last one that is there were published, and an owner
that decides one of them again (its ledger came back older than the log) must come to the same bytes. They are
read as they are asked for, a piece at a time, for an old backup may be millions of decisions behind.

What else may stand there:

* Records that can't be read, or are another cell's. Readers set them aside, and so do we.
* Statuses, which have no place in the sequence (their seq is 0).
* Late words of an owner that was fenced off, and was rebuilt without: its epoch is lower than that of the
  records before them, and what it said from the next owner's first seq on is void.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sluice.chain import BEGINNING, PREVIOUS_HEADER, link
from sluice.codec import DECISIONS, EPOCH_HEADER, UnreadableRecordError, find_header
from sluice.kafka import Received
from sluice.records import Records
from sluice.values import Epoch

from sluice_scheduler.ports import OutboxEntry

#: So many decisions are read at a time.
PIECE: Final = 5_000
_NONE: Final = Epoch(0, 0)


class DivergenceError(Exception):
    """A decision was published before with other bytes: never go on."""


class _Said(NamedTuple):
    """What counts of a record: 0 of any that is no decision of the cell."""

    seq: int = 0
    epoch: Epoch = _NONE
    time_ms: int = 0
    value: bytes = b""
    hash: str = BEGINNING  # of a decision that stands in the chain


@dataclass(slots=True)
class _Chain:
    """The decisions that count, by seq, as far as the log was read."""

    cell: str
    epoch: Epoch = _NONE
    highest: int = 0  # of all seqs, those that do not count among them
    time_ms: int = 0  # the largest
    values: OrderedDict[int, _Said] = field(default_factory=OrderedDict)

    def read(self, records: Iterable[Received]) -> None:
        for received in records:
            said = _read(received, self.cell)
            self.highest = max(self.highest, said.seq)
            self.time_ms = max(self.time_ms, said.time_ms)
            if said.seq <= 0 or said.epoch < self.epoch:
                continue
            if said.epoch > self.epoch:
                self.epoch = said.epoch
                while self.values and next(reversed(self.values)) >= said.seq:
                    self.values.popitem()
            self.values[said.seq] = said

    def forget(self, *, below: int) -> None:
        while self.values and next(iter(self.values)) < below:
            self.values.popitem(last=False)


class Published:
    """Asked for one seq after another, upwards."""

    def __init__(self, log: Records, *, cell: str, partition: int) -> None:
        self._log = log
        self._partition = partition
        self._chain = _Chain(cell)
        self._tail: list[Received] = []
        self._next = self._end = 0  # what is still to be read for comparison
        #: The last seq that was published; 0 if none was.
        self.last = 0
        #: Its hash, which the next one carries.
        self.hash = BEGINNING
        #: The cell's time when a decision or a status was published last; 0 if none was.
        self.time_ms = 0
        #: A seq above all that were ever published, be it by an owner that was fenced off.
        self.unused = 1

    async def epochs(self) -> list[Epoch]:
        """Under which the last decisions were published. This is asked first."""
        self._tail = await self._log.decisions_tail(self._partition, PIECE)
        return epochs_in(self._tail)

    async def find(self, *, since: int) -> None:
        """Look which decision is the last, and where those from seq `since` on begin."""
        tail, self._tail = self._tail, []
        first = self._end = tail[-1].offset + 1 if tail else 0
        piece = tail
        chain = self._chain
        while piece:
            first = piece[0].offset
            chain = _Chain(self._chain.cell)
            chain.read(piece)
            if not self.last and chain.values:
                self.last = max(chain.values)
                self.hash = chain.values[self.last].hash
            self.time_ms = max(self.time_ms, chain.time_ms)
            self.unused = max(self.unused, chain.highest + 1)
            if min(chain.values, default=since + 1) <= since:
                break
            piece = await self._log.decisions(self._partition, max(0, first - PIECE), first)
        self._next = first
        if piece is tail and tail:  # no need to read it again
            self._chain, self._next = chain, self._end
            self._chain.forget(below=since)

    async def holds(self, entry: OutboxEntry) -> bool:
        """Whether it was published before. DivergenceError if with other bytes."""
        if not 0 < entry.seq <= self.last:
            return False
        before = await self.said(entry.seq, entry.value)
        if before is not None and before != entry.value:
            raise DivergenceError(f"decided {entry.value!r}, but published before was {before!r}")
        return True

    async def said(self, seq: int, value: bytes) -> bytes | None:
        """What was published under a seq: these bytes, if they stand where they count. None for what can't be
        read any more."""
        before = await self._value(seq)
        if before is None or before == value:
            return before
        return await self._value_under_a_later_epoch(seq, before)

    async def _value(self, seq: int) -> bytes | None:
        values = self._chain.values
        self._chain.forget(below=seq)
        while seq not in values and self._next < self._end and max(values, default=0) < seq:
            await self._read_on()
            self._chain.forget(below=seq)
        return values[seq].value if seq in values else None

    async def _value_under_a_later_epoch(self, seq: int, before: bytes) -> bytes:
        """The one that was found may be void: then the one that counts stands behind it."""
        epoch = self._chain.epoch
        while self._next < self._end:
            self._chain.values.clear()
            await self._read_on()
            if self._chain.epoch > epoch and seq in self._chain.values:
                return self._chain.values[seq].value
        return before

    async def _read_on(self) -> None:
        till = min(self._next + PIECE, self._end)
        self._chain.read(await self._log.decisions(self._partition, self._next, till))
        self._next = till


def _read(received: Received, cell: str) -> _Said:
    with suppress(UnreadableRecordError, ValueError):
        decision = DECISIONS.decode(received.headers, received.value)
        if decision.cell == cell:
            epoch = Epoch.parse(find_header(received.headers, EPOCH_HEADER) or "")
            value = received.value or b""
            previous = find_header(received.headers, PREVIOUS_HEADER)
            its_hash = link(previous, DECISIONS.ce_type(decision.type), value) if previous else BEGINNING
            return _Said(decision.seq, epoch, decision.time_ms, value, its_hash)
    return _Said()


def epochs_in(records: Iterable[Received]) -> list[Epoch]:
    """Under which they were published."""
    found = []
    for received in records:
        with suppress(ValueError):
            found.append(Epoch.parse(find_header(received.headers, EPOCH_HEADER) or ""))
    return found
