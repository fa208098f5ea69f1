"""What is committed never passes a decision without an outcome, whatever order they end in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sluice.kafka import Position
from sluice.topics import TopicsMadeAnewError
from sluice_actuator.progress import Progress


def test_nothing_read_nothing_committed() -> None:
    assert Progress(5).position is None


def test_the_note_is_the_end_of_outcomes_when_the_first_unanswered_was_read() -> None:
    progress = Progress(5)
    progress.begin(100)
    progress.appended(6)
    progress.begin(101)
    assert progress.position == Position(100, "5")
    progress.answer(100)
    assert progress.position == Position(101, "7")
    progress.answer(101)
    assert progress.position == Position(102, "7")


def test_what_stands_before_what_was_read_is_of_a_new_topic() -> None:
    progress = Progress(0)
    progress.begin(0)
    progress.begin(3)
    with pytest.raises(TopicsMadeAnewError, match="offset 0 follows one at 3"):
        progress.begin(0)


@given(st.data())
def test_in_any_order(data: st.DataObject) -> None:
    """A model of the two topics: outcomes get offsets as they are appended, one after the other."""
    progress = Progress(0)
    reads, ends = 0, 0
    open_: list[int] = []
    outcome_offsets: dict[int, int] = {}
    steps: int = data.draw(st.integers(1, 60))
    for _ in range(steps):
        ends_one: bool = data.draw(st.booleans())
        if open_ and ends_one:
            which: int = data.draw(st.integers(0, len(open_) - 1))
            offset = open_.pop(which)
            outcome_offsets[offset] = ends
            progress.appended(ends)
            progress.answer(offset)
            ends += 1
        else:
            progress.begin(reads)
            open_.append(reads)
            reads += 1
        position = progress.position
        assert position is not None
        assert position.offset == min(open_, default=reads)
        # A restart reads decisions from the offset and outcomes from the note: it must find all of theirs.
        found = {offset for offset, at in outcome_offsets.items() if at >= int(position.note)}
        assert {offset for offset in outcome_offsets if offset >= position.offset} <= found
