"""`make doctor` says what a machine lacks, also on a fresh clone: without a setup, by the standard library alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
VERSIONS = {"java": "17.0.1", "mvn": "3.8.7", "go": "1.26.1"}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A machine with all that a setup does not bring."""
    for name, version in VERSIONS.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\necho {version}\n")
        program.chmod(0o755)
    return tmp_path


def examined(tools: Path) -> tuple[int, dict[str, str]]:
    """The exit code, and what is said of each thing by a Python that no package was installed for."""
    environment = {"PYTHONPATH": f"{ROOT / 'deploy/local'}:{ROOT / 'shared'}", "PATH": str(tools)}
    home = {"HOME": os.environ["HOME"]}
    run = subprocess.run(
        [sys.executable, "-S", "-m", "sluice_local", "doctor"],
        env=environment | home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stderr == ""
    return run.returncode, {line.split()[1]: line for line in run.stdout.splitlines()}


def test_what_a_setup_brings_is_not_missing_before_it(tools: Path) -> None:
    code, told = examined(tools)
    assert told["redis-server"] == "ok       redis-server  not here yet: make setup brings it along"
    assert all(told[name].startswith(f"ok       {name:<14}{version}") for name, version in VERSIONS.items())
    assert code == any(line.startswith("MISSING") for line in told.values())


def test_what_a_setup_does_not_bring_is_missing(tools: Path) -> None:
    (tools / "mvn").unlink()
    code, told = examined(tools)
    assert told["mvn"] == "MISSING  mvn           mvn 3.6 or newer is missing: apt-get install maven"
    assert code == 1
