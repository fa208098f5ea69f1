"""Other projects' operators as parts of a stack: which it has, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from sluice_local import Stack, StackError
from sluice_local.demo import __main__ as demo
from sluice_local.operators import OPERATORS
from sluice_local.operators.module import _wanted
from sluice_local.stack import STACK_VARIABLE


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_an_unknown_one_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(StackError, match="There is no spark here; there are kuberay, spark-operator"):
        Stack(given={}).up(operators=["kuberay", "spark"])


def test_beside_a_given_cluster_it_is_refused() -> None:
    with pytest.raises(StackError, match=r"kuberay would run beside .*install it there"):
        Stack(given={"KUBECONFIG": "elsewhere"}).up(operators=["kuberay"])


def test_without_a_control_plane_it_is_refused() -> None:
    with pytest.raises(StackError, match="kuberay can't run without kubernetes"):
        Stack(given={}).up(only=["kafka"], operators=["kuberay"])


def test_what_was_once_started_belongs_to_the_stack() -> None:
    stack = Stack(given={})
    assert stack.operators == set()
    was_started(stack, "spark-operator-webhook")
    assert stack.operators == {"spark-operator"}
    assert Stack("another", given={}).operators == set()


def test_the_demo_leaves_a_stack_to_real_ones(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    was_started(Stack("demo", given={}), "kuberay")
    monkeypatch.setenv(STACK_VARIABLE, "demo")
    monkeypatch.setattr(sys, "argv", ["demo"])
    assert demo.main() == 1
    assert "this stack has kuberay: both would do the same work" in capsys.readouterr().err


def was_started(stack: Stack, process: str) -> None:
    record = stack.directory / process / "process.json"
    record.parent.mkdir(parents=True)
    record.write_text('{"pid": 1, "born": 0}')


def test_each_process_has_a_name_of_its_own() -> None:
    processes = [process for operator in OPERATORS.values() for process in operator]
    names = [process.called or process.binary.name for process in processes]
    assert len(set(names)) == len(names)


def test_of_a_modules_manifests_its_own_pod_is_left_out() -> None:
    kinds = ("Namespace", "Deployment", "Service", "ServiceAccount")
    text = "---\n" + yaml.safe_dump_all([{"kind": kind} for kind in kinds])
    assert [each["kind"] for each in _wanted(text)] == ["Namespace", "ServiceAccount"]
