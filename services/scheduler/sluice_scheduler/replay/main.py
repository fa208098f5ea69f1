"""`sluice-replay`: play a log again and compare every decision. `sluice replay` runs it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any, Final

from sluice import settings as sluice_settings
from sluice.beginnings import NoBeginningError, find_beginning
from sluice.bugreport import BugReportError, FileRecords
from sluice.kafka import LogError
from sluice.places import FROM_HELP, place, where
from sluice.programs import ends_quietly
from sluice.records import KafkaRecords, Records

from sluice_scheduler.core import State
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ports import SCHEMA, LedgerError
from sluice_scheduler.replay.anew import PseudonymsError, write_anew
from sluice_scheduler.replay.run import Comparison, Difference, HoleError, Player
from sluice_scheduler.replay.told import (
    Parting,
    known_as_text,
    known_of,
    summary,
    summary_as_json,
)

EXIT_DIFFERENT, EXIT_USAGE = 1, 2
_PROBLEMS: Final = (
    BugReportError, HoleError, LedgerError, NoBeginningError, PseudonymsError, LogError, OSError
)  # fmt: skip


@ends_quietly()
def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_main(options))
    except _PROBLEMS as error:
        print(f"sluice replay: {error}", file=sys.stderr)
        return EXIT_DIFFERENT


async def _main(options: argparse.Namespace) -> int:
    if options.file is not None:
        records = FileRecords.open(options.file)
        if options.pseudonyms is not None:
            await write_anew(records, installed_policies(), options.pseudonyms)
            return 0
        if options.since is None:
            options.since, _ = await records.bounds(records.header.partition)
        if records.header.pseudonyms and not options.json:
            print(f"{options.file}: names are pseudonyms, and decisions were decided anew with them")
        return await _replay(records, {records.header.cell: records.header.partition}, options)
    if options.pseudonyms is not None:
        print("sluice replay: --pseudonyms writes a FILE again: name it", file=sys.stderr)
        return EXIT_USAGE
    options.since = "rebuild" if options.since is None else options.since
    settings = sluice_settings.load()
    cells = {name: at for name, at in settings.cells.items() if options.cell in (None, name)}
    if not cells:
        known = ", ".join(settings.cells)
        print(f"sluice replay: there is no cell {options.cell}; there are {known}", file=sys.stderr)
        return EXIT_USAGE
    topics = KafkaRecords(settings)
    try:
        return await _replay(topics, cells, options)
    finally:
        await topics.close()


async def _replay(records: Records, cells: dict[str, int], options: argparse.Namespace) -> int:
    results = [await _replay_cell(records, cell, partition, options) for cell, partition in cells.items()]
    return max(results)


async def _replay_cell(records: Records, cell: str, partition: int, options: argparse.Namespace) -> int:
    beginning = await find_beginning(records, cell, partition, options.since, schema=SCHEMA)

    def player() -> Player:
        return Player(
            records, cell=cell, partition=partition, policies=installed_policies(), beginning=beginning
        )

    found = Comparison(player())
    await found.run(options.until)
    state = found.player.state
    shown: dict[str, Any] = {"cell": cell} | summary_as_json(found)
    lines = [f"cell {cell}: {summary(found)}"]
    if found.difference is not None:
        parting = await _part(found.difference, state, player())
        state = parting.behind
        shown["difference"] = parting.as_json()
        lines += parting.as_text()
    if options.state:
        shown["known"] = known_of(state, options.state)
        lines += known_as_text(state, options.state)
    print(json.dumps(shown, ensure_ascii=False) if options.json else "\n".join(lines))
    return EXIT_DIFFERENT if found.difference else 0


async def _part(difference: Difference, behind: State, player: Player) -> Parting:
    """What was known before the record is found by playing up to it once more: nothing had to be kept for this."""
    at = difference.offset
    async for _ in player.play(at - 1):
        pass
    [record] = await player.records.events(player.partition, at, at + 1)
    before = player.state
    behind = before if difference.raised else behind  # what an exception leaves says nothing
    return Parting(difference=difference, record=record, before=before, behind=behind)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sluice replay",
        description="Play a cell's log again on the real core, and compare every decision byte for byte. The first "
        "difference is shown with its record, both decisions, and what the core knew before and behind it. Exit "
        "codes: 0 identical, 1 different or unreadable, 2 wrong usage.",
    )
    parser.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="what `sluice audit export` wrote (default: Kafka)"
    )
    parser.add_argument(
        "--from",
        dest="since",
        type=where,
        metavar="WHERE",
        help=f"{FROM_HELP} (default: rebuild; of a FILE, its beginning)",
    )
    parser.add_argument(
        "--until",
        type=place,
        metavar="PLACE",
        help="the last event's offset, or a time that none is later than",
    )
    parser.add_argument(
        "--state",
        metavar="NAME",
        help="what the core knew in the end of a queue, or of NAMESPACE/NAME, a pod or an application",
    )
    parser.add_argument(
        "--pseudonyms", type=Path, metavar="OUT", help="write FILE again with pseudonyms for names, and end"
    )
    parser.add_argument("--json", action="store_true", help="for machines: an object a cell")
    parser.add_argument("--cell", metavar="NAME", help="only this cell (default: all of SLUICE_CELLS)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
