"""What a command may end with."""

from __future__ import annotations

from typing import Final

OK: Final = 0
PROBLEM: Final = 1
USAGE: Final = 2


class ConsoleError(Exception):
    """What is wrong, and what to do about it."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        super().__init__(problem)
        self.remedy = remedy
