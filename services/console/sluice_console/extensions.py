"""`sluice X` runs a program `sluice-X`, as git does: commands that come with other packages.

A package may say in a line what its command does: an entry point of the group `sluice.commands`, with the
command's name, that leads to a text.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Final

from sluice_console.errors import ConsoleError

PREFIX: Final = "sluice-"
_SUMMARIES: Final = "sluice.commands"


def find(name: str) -> Path | None:
    return dict(_programs()).get(name)


def run(name: str, arguments: Sequence[str]) -> int:
    """Another command on the way of one of ours; its exit code."""
    program = find(name)
    if program is None:
        raise ConsoleError(
            f"there is no program {PREFIX}{name}",
            remedy="install the package sluice-scheduler, which brings it",
        )
    sys.stdout.flush()
    return subprocess.run([program, *arguments], check=False).returncode


def summaries() -> dict[str, str]:
    """What each program does, by its command; empty where nobody says it."""
    told = {entry.name: _summary(entry) for entry in entry_points(group=_SUMMARIES)}
    return {name: told.get(name, "") for name in sorted(dict(_programs()))}


def _summary(entry: EntryPoint) -> str:
    try:
        return str(entry.load())
    except Exception:  # somebody else's package may be broken, and help is wanted all the more
        return ""


def _programs() -> Iterator[tuple[str, Path]]:
    """Ours last, so that in a dictionary those installed beside this one win over others of PATH."""
    own = Path(sys.executable).parent
    for folder in [*map(Path, reversed(os.get_exec_path())), own]:
        try:
            found = sorted(folder.glob(f"{PREFIX}*"))
        except OSError:  # PATH may name what cannot be read
            continue
        for program in found:
            if program.is_file() and os.access(program, os.X_OK):
                yield program.name.removeprefix(PREFIX), program
