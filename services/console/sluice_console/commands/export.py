"""`sluice audit export`: a bug report, which `sluice replay` plays without any server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic_core import from_json
from sluice.beginnings import Beginning, NoBeginningError, find_beginning, offset_at, time_of
from sluice.bugreport import Header, Log, write
from sluice.codec import EVENTS, UnreadableRecordError, find_header
from sluice.events import SetAsideEvent
from sluice.kafka import Received
from sluice.places import Place, Time
from sluice.records import PIECE, KafkaRecords, Records

from sluice_console import extensions
from sluice_console.commands import Context
from sluice_console.commands.logs import reading
from sluice_console.errors import OK, ConsoleError

_SET_ASIDE = EVENTS.ce_type(SetAsideEvent.type)


def export(context: Context) -> int:
    cells = context.cells
    if len(cells) > 1:
        raise ConsoleError(
            "a bug report is about one cell", remedy=f"name one with --cell: {', '.join(cells)}"
        )
    path: Path = context.options.file
    if not path.parent.is_dir():
        raise ConsoleError(
            f"{path} can't be written: there is no folder {path.parent}", remedy="make it first"
        )
    with reading(context), TemporaryDirectory(dir=path.parent, prefix=".sluice-") as folder:
        plain = Path(folder) / "plain"
        header = asyncio.run(_export(context, cells[0], plain if context.options.pseudonyms else path))
        if context.options.pseudonyms:
            code = extensions.run("replay", [str(plain), "--pseudonyms", str(path)])
            if code != OK:
                raise ConsoleError("nothing was written", remedy="export it without --pseudonyms")
    context.out.print(f"{path}: cell {header.cell}, from {header.since} to {header.until}", soft_wrap=True)
    return OK


async def _export(context: Context, cell: str, path: Path) -> Header:
    settings, options = context.settings, context.options
    partition = settings.cells[cell]
    records = KafkaRecords(settings)
    try:
        beginning = await find_beginning(records, cell, partition, options.since)
        end = await _end(records, partition, options.until)
        header = Header(
            cell=cell, partition=partition, since=str(beginning), until=f"the event at offset {end - 1}"
        )
        await write(path, header, _records(records, partition, beginning, end))
    except NoBeginningError as error:
        raise ConsoleError(str(error), remedy="begin later (--from)") from error
    finally:
        await records.close()
    return header


async def _end(records: Records, partition: int, until: Place | None) -> int:
    if isinstance(until, Time):
        return await offset_at(records, partition, until.ms + 1)
    _, end = await records.bounds(partition)
    return end if until is None else min(end, until + 1)


async def _records(
    records: Records, partition: int, beginning: Beginning, end: int
) -> AsyncIterator[tuple[Log, Received]]:
    for part in beginning.snapshot.parts if beginning.snapshot else ():
        yield "snapshot", part
    last_ms = 0
    for first in range(beginning.next_offset, end, PIECE):
        for received in await records.events(partition, first, min(first + PIECE, end)):
            last_ms = max(last_ms, time_of(received))
            yield "event", received
    async for received in _set_aside_later(records, partition, end):
        yield "event", received
    first, last = await records.decision_bounds(partition)
    first = await _first_decision(records, partition, beginning.next_seq)
    for at in range(first, last, PIECE):
        for received in await records.decisions(partition, at, min(at + PIECE, last)):
            if _about(received)[1] <= last_ms:
                yield "decision", received


async def _set_aside_later(records: Records, partition: int, end: int) -> AsyncIterator[Received]:
    """What was set aside before records of the report, by somebody who stepped them later."""
    _, log_end = await records.bounds(partition)
    for first in range(end, log_end, PIECE):
        for received in await records.events(partition, first, min(first + PIECE, log_end)):
            if find_header(received.headers, "ce_type") != _SET_ASIDE:
                continue
            with suppress(UnreadableRecordError):
                event = EVENTS.decode(received.headers, received.value)
                if isinstance(event, SetAsideEvent) and event.offset < end:
                    yield received


async def _first_decision(records: Records, partition: int, next_seq: int) -> int:
    """Where decisions from that seq on begin. Late words of others may stand among them."""
    first, end = await records.decision_bounds(partition)
    found = end
    while first < end:
        piece = await records.decisions(partition, max(first, end - PIECE), end)
        seqs = [(_about(received)[0], received.offset) for received in piece]
        ours = [offset for seq, offset in seqs if seq >= next_seq]
        if not ours and any(seq for seq, _ in seqs):
            break
        found = min([found, *ours])
        end -= PIECE
    return found


def _about(received: Received) -> tuple[int, int]:
    """A decision's seq and time; 0 of what can't be read."""
    with suppress(ValueError, KeyError, TypeError):
        record = from_json(received.value or b"")
        return int(record["seq"]), int(record["timeMs"])
    return 0, 0
