"""One test that breaks a stack takes no other down: the stack is written down, ended and replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stacks
from audit import REPORT
from sluice_local import Stack
from sluice_local.redis import Redis
from stacks import Stacks

pytestmark = pytest.mark.e2e


@pytest.fixture
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stacks]:
    """Stacks beside those of the other tests."""
    monkeypatch.setattr(stacks, "REPORTS", tmp_path / "reports")
    with Stacks().in_folder(tmp_path) as found:
        yield found


def pids(stack: Stack) -> dict[str, int]:
    return {each.name: each.pid for each in stack.status() if each.pid is not None}


def test_a_stack_on_which_a_test_failed_is_reported_and_replaced(apart: Stacks) -> None:
    first = apart.well()
    before = pids(first)
    folder = apart.report("a-test-7", "it did not hold")
    assert folder is not None
    assert {"error.txt", "ledger.json", REPORT} <= {each.name for each in folder.iterdir()}
    replayed = subprocess.run(
        [Path(sys.executable).with_name("sluice"), "replay", folder / REPORT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert {f"{name}-log" for name in ("kafka", "scheduler")} <= {each.stem for each in folder.iterdir()}
    second = apart.well()
    assert second.name != first.name
    assert pids(second).keys() == before.keys()
    assert not any(Path(f"/proc/{pid}").exists() for pid in before.values())


def test_a_stack_whose_server_hangs_is_noticed_and_replaced(
    apart: Stacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = apart.well()
    monkeypatch.setattr(Redis, "ready_within_s", 10)
    os.kill(pids(first)["redis"], signal.SIGSTOP)
    second = apart.well()
    assert second.name != first.name
    assert [folder.name for folder in apart.reports] == ["unwell-after-1"]
