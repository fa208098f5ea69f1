"""Only what was started here is ever ended, and a build that was cut short is never taken for a whole one."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from sluice_local import build
from sluice_local.process import Daemon


def test_a_pid_that_now_belongs_to_somebody_else_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        (tmp_path / "process.json").write_text(json.dumps({"pid": stranger.pid, "born": 1}))
        daemon = Daemon(tmp_path)

        assert daemon.pid() is None
        daemon.kill()

        assert stranger.poll() is None
        stranger.kill()


def test_a_process_that_had_ended_before_it_was_recorded_does_not_run(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    (tmp_path / "process.json").write_text(json.dumps({"pid": ended.pid, "born": None}))
    assert Daemon(tmp_path).pid() is None


def test_a_process_that_ignores_the_request_is_ended_after_its_grace(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.start(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], {"PATH": "/usr/bin:/bin"}
    )
    while "ready" not in daemon.last_words():
        pass
    daemon.stop(grace_s=0.2)
    assert daemon.pid() is None


@dataclass
class Fragile:
    """An artefact whose first build fails half-way."""

    path: Path
    name: str = "fragile"
    takes: str = "no time"
    builds: int = 0

    def build(self, target: Path, progress: build.Progress) -> None:
        self.builds += 1
        target.write_text("half")
        if self.builds == 1:
            raise RuntimeError("interrupted")
        target.write_text("whole")


def test_a_build_that_was_cut_short_is_done_again_and_a_finished_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    artefact = Fragile(tmp_path / "sluice" / "place" / "fragile")
    with pytest.raises(RuntimeError):
        build.ensure([artefact], print)
    assert not artefact.path.exists()

    for _ in range(2):
        build.ensure([artefact], print)
    assert artefact.path.read_text() == "whole"
    assert artefact.builds == 2
