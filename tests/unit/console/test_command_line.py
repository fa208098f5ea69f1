"""The command line: exit codes, messages, and commands that come with other packages."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from sluice_console import extensions

SLUICE = [sys.executable, "-m", "sluice_console.main"]


def sluice(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*SLUICE, *words],
        env={"PATH": "/usr/bin:/bin"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    program = tmp_path / "sluice-rehearse"
    program.write_text('#!/bin/sh\necho "rehearsing $*"; exit 7\n')
    program.chmod(0o755)
    (tmp_path / "sluice-notes.txt").write_text("no program")
    return tmp_path


def test_other_programs_are_commands_too(programs: Path) -> None:
    run = sluice("rehearse", "file.yaml", "--json", PATH=f"{programs}:/usr/bin:/bin")
    assert (run.returncode, run.stdout) == (7, "rehearsing file.yaml --json\n")


def test_help_names_them(programs: Path) -> None:
    text = sluice("--help", PATH=f"{programs}:/usr/bin:/bin").stdout
    assert "rehearse" in text
    assert "notes" not in text


def test_commands_of_other_packages_are_listed_like_our_own(programs: Path) -> None:
    text = sluice("--help", PATH=f"{programs}:/usr/bin:/bin", COLUMNS="120").stdout
    listed = dict(line.split(maxsplit=1) for line in text.splitlines() if line.startswith("    "))
    assert {"queue", "status", "audit", "explain", "simulate", "local"} <= listed.keys()
    assert listed["explain"] == "why something waits, where it stands, and when it may be served"
    assert "rehearse" not in listed, "nobody says what it does"


def test_a_broken_package_does_not_take_help_away(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint(name="rehearse", value="no.such.module:WORDS", group="sluice.commands")
    monkeypatch.setattr(extensions, "entry_points", lambda group: [broken])
    monkeypatch.setenv("PATH", str(programs))
    assert extensions.summaries()["rehearse"] == ""


def test_what_is_neither_is_wrong_usage() -> None:
    run = sluice("dance")
    assert run.returncode == 2
    assert "there is no command dance and no program sluice-dance" in run.stderr


def test_a_number_of_lines_is_a_number() -> None:
    run = sluice("audit", "tail", "-n", "-3")
    assert run.returncode == 2
    assert "write 0 or more" in run.stderr


def test_an_unreachable_redis_is_told_with_a_remedy_and_without_its_password() -> None:
    run = sluice("queue", "list", SLUICE_REDIS="redis://:hunter2@127.0.0.1:1/0")
    assert run.returncode == 1
    assert "Redis at 127.0.0.1:1/0 gives no answer" in run.stderr
    assert "remedy: " in run.stderr
    assert "hunter2" not in run.stderr


def test_a_cell_that_the_settings_do_not_name_is_told() -> None:
    run = sluice("queue", "list", "--cell", "moon", SLUICE_CELLS='{"earth": 0}')
    assert run.returncode == 1
    assert "there is no cell moon; there are earth" in run.stderr
