"""What is run for as long as one says takes no usage for a result that has tried nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests", "tests/integration", "tests/e2e")
SIM, SOAK, CHAOS = ("-m", "simulation.system"), ("tests/property/soak.py",), ("-m", "chaos")


@pytest.mark.parametrize(
    ("program", "words", "told"),
    [
        (SIM, ("--seeds", "-1"), "-1 is too few: write a whole number, 1 or more"),
        (SIM, ("--seeds", "0"), "0 is too few"),
        (SIM, ("--workers", "0"), "0 is too few"),
        (SIM, ("--minutes", "0"), "0 is no time to work for: write minutes, more than 0"),
        (SIM, ("--minutes", "inf"), "inf is no time"),
        (SOAK, ("--minutes", "0"), "0 is no time"),
        (SOAK, ("--minutes", "-1"), "-1 is no time"),
        (CHAOS, ("--minutes", "0"), "0 is no time"),
        (CHAOS, ("--minutes", "soon"), "soon is no time"),
        (CHAOS, ("--fault", "foo"), "no fault begins with foo; there are:\n  kill -9 watcher\n"),
    ],
)
def test_what_would_try_nothing_is_wrong_usage(
    program: tuple[str, ...], words: tuple[str, ...], told: str, tmp_path: Path
) -> None:
    search = os.pathsep.join(str(ROOT / folder) for folder in FOLDERS)
    environment = os.environ | {"PYTHONPATH": search, "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, *program, *words]
    run = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (run.returncode, run.stdout, told in run.stderr) == (2, "", True), run.stderr
    assert not list(tmp_path.iterdir()), "nothing was started"
