"""The stack that end-to-end tests share, for as long as it is well.

A test that fails may have left anything behind, and a server may have died of what an earlier test did. Such a
stack is written down as a bug report, ended, and replaced, so that no test fails for another's reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from audit import Audit
from bug_reports import REPORTS
from cluster_api import eventually
from sluice_local import Stack, StackError
from sluice_local.services import SERVICES
from sluice_local.stack import OPTIONAL, Status

SERVERS: Final = ("kafka", "redis", "etcd", "kube-apiserver", *OPTIONAL)
#: All servers and services answer after so long, whatever was killed.
WELL_WITHIN_S: Final = 90


class Stacks:
    """One stack at a time."""

    def __init__(self) -> None:
        self._stack: Stack | None = None
        self._made = 0
        self._is_suspect = False
        self._operators: Collection[str] = ()
        self.reports: list[Path] = []

    @contextmanager
    def in_folder(self, folder: Path) -> Iterator[Stacks]:
        """Stacks live in this folder, and none outlives it."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_STATE_HOME", str(folder))
            try:
                yield self
            finally:
                self._end()

    def well(self, operators: Collection[str] = ()) -> Stack:
        """A stack all of whose servers and services are ready, with these operators of other projects and no
        others; a new one where that can't be had of the last."""
        if self._is_suspect or operators != self._operators:
            self._end()
        self._operators = operators
        if self._stack is not None:
            try:
                return _made_well(self._stack, operators)
            except (StackError, OSError, AssertionError) as error:
                self.report(f"unwell-after-{self._made}", str(error))
                self._end()
        self._made += 1
        self._stack = Stack("e2e" if self._made == 1 else f"e2e-{self._made}", say=print)
        return _made_well(self._stack, operators)

    def report(self, name: str, error: str) -> Path | None:
        """Write down all that happened on the stack, which is not used by another test."""
        if self._stack is None or self._is_suspect:
            return None
        self._is_suspect = True
        folder = REPORTS / name
        Audit(self._stack).export(self._stack, folder)
        (folder / "error.txt").write_text(error)
        self.reports.append(folder)
        return folder

    @property
    def is_suspect(self) -> bool:
        """Whether nobody needs to tidy up: the stack is replaced."""
        return self._is_suspect

    def logs(self) -> list[Path]:
        return self._stack.logs() if self._stack else []

    def _end(self) -> None:
        if self._stack is not None:
            self._stack.down(purge=True)
        self._stack, self._is_suspect = None, False


def _made_well(stack: Stack, operators: Collection[str]) -> Stack:
    stack.up(services=True, operators=operators)
    eventually(lambda: all(each.ready for each in stack.status() if _counts(each)), seconds=WELL_WITHIN_S)
    return stack


def _counts(status: Status) -> bool:
    """What runs beside a stack, as an operator does, may be ready in ways of its own."""
    return status.pid is not None and status.name.startswith((*SERVERS, *SERVICES))
