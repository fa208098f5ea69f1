"""Files that a command is told to write, looked at before it works for them."""

from __future__ import annotations

import os
from pathlib import Path


class TargetError(Exception):
    """Why nothing can be written there, and what to do about it."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy


def expect_writable(path: Path) -> None:
    if not path.parent.is_dir():
        raise TargetError(
            f"{path} can't be written: there is no folder {path.parent}", remedy="make it first"
        )
    if path.is_dir():
        raise TargetError(f"{path} is a folder", remedy="name a file in it")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise TargetError(f"{path} can't be written: you have no right to", remedy="name another file")


def expect_new(path: Path, *, remedy: str = "name another file") -> None:
    expect_writable(path)
    if path.exists():
        raise TargetError(f"{path} is there already, and would be lost", remedy=remedy)
