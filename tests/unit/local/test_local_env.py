"""What `make env` exports, tried as a shell would use it: in an environment that knows nothing of Sluice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sluice_local import Stack


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stack:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return Stack("exports")


def test_the_command_sluice_is_found(stack: Stack) -> None:
    assert shutil.which("sluice", path=stack.user_env()["PATH"]) is not None


def test_exporting_again_changes_nothing(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    once = stack.user_env()
    monkeypatch.setenv("PATH", once["PATH"])
    assert stack.user_env() == once
    assert once["PATH"].endswith("/usr/bin:/bin")
