"""Texts of any length: what somebody else has written (a field of an object, an API server's answer), and the names of
whatever a message is about. They have to fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: What quotes them goes into records, statuses and headers. It has to fit, whatever stands in it.
LENGTH_MAX: Final = 1000
#: A message names so many pods, queues or sentences; of the others it says how many they are.
NAMED: Final = 3


def cut(text: str, most: int = LENGTH_MAX) -> str:
    """The text, or as much of it as `most` characters hold."""
    return text if len(text) <= most else text[: most - 3] + "..."


def few(names: Sequence[str], between: str = ", ") -> str:
    """The first few, and how many more."""
    more = len(names) - NAMED
    return between.join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
