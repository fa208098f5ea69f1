"""Which cells a scheduler owns, as Kafka tells it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from sluice.settings import Settings
from sluice_scheduler.app import Owners


async def test_it_is_ready_when_it_is_told_what_it_owns_though_that_be_nothing() -> None:
    def own(**_: Any) -> Any:
        raise AssertionError("nothing was assigned")

    owners = Owners(Settings(), own)
    assert owners.unready() == "no assignment from Kafka yet"
    await owners.assigned(set())
    assert owners.unready() == ""


ENDS = """
from sluice_scheduler import app
from sluice_scheduler.ports import FencedError

async def serve(settings, folder):
    raise {error}

app.serve = serve
app.main()
"""
FENCED = "FencedError('cell default belongs to epoch 9-9')"


@pytest.mark.parametrize("error", [FENCED, f"ExceptionGroup('tasks', [ExceptionGroup('more', [{FENCED}])])"])
def test_one_that_is_fenced_off_says_so_in_a_line_and_is_started_again_by_whoever_watches_it(
    error: str,
) -> None:
    run = _ended(error)
    assert run.returncode == 1
    [line] = map(json.loads, run.stderr.splitlines())
    assert line["message"].startswith(
        "cell default belongs to epoch 9-9: another scheduler has taken it over"
    )
    assert "exception" not in line


def test_one_that_ends_for_something_else_too_shows_what_that_was() -> None:
    run = _ended(f"ExceptionGroup('tasks', [{FENCED}, ValueError('a fault of ours')])")
    assert run.returncode == 1
    assert "ValueError: a fault of ours" in run.stderr


def _ended(error: str) -> subprocess.CompletedProcess[str]:
    script = ENDS.format(error=error)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
