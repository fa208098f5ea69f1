"""How far the consumer group may be told that the actuator has come."""

from __future__ import annotations

from collections import defaultdict


class Progress:
    """For each partition what was read, and which of it is still without an acknowledged outcome."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}
        self._unanswered: defaultdict[int, set[int]] = defaultdict(set)

    def begin(self, partition: int, offset: int) -> None:
        self._next[partition] = offset + 1
        self._unanswered[partition].add(offset)

    def answered(self, partition: int, offset: int) -> None:
        self._unanswered[partition].discard(offset)

    def offsets(self) -> dict[int, int]:
        """For each partition the offset below which nothing is owed."""
        return {
            partition: min(self._unanswered[partition], default=next_offset)
            for partition, next_offset in self._next.items()
        }
