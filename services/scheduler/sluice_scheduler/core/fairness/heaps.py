"""Heaps whose entries may stop counting: such an entry stays until it comes up, or until too many do not count.

A heap is made anew once it has more entries than `most_entries` says. Twice those that count is enough for that to cost
a push no more than the push itself.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from typing import Any, Final, TypeVar

E = TypeVar("E", bound=tuple[Any, ...])

_STALE_MAX: Final = 64


def most_entries(counting: int) -> int:
    """So many entries a heap may have if so many of them count."""
    return 2 * counting + _STALE_MAX


def heap_of(entries: Iterable[E]) -> list[E]:
    heap = list(entries)
    heapq.heapify(heap)
    return heap
