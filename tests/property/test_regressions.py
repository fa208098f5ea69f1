"""Histories that once failed, as the soak has kept them: they hold now."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from registry import CHECKS

FILES = sorted((Path(__file__).parents[1] / "regressions").glob("*.json"))


@pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])
def test_what_once_failed_holds(file: Path) -> None:
    content = json.loads(file.read_text())
    CHECKS[content["property"]](content["history"])
