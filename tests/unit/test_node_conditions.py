"""A machine that can't have a real node is told why, and what to do, before anything is changed on it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from sluice_local import StackError
from sluice_local.node import cgroups, conditions


@pytest.fixture(autouse=True)
def fine(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that meets all conditions, for each test to spoil one."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(cgroups, "lacking", list)
    monkeypatch.setattr(cgroups, "closed", list)
    monkeypatch.setattr(conditions, "_complaint", lambda *_: "")
    monkeypatch.setattr(conditions, "missing_packages", list)


def test_a_machine_that_meets_them_all_is_left_as_it_is() -> None:
    said: list[str] = []
    conditions.ensure(said.append, agreed=False)
    assert said == []


def test_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert conditions.unmet() == "containers are Linux's, and this is darwin: use a Linux machine"


def test_another_user_than_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(
        StackError, match="only root can start containers: run the stack and its node as root"
    ):
        conditions.ensure(print, agreed=True)


def test_no_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "lacking", lambda: ["memory", "pids"])
    assert (
        conditions.unmet() == "there are no cgroups for memory, pids: mount them at /sys/fs/cgroup, v1 or v2"
    )


def test_cgroups_that_can_only_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "closed", lambda: [Path("/sys/fs/cgroup/pids")])
    assert str(conditions.unmet()).startswith(
        "no cgroup can be made in /sys/fs/cgroup/pids, which is read-only"
    )


@pytest.mark.parametrize(
    ("namespace", "script", "says"),
    [
        ("--mount", "overlay", "no overlay can be mounted (denied)"),
        ("--net", "ip link", "no bridge can be made in a network namespace (denied)"),
        ("--net", "iptables", "iptables can't redirect (denied)"),
    ],
)
def test_what_the_kernel_refuses(
    namespace: str, script: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def complaint(where: str, tried: str) -> str:
        return "denied" if where == namespace and script in tried else ""

    monkeypatch.setattr(conditions, "_complaint", complaint)
    assert str(conditions.unmet()).startswith(says)


def test_packages_that_are_missing_where_there_is_no_apt_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(conditions, "missing_packages", lambda: ["runc"])
    assert "there is no apt-get: install what Debian has in runc" in str(conditions.unmet())


def test_somebody_at_a_terminal_may_say_no(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "missing_packages", lambda: ["runc"])
    monkeypatch.setattr(conditions, "_install", lambda *_: pytest.fail("nobody has agreed"))
    monkeypatch.setattr(sys, "stdin", type("Terminal", (), {"isatty": lambda _: True})())
    monkeypatch.setattr("builtins.input", lambda _: "")
    said: list[str] = []
    with pytest.raises(StackError, match="no real node here without it"):
        conditions.ensure(said.append, agreed=False)
    assert said == ["a real node needs what apt-get will install: runc"]


def test_a_process_is_known_by_the_cgroup_that_it_is_in() -> None:
    own = Path("/proc/self/cgroup").read_text().splitlines()
    deepest = max((line.split(":", 2)[2] for line in own), key=len)
    first = deepest.strip("/").split("/")[0]
    assert cgroups.holds(first, os.getpid()) or not first
    assert not cgroups.holds("sluice-00000000", os.getpid())
    assert not cgroups.holds("sluice-00000000", 2**22 + 1)
