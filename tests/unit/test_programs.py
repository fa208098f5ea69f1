"""Commands whose reader goes away (`| head`) end without a word, with the exit code that shells expect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sluice.programs import UNREAD
from unread import unread

BIN = Path(sys.executable).parent
SCENARIO = Path(__file__).parents[1] / "scenarios" / "weighted-drf.yaml"


@pytest.mark.parametrize(
    "command",
    [
        ["sluice", "--help"],
        ["sluice", "queue", "list", "--help"],
        ["sluice", "simulate", "--help"],
        ["sluice", "simulate", str(SCENARIO), "--json"],
        ["sluice", "simulate", str(SCENARIO)],
        ["sluice", "simulate", str(SCENARIO), "--compare", "drf,fifo"],
        ["sluice", "explain", "--help"],
        ["sluice", "local", "status"],
        ["sluice-local", "doctor"],
        ["sluice-local", "env"],
        ["sluice-watcher", "--help"],
    ],
    ids=" ".join,
)
def test_a_command_whose_reader_is_gone_is_quiet(command: list[str], tmp_path: Path) -> None:
    run = unread([BIN / command[0], *command[1:]], os.environ | {"XDG_STATE_HOME": str(tmp_path)})
    assert (run.returncode, run.stderr) == (UNREAD, "")


def test_the_first_line_of_many_is_enough() -> None:
    pipe = f"{BIN / 'sluice'} simulate {SCENARIO} --json | head -n 1; echo ${{PIPESTATUS[0]}}"
    run = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, check=False)
    assert run.stderr == ""
    first, code = run.stdout.splitlines()
    assert first.startswith("{")
    assert code in ("0", str(UNREAD)), "0 if it had said everything before head ended"


def test_a_program_of_somebody_else_gets_its_signal(tmp_path: Path) -> None:
    program = tmp_path / "sluice-chatter"
    program.write_text("#!/bin/sh\nwhile :; do echo chatter; done\n")
    program.chmod(0o755)
    run = unread([BIN / "sluice", "chatter"], {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (run.returncode, run.stderr) == (-signal.SIGPIPE, "")


def test_logs_whose_reader_is_gone_are_quiet(tmp_path: Path) -> None:
    folder = tmp_path / "sluice" / "stacks" / "default" / "kafka"
    folder.mkdir(parents=True)
    (folder / "process.json").write_text('{"pid": 1, "born": 1}')
    (folder / "log").write_text("a line\n" * 100)
    run = unread([BIN / "sluice-local", "logs"], {"XDG_STATE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert (run.returncode, run.stderr) == (-signal.SIGPIPE, "")


def test_a_connection_that_breaks_is_no_reader_that_went_away() -> None:
    script = (
        "from sluice.programs import ends_with_its_reader\n"
        "with ends_with_its_reader():\n"
        "    raise BrokenPipeError('a socket')\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "a socket" in run.stderr
