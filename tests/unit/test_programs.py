"""Commands whose reader goes away (`| head`), or who are interrupted (Ctrl-C), end without a word, with the exit
code that shells expect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from sluice.programs import INTERRUPTED, UNREAD
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
        "from sluice.programs import ends_quietly\n"
        "with ends_quietly():\n"
        "    raise BrokenPipeError('a socket')\n"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "a socket" in run.stderr


def interrupted(program: subprocess.Popen[str]) -> tuple[int, str]:
    """By one Ctrl-C; its exit code, and what it says to that."""
    program.send_signal(signal.SIGINT)
    try:
        _, said = program.communicate(timeout=30)
    finally:
        program.kill()
    return program.returncode, said


LOADS = "import time\nprint('at it', flush=True)\ntime.sleep(60)\n"
WORKS = """
import asyncio
from sluice.programs import ends_quietly

@ends_quietly()
def main():
    asyncio.run(work())

async def work():
    print('at it', flush=True)
    while True:
        pass
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [(LOADS, -signal.SIGINT), (WORKS, INTERRUPTED)],
    ids=["while-it-loads", "while-it-works-without-a-pause"],
)
def test_a_program_that_is_interrupted_is_quiet(tmp_path: Path, module: str, code: int) -> None:
    """A shell shows 130 of both."""
    (tmp_path / "sample.py").write_text(module)
    script = "from sluice.programs import run; raise SystemExit(run('sample'))"
    program = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "at it\n"
    assert interrupted(program) == (code, "")


def test_a_replay_that_is_interrupted_is_quiet(tmp_path: Path) -> None:
    """It is at work once it reads its file."""
    file = tmp_path / "report"
    os.mkfifo(file)
    program = subprocess.Popen([BIN / "sluice", "replay", file], stderr=subprocess.PIPE, text=True)
    with file.open("wb"):
        assert interrupted(program) == (INTERRUPTED, "")


@pytest.mark.parametrize("name", ["sluice", "sluice-explain", "sluice-replay", "sluice-simulate"])
def test_a_command_can_be_interrupted_while_it_loads(name: str) -> None:
    """So what a shell starts has loaded nothing that takes long."""
    [entry] = entry_points(group="console_scripts", name=name)
    names = "sorted({each.partition('.')[0] for each in sys.modules} - sys.stdlib_module_names)"
    loaded = (
        f"import sys; before = {names}; import {entry.module}; print(*sorted(set({names}) - set(before)))"
    )
    run = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) <= {"sluice", "sluice_console", "sluice_scheduler"}
