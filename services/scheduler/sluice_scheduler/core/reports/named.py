"""How many things a message names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

#: So many pods, queues or sentences; of the others it says how many they are.
NAMED: Final = 3


def few(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
