"""`sluice audit export`: a bug report, which `sluice replay` plays without any server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from sluice.beginnings import (
    Beginning,
    NoBeginningError,
    NothingThereError,
    find_beginning,
    find_end,
    time_of,
)
from sluice.bugreport import Header, Log, seq_and_time, write
from sluice.codec import EVENTS, UnreadableRecordError, find_header
from sluice.events import SetAsideEvent
from sluice.kafka import Received
from sluice.records import PIECE, KafkaRecords, Records
from sluice.targets import TargetError, expect_new, expect_writable

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
    try:
        if context.options.force:
            expect_writable(path)
        else:
            expect_new(path, remedy="name another file, or say --force to replace it")
    except TargetError as error:
        raise ConsoleError(str(error), remedy=error.remedy) from error
    with reading(context), TemporaryDirectory(dir=path.parent, prefix=".sluice-") as folder:
        plain, renamed = Path(folder) / "plain", Path(folder) / "pseudonyms"
        header = asyncio.run(_export(context, cells[0], plain))
        if context.options.pseudonyms:
            code = extensions.run("replay", [str(plain), "--pseudonyms", str(renamed)])
            if code != OK:
                raise ConsoleError("nothing was written", remedy="export it without --pseudonyms")
        (renamed if context.options.pseudonyms else plain).replace(path)
    context.out.print(f"{path}: cell {header.cell}, from {header.since} to {header.until}", soft_wrap=True)
    return OK


async def _export(context: Context, cell: str, path: Path) -> Header:
    settings, options = context.settings, context.options
    partition = settings.cells[cell]
    records = KafkaRecords(settings)
    try:
        beginning = await find_beginning(records, cell, partition, options.since)
        end = await find_end(
            records, cell, partition, options.until, since=options.since, beginning=beginning
        )
        header = Header(
            cell=cell, partition=partition, since=str(beginning), until=f"the event at offset {end - 1}"
        )
        await write(path, header, _records(records, partition, beginning, end))
    except NoBeginningError as error:
        raise ConsoleError(str(error), remedy="begin later (--from)") from error
    except NothingThereError as error:
        raise ConsoleError(str(error), remedy="write places that lie in the log (--from, --to)") from error
    finally:
        await records.close()
    return header


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
            if seq_and_time(received)[1] <= last_ms:
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
        seqs = [(seq_and_time(received)[0], received.offset) for received in piece]
        ours = [offset for seq, offset in seqs if seq >= next_seq]
        if not ours and any(seq for seq, _ in seqs):
            break
        found = min([found, *ours])
        end -= PIECE
    return found
