"""`sluice X` runs a program `sluice-X`, as git does: commands that come with other packages."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PREFIX: Final = "sluice-"


def find(name: str) -> Path | None:
    return dict(_programs()).get(name)


def names() -> list[str]:
    return sorted(dict(_programs()))


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
