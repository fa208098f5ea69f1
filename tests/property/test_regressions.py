"""Histories that once failed, as the soak has kept them: they hold now.

A file that says what is `open` fails still, and must be mended: the mark is taken off when it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from registry import CHECKS

FILES = sorted((Path(__file__).parents[1] / "regressions").glob("*.json"))


def kept() -> list[Any]:
    found = []
    for file in FILES:
        still = json.loads(file.read_text()).get("open")
        marks = [pytest.mark.xfail(strict=True, reason=still)] if still else []
        found.append(pytest.param(file, id=file.stem, marks=marks))
    return found


@pytest.mark.parametrize("file", kept())
def test_what_once_failed_holds(file: Path) -> None:
    content = json.loads(file.read_text())
    CHECKS[content["property"]](content["history"])
