"""`sluice audit verify`: whether the decisions stand in the log as they were published."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from sluice.bugreport import NO_END, BugReportError, FileRecords
from sluice.records import PIECE, KafkaRecords, Records

from sluice_console import extensions
from sluice_console.chains import Finding, Verifier
from sluice_console.commands import Context
from sluice_console.commands.logs import reading
from sluice_console.errors import OK, PROBLEM, ConsoleError
from sluice_console.redis_reader import Position, RedisReader


def show(context: Context) -> int:
    found = _of_file(context) if context.options.file is not None else _of_cells(context)
    for verifier in found:
        if context.options.json:
            context.print_json(_as_json(verifier))
        else:
            _print(context, verifier)
    worst = PROBLEM if any(verifier.findings for verifier in found) else OK
    return max(worst, _replay(context)) if context.options.replay else worst


def _of_file(context: Context) -> list[Verifier]:
    """Its last line says where it should end."""
    path: Path = context.options.file
    try:
        records = FileRecords.open(path)
    except BugReportError as error:
        raise ConsoleError(str(error), remedy=error.remedy) from error
    if not records.tells_its_end:
        print(f"sluice: {path}: {NO_END}", file=sys.stderr)
    verifier = asyncio.run(_verify(records, records.header.cell, records.header.partition))
    verifier.findings += [Finding(offset=-1, seq=0, what=lack) for lack in records.lacks]
    return [verifier]


def _of_cells(context: Context) -> list[Verifier]:
    """The ledger is read first: what it has published then stands in the log."""
    positions = {cell: RedisReader(context.settings.redis).position(cell) for cell in context.cells}
    with reading(context):
        return asyncio.run(_verify_cells(context, positions))


async def _verify_cells(context: Context, positions: dict[str, Position | None]) -> list[Verifier]:
    records = KafkaRecords(context.settings)
    try:
        found = []
        for cell, position in positions.items():
            verifier = await _verify(records, cell, context.settings.cells[cell])
            if position is not None and position.chain:
                verifier.anchor(
                    published=position.published, next_seq=position.next_seq, chain=position.chain
                )
            found.append(verifier)
        return found
    finally:
        await records.close()


async def _verify(records: Records, cell: str, partition: int) -> Verifier:
    verifier = Verifier(cell)
    at, end = await records.decision_bounds(partition)
    for first in range(at, end, PIECE):
        for received in await records.decisions(partition, first, min(first + PIECE, end)):
            verifier.take(received)
    verifier.finish()
    return verifier


def _replay(context: Context) -> int:
    options = context.options
    arguments = ["--json"] if options.json else []
    if options.file is not None:
        arguments.append(str(options.file))
    elif options.cell is not None:
        arguments += ["--cell", options.cell]
    sys.stdout.flush()
    return extensions.run("replay", arguments)


def _print(context: Context, verifier: Verifier) -> None:
    for findings, style in ((verifier.late, "dim"), (verifier.findings, "red")):
        for finding in findings:
            where = f"@{finding.offset}" if finding.offset >= 0 else "the end"
            context.out.print(f"cell {verifier.cell}  {where:<9} {finding.what}", style=style, soft_wrap=True)
    faults = len(verifier.findings)
    chain = (
        "in one chain"
        if not faults
        else f"with {faults:,} {'fault' if faults == 1 else 'faults'}, named above"
    )
    parts = [f"{verifier.decisions:,} decisions {chain}", f"{verifier.statuses:,} statuses beside it"]
    if verifier.unchained:
        parts.append(f"{verifier.unchained:,} decisions before it, of a version without")
    if verifier.late:
        parts.append(f"{len(verifier.late):,} that came late and count for nobody")
    if verifier.passed_over:
        parts.append(f"{verifier.passed_over:,} numbers that were never published")
    last = f"; the last is #{verifier.seq}, its hash {verifier.hash}" if verifier.seq else ""
    context.out.print(f"cell {verifier.cell}  {', '.join(parts)}{last}", soft_wrap=True)


def _as_json(verifier: Verifier) -> dict[str, Any]:
    return {
        "cell": verifier.cell,
        "decisions": verifier.decisions,
        "statuses": verifier.statuses,
        "unchained": verifier.unchained,
        "late": [_finding_as_json(each) for each in verifier.late],
        "passedOver": verifier.passed_over,
        "lastSeq": verifier.seq,
        "lastHash": verifier.hash,
        "findings": [_finding_as_json(each) for each in verifier.findings],
    }


def _finding_as_json(finding: Finding) -> dict[str, Any]:
    return {"offset": finding.offset, "seq": finding.seq, "what": finding.what}
