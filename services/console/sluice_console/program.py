"""The program `sluice`, before anything else of it is loaded."""

from __future__ import annotations

from sluice.programs import run


def main() -> int:
    return run("sluice_console.main")
