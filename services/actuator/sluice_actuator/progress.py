"""How far the consumer group may be told that a partition is done with."""

from __future__ import annotations

from sluice.kafka import Position
from sluice.topics import TopicsMadeAnewError


class Progress:
    """What was read of a partition, and which of it has no acknowledged outcome yet.

    The position that is committed lies before every unanswered decision. Its note says from where on the
    events topic holds outcomes of what lies behind it: the end of what was appended before the first of those
    decisions was read. And it says in which topics all this is counted, for a group's position outlives its topic
    if a member commits it once more.
    """

    def __init__(self, outcomes_from: int, topics: str = "") -> None:
        self._outcomes_from = outcomes_from
        self._topics = topics
        self._next: int | None = None
        self._unanswered: dict[int, int] = {}  # in the order of reading, which is that of the offsets

    def begin(self, offset: int) -> None:
        """Offsets only rise; one that doesn't is of a new topic, and is met before anybody has asked for its id."""
        if self._next is not None and offset < self._next:
            raise TopicsMadeAnewError(
                f"Kafka was made anew: a decision at offset {offset} follows one at {self._next - 1}"
            )
        self._next = offset + 1
        self._unanswered[offset] = self._outcomes_from

    def answer(self, offset: int) -> None:
        del self._unanswered[offset]

    def appended(self, last_offset: int) -> None:
        """Outcomes were acknowledged up to this offset of the events topic."""
        self._outcomes_from = max(self._outcomes_from, last_offset + 1)

    @property
    def position(self) -> Position | None:
        """None as long as nothing was read."""
        for offset, outcomes_from in self._unanswered.items():
            return self._position(offset, outcomes_from)
        return None if self._next is None else self._position(self._next, self._outcomes_from)

    def _position(self, offset: int, outcomes_from: int) -> Position:
        return Position(offset, f"{outcomes_from} {self._topics}".rstrip())
