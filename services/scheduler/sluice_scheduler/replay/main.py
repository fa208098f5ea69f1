"""`sluice-replay`: play a log again and compare every decision. `sluice replay` runs it."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from sluice import settings as sluice_settings
from sluice.beginnings import NoBeginningError, NothingThereError, find_beginning, find_end
from sluice.bugreport import NO_END, BugReportError, FileRecords
from sluice.kafka import LogError, NoTopicError
from sluice.places import FROM_HELP, place, where
from sluice.programs import START_OR_POINT, ends_quietly
from sluice.records import KafkaRecords, Records
from sluice.targets import TargetError, expect_new

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
    BugReportError, HoleError, LedgerError, NoBeginningError, NoTopicError, PseudonymsError, TargetError, OSError
)  # fmt: skip


@ends_quietly()
def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    try:
        return asyncio.run(_main(options))
    except NothingThereError as error:
        _complain(error)
        return EXIT_USAGE
    except _PROBLEMS as error:
        _complain(error, remedy=getattr(error, "remedy", ""))
    except LogError as error:
        what = f"Kafka at {sluice_settings.load().kafka} gives no answer: {error}"
        _complain(what, remedy=START_OR_POINT.format(variable="SLUICE_KAFKA"))
    return EXIT_DIFFERENT


def _complain(what: object, *, remedy: str = "") -> None:
    print(f"sluice replay: {what}" + (f"\n  remedy: {remedy}" if remedy else ""), file=sys.stderr)


async def _main(options: argparse.Namespace) -> int:
    if options.file is not None:
        return await _of_file(options)
    if options.pseudonyms is not None:
        _complain("--pseudonyms writes a FILE again: name it")
        return EXIT_USAGE
    options.since = "rebuild" if options.since is None else options.since
    settings = sluice_settings.load()
    cells = {name: at for name, at in settings.cells.items() if options.cell in (None, name)}
    if not cells:
        known = ", ".join(settings.cells)
        _complain(f"there is no cell {options.cell}; there are {known}")
        return EXIT_USAGE
    topics = KafkaRecords(settings)
    try:
        return await _replay(topics, cells, options)
    finally:
        await topics.close()


async def _of_file(options: argparse.Namespace) -> int:
    if options.pseudonyms is not None:
        expect_new(options.pseudonyms)
    records = FileRecords.open(options.file)
    header = records.header
    for lack in records.lacks if records.tells_its_end else [NO_END]:
        _complain(f"{options.file}: {lack}")
    code = EXIT_DIFFERENT if records.lacks else 0
    if options.pseudonyms is not None:
        if not records.lacks:
            await write_anew(records, installed_policies(), options.pseudonyms)
        return code
    if options.since is None:
        options.since, _ = await records.bounds(header.partition)
    if header.pseudonyms and not options.json:
        print(f"{options.file}: names are pseudonyms, and decisions were decided anew with them")
    cells = {header.cell: header.partition}
    return max(code, await _replay(records, cells, options, lacks=records.lacks))


async def _replay(
    records: Records, cells: dict[str, int], options: argparse.Namespace, *, lacks: Sequence[str] = ()
) -> int:
    """And what was asked for, with `--state`, some cell must have known."""
    results = [await _replay_cell(records, cell, at, options, lacks=lacks) for cell, at in cells.items()]
    knew = not options.state or any(knows for _, knows in results)
    return max(EXIT_DIFFERENT if differs or not knew else 0 for differs, _ in results)


async def _replay_cell(
    records: Records, cell: str, partition: int, options: argparse.Namespace, *, lacks: Sequence[str]
) -> tuple[bool, bool]:
    """Whether it differs, and whether it knew what `--state` names."""
    beginning = await find_beginning(records, cell, partition, options.since, schema=SCHEMA)
    await find_end(records, cell, partition, options.until, since=options.since, beginning=beginning)

    def player() -> Player:
        return Player(
            records, cell=cell, partition=partition, policies=installed_policies(), beginning=beginning
        )

    found = Comparison(player())
    await found.run(options.until)
    state = found.player.state
    shown: dict[str, Any] = {"cell": cell} | summary_as_json(found, lacks)
    lines = [f"cell {cell}: {summary(found, whole=not lacks)}"]
    if found.difference is not None:
        parting = await _part(found.difference, state, player())
        state = parting.behind
        shown["difference"] = parting.as_json()
        lines += parting.as_text()
    if options.state:
        shown["known"] = known_of(state, options.state)
        lines += known_as_text(state, options.state)
    print(json.dumps(shown, ensure_ascii=False) if options.json else "\n".join(lines))
    return found.difference is not None, bool(shown.get("known"))


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
        "codes: 0 identical; 1 different, unreadable, a FILE that is not whole, or a NAME that nobody knew; 2 wrong "
        "usage, or nothing lies there.",
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
        "--pseudonyms",
        type=Path,
        metavar="OUT",
        help="write FILE again with pseudonyms for names into a new file, and end",
    )
    parser.add_argument("--json", action="store_true", help="for machines: an object a cell")
    parser.add_argument("--cell", metavar="NAME", help="only this cell (default: all of SLUICE_CELLS)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
