"""What the logs say of a partition's past, when a tenure begins.

Without it a restart would forget two things. Which decisions were passed: a second decision of the same seq
would look like a new one. And which had their outcome: one that had failed would be tried again, after its
share was given to somebody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from typing import Final, Protocol

from sluice.codec import EVENTS, UnreadableRecordError, find_header
from sluice.events import OutcomeEvent
from sluice.kafka import Position, Received
from sluice.values import DecisionId, Epoch

from sluice_actuator.history import REMEMBERED, CellHistory, DivergenceError
from sluice_actuator.intake import decode
from sluice_actuator.tenure import Tenure

_OUTCOME: Final = EVENTS.ce_type(OutcomeEvent.type)


class Records(Protocol):
    """A topic's records by offset."""

    async def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset that there is, and the one after the last."""

    def between(self, partition: int, start: int, end: int) -> AsyncIterator[Received]: ...


def counts(position: Position, topics: str) -> bool:
    """Whether a position says something of these topics. An older version did not note of which it spoke."""
    return position.note.partition(" ")[2] in ("", topics)


async def recall(
    partition: int,
    committed: Position | None,
    *,
    topics: str,
    decisions: Records,
    events: Records,
    cells: Mapping[str, int],
    cluster: str,
    is_over: Callable[[], bool],
) -> Tenure:
    """Where nothing was committed, the whole log of events may hold outcomes of what will be read."""
    first, end = await events.bounds(partition)
    noted = int(committed.note.partition(" ")[0]) if committed and committed.note else first
    outcomes_from = noted if first <= noted <= end else first
    return Tenure(
        is_over=is_over,
        history=await _passed(decisions, partition, before=committed.offset if committed else 0, cells=cells),
        answered=await _answered(events.between(partition, outcomes_from, end), cluster),
        outcomes_from=outcomes_from,
        topics=topics,
    )


async def _passed(
    decisions: Records, partition: int, *, before: int, cells: Mapping[str, int]
) -> CellHistory:
    history = CellHistory()
    first, end = await decisions.bounds(partition)
    async for received in decisions.between(partition, max(first, before - REMEMBERED), min(before, end)):
        # What was set aside stays so; a divergence that somebody has moved the group past is resolved.
        with suppress(UnreadableRecordError, DivergenceError):
            decision, epoch = decode(received, cells)
            history.take(decision, epoch=epoch, value=received.value or b"")
    return history


async def _answered(events: AsyncIterator[Received], cluster: str) -> set[DecisionId]:
    answered = set()
    async for received in events:
        if find_header(received.headers, "ce_type") != _OUTCOME:
            continue
        with suppress(UnreadableRecordError):
            event = EVENTS.decode_as(_OUTCOME, received.value)
            assert isinstance(event, OutcomeEvent)
            if event.cluster == cluster and event.seq:
                answered.add(DecisionId(Epoch.parse(event.epoch), event.seq))
    return answered
