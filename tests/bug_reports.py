"""Where failed end-to-end tests leave what happened, one folder each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

REPORTS: Final = Path(__file__).parents[1] / "build" / "failures"


def made_since(began_s: float) -> list[Path]:
    return sorted(folder for folder in REPORTS.glob("*") if folder.stat().st_mtime >= began_s)
