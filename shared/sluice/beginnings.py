"""Where a replay can begin: at a REBUILD, with nothing; or at a snapshot, with what the ledger held there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from sluice.codec import EVENTS, UnreadableRecordError, find_header
from sluice.events import RebuildEvent
from sluice.kafka import Received
from sluice.places import Place, Time, Where
from sluice.records import PIECE, Records
from sluice.snapshots import Gathering, Snapshot
from sluice.times import clock

_REBUILD: Final = EVENTS.ce_type(RebuildEvent.type)


class NoBeginningError(Exception):
    """Says from where on the log could be replayed, if from anywhere."""


class NothingThereError(Exception):
    """Nothing lies at or between the places that were asked for. Says what there is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    next_offset: int  # of the first event that is played
    next_seq: int
    time_ms: int
    snapshot: Snapshot | None = None  # None: it begins with a REBUILD

    def __str__(self) -> str:
        what = "a snapshot" if self.snapshot else "a REBUILD"
        return f"{what} at offset {self.next_offset}, {clock(self.time_ms)}"


async def find_beginning(
    records: Records, cell: str, partition: int, where: Where, *, schema: int | None = None
) -> Beginning:
    """The last one before that place. Snapshots of another schema than `schema` are passed over."""
    first, end = await records.bounds(partition)
    if first == end:
        raise NoBeginningError(f"nothing to begin with: the log holds no events of cell {cell}")
    if isinstance(where, int | Time):
        where = await _offset_of(records, cell, partition, where)
    till = where if isinstance(where, int) else end
    if where != "rebuild":
        async for found in _snapshots(records, cell, partition, schema):
            if first <= found.next_offset <= till:
                return found
    if where != "snapshot":
        rebuild = await _last_rebuild(records, cell, partition, min(till + 1, end))
        if rebuild is not None:
            return rebuild
    if where == "rebuild":  # retention has eaten it
        there = _snapshots(records, cell, partition, schema)
        oldest = [each async for each in there if each.next_offset >= first][-1:]
        if oldest:
            return oldest[0]
    raise NoBeginningError(
        f"nothing to begin with: the log holds events {first} to {end - 1} of cell {cell}, and among them no REBUILD "
        "and no snapshot" + (f" up to offset {till}" if till < end else "")
    )


async def find_end(
    records: Records, cell: str, partition: int, until: Place | None, *, since: Where, beginning: Beginning
) -> int:
    """The offset behind the last event that `until` names. NothingThereError if none lies between."""
    _, end = await records.bounds(partition)
    begins, where = beginning.next_offset, str(beginning)
    if isinstance(since, int | Time):
        begins, where = max(begins, await _offset_of(records, cell, partition, since)), _in_words(since)
    if isinstance(until, Time):
        end = await offset_at(records, partition, until.ms + 1)
    elif until is not None:
        end = await _offset_of(records, cell, partition, until) + 1
    if end <= begins:
        there = await _what_is_there(records, cell, partition)
        raise NothingThereError(f"{there}; nothing lies from {where} to {_in_words(until)}")
    return end


async def _offset_of(records: Records, cell: str, partition: int, place: Place) -> int:
    _, end = await records.bounds(partition)
    offset = await offset_at(records, partition, place.ms) if isinstance(place, Time) else place
    if offset >= end:
        there = await _what_is_there(records, cell, partition)
        raise NothingThereError(f"{there}; nothing lies at {_in_words(place)} or later")
    return offset


async def _what_is_there(records: Records, cell: str, partition: int) -> str:
    first, end = await records.bounds(partition)
    ends = [each for at in (first, end - 1) for each in await records.events(partition, at, at + 1)]
    times = " to ".join(clock(time_of(each)) for each in ends)
    return f"the log of cell {cell} holds offsets {first} to {end - 1}, of {times}"


def _in_words(place: Place | None) -> str:
    match place:
        case None:
            return "its end"
        case Time(ms):
            return clock(ms)
        case _:
            return f"offset {place}"


async def _snapshots(
    records: Records, cell: str, partition: int, schema: int | None
) -> AsyncIterator[Beginning]:
    """The last one first."""
    gathering = Gathering(cell, await records.topic_id())
    async for received in records.snapshots(partition):
        found = gathering.take(received)
        if found is not None and schema in (None, found.standing.schema):
            at = found.standing
            yield Beginning(
                next_offset=at.next_offset, next_seq=at.next_seq, time_ms=at.time_ms, snapshot=found
            )


async def _last_rebuild(records: Records, cell: str, partition: int, end: int) -> Beginning | None:
    first, _ = await records.bounds(partition)
    while first < end:
        for received in reversed(await records.events(partition, max(first, end - PIECE), end)):
            if find_header(received.headers, "ce_type") != _REBUILD:
                continue
            with suppress(UnreadableRecordError):
                event = EVENTS.decode(received.headers, received.value)
                if isinstance(event, RebuildEvent) and event.config.cell == cell:
                    return Beginning(
                        next_offset=received.offset, next_seq=event.next_seq, time_ms=event.time_ms
                    )
        end -= PIECE
    return None


async def offset_at(records: Records, partition: int, time_ms: int) -> int:
    """Of the first event of that time, or of a later one. Clusters' clocks differ a little, and so may this."""
    low, end = await records.bounds(partition)
    while low < end:
        middle = (low + end) // 2
        at = middle
        found = await records.events(partition, at, at + 1)
        while not (found and time_of(found[0])) and at + 1 < end:  # it can't be read
            at += 1
            found = await records.events(partition, at, at + 1)
        if found and time_of(found[0]) >= time_ms:
            end = middle
        else:
            low = at + 1
    return low


def time_of(received: Received) -> int:
    """An event's time; 0 if it can't be read."""
    with suppress(UnreadableRecordError):
        return EVENTS.decode(received.headers, received.value).time_ms
    return 0
