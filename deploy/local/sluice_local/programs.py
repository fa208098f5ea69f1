"""Programs that are run to their end."""

import subprocess
from pathlib import Path
from typing import IO

from sluice_local.errors import StackError


def run(*argv: str | Path, stdin: IO[bytes] | None = None) -> str:
    """What it prints. Its failure is ours, with its complaint."""
    try:
        ran = subprocess.run(
            argv, stdin=stdin or subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as missing:
        raise StackError(f"There is no {argv[0]} on this machine: install it.") from missing
    if ran.returncode:
        raise StackError(f"{' '.join(map(str, argv))} failed:\n{ran.stderr.strip()}")
    return ran.stdout
