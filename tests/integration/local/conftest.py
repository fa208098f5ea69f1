"""Stacks of these tests alone: their state lies in a folder of its own, their builds in the shared cache."""

import os
from collections.abc import Iterator

import pytest
from sluice_local import Stack


@pytest.fixture(scope="package", autouse=True)
def _private_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="package")
def stack(_private_state: None) -> Iterator[Stack]:
    stack = Stack("one", say=print)
    stack.up()
    yield stack
    pids = [status.pid for status in stack.status() if status.pid]
    stack.down(purge=True)
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert not stack.directory.exists()
