"""The command `sluice`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Final

from sluice.places import FROM_HELP, place, where
from sluice.programs import become, ends_quietly

from sluice_console import extensions
from sluice_console.errors import PROBLEM, ConsoleError

_DESCRIPTION: Final = (
    "Shows what Sluice holds, decides and why. It reads the ledger and the logs and changes nothing."
)
_EPILOG: Final = (
    "Where Redis and Kafka are is read from the environment (SLUICE_REDIS, SLUICE_KAFKA …); for the embedded "
    'stack: eval "$(make env)". Exit codes: 0 well, 1 a problem, 2 wrong usage.'
)


@ends_quietly()
def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    parser, commands_known = _parser(lists_programs=not words or words[0].startswith("-"))
    if words and not words[0].startswith("-") and words[0] not in commands_known:
        program = extensions.find(words[0])
        if program is None:
            parser.error(f"there is no command {words[0]} and no program {extensions.PREFIX}{words[0]}")
        become(program, words[1:])
    options = parser.parse_args(words)
    try:
        return _run(options)
    except ConsoleError as error:
        print(f"sluice: {error}\n  remedy: {error.remedy}", file=sys.stderr)
        return PROBLEM


def _run(options: argparse.Namespace) -> int:
    module, _, function = options.command.partition(".")
    command = getattr(import_module(f"sluice_console.commands.{module}"), function)
    return int(command(import_module("sluice_console.commands").Context.from_options(options)))


def _parser(*, lists_programs: bool) -> tuple[argparse.ArgumentParser, frozenset[str]]:
    """And its own commands. Other programs are listed only for help, because finding them takes time."""
    parser = argparse.ArgumentParser(prog="sluice", description=_DESCRIPTION, epilog=_EPILOG)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--json", action="store_true", help="for machines: JSON, amounts in base units")
    shared.add_argument("--cell", metavar="NAME", help="only this cell (default: all of SLUICE_CELLS)")
    top = parser.add_subparsers(metavar="COMMAND", required=True)

    queue = top.add_parser("queue", help="queues: who holds what, asks for what and is entitled to what")
    queues = queue.add_subparsers(metavar="ACTION", required=True)
    _add(queues, "list", "queue.show_list", "a line for each queue", shared)
    get = _add(queues, "get", "queue.show_one", "one queue in full", shared)
    get.add_argument("name", metavar="NAME")
    _add(queues, "tree", "queue.show_tree", "who stands under whom", shared)

    _add(top, "status", "status.show", "whether all is well; exit code 1 if something is wrong", shared)

    _add_doctor(top, shared)
    audit = top.add_parser("audit", help="the logs of all events and decisions")
    audits = audit.add_subparsers(metavar="ACTION", required=True)
    tail = _add(audits, "tail", "audit.show_tail", "the last records of both logs, a line each", shared)
    tail.add_argument("-f", "--follow", action="store_true", help="go on as records arrive, until Ctrl-C")
    tail.add_argument(
        "-n", type=_number_of_lines, default=20, metavar="N", help="so many at first (default: 20)"
    )
    only = tail.add_mutually_exclusive_group()
    only.add_argument("--events", action="store_true", help="only what the scheduler was told")
    only.add_argument("--decisions", action="store_true", help="only what it decided")
    tail.add_argument("--ticks", action="store_true", help="the ticks of time too, one a second")

    summary = "what could not be read and was set aside: whence, why, and the original"
    dead = _add(audits, "dead-letters", "audit.show_dead_letters", summary, shared)
    dead.add_argument("-n", type=_number_of_lines, default=20, metavar="N", help="so many of each log's")
    _add_reports(audits, shared)
    own = frozenset(top.choices)
    if lists_programs:
        programs = {name: said for name, said in extensions.summaries().items() if name not in own}
        for name, summary in programs.items():
            if summary:
                top.add_parser(name, help=summary.replace("%", "%%"), add_help=False)
        parser.epilog = _epilog([name for name, summary in programs.items() if not summary])
    return parser, own


def _add(
    to: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    command: str,
    summary: str,
    shared: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    added = to.add_parser(name, help=summary, description=summary, parents=[shared])
    added.set_defaults(command=command)
    return added


def _add_doctor(
    top: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser
) -> None:
    doctor = top.add_parser("doctor", help="what would go wrong")
    doctors = doctor.add_subparsers(metavar="WHAT", required=True)
    summary = "time-outs that end a workload while it only waits; exit code 1 if there are any"
    workloads = _add(doctors, "workloads", "doctor.show_workloads", summary, shared)
    files = "manifests, or what kubectl get -o json printed; -: what comes in"
    workloads.add_argument("files", nargs="+", metavar="FILE", help=files)


def _add_reports(
    audits: argparse._SubParsersAction[argparse.ArgumentParser], shared: argparse.ArgumentParser
) -> None:
    summary = "what happened to a cell, in one file that `sluice replay` plays without any server"
    export = _add(audits, "export", "export.export", summary, shared)
    export.add_argument(
        "file", type=Path, metavar="FILE", help="to be written; not one that is there already"
    )
    export.add_argument("--force", action="store_true", help="replace FILE if it is there already")
    export.add_argument(
        "--from",
        dest="since",
        type=where,
        default="rebuild",
        metavar="WHERE",
        help=f"{FROM_HELP} (default: rebuild)",
    )
    export.add_argument(
        "--to",
        dest="until",
        type=place,
        metavar="PLACE",
        help="the last event's offset, or a time (default: now)",
    )
    export.add_argument(
        "--pseudonyms",
        action="store_true",
        help="replace tenants' names, in the same order, all of one story",
    )
    summary = "whether the decisions stand in the log as they were published; exit code 1 if not"
    verify = _add(audits, "verify", "verify.show", summary, shared)
    verify.add_argument(
        "file", nargs="?", type=Path, metavar="FILE", help="of `sluice audit export` (default: Kafka)"
    )
    verify.add_argument("--replay", action="store_true", help="and whether they follow from the events")


def _epilog(others: Sequence[str]) -> str:
    installed = f"Installed beside it, as `sluice NAME`: {', '.join(others)}. " if others else ""
    return installed + _EPILOG


def _number_of_lines(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no number of lines: write 0 or more")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
