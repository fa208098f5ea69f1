"""From Kafka's records to decisions."""

from __future__ import annotations

from collections.abc import Mapping

from sluice.codec import DECISIONS, EPOCH_HEADER, UnreadableRecordError, find_header
from sluice.decisions import Decision
from sluice.kafka import Received
from sluice.values import Epoch


def decode(received: Received, cells: Mapping[str, int]) -> tuple[Decision, Epoch]:
    """The decision, and the epoch of its writer; raises UnreadableRecordError."""
    decision = DECISIONS.decode(received.headers, received.value)
    if cells.get(decision.cell) != received.partition:
        raise UnreadableRecordError(
            f"cell {decision.cell!r} has no business in partition {received.partition}: "
            "give every service the same SLUICE_CELLS"
        )
    header = find_header(received.headers, EPOCH_HEADER)
    try:
        return decision, Epoch.parse(header or "")
    except ValueError:
        raise UnreadableRecordError(
            f"header {EPOCH_HEADER} is {header!r}: it must be <generation>-<resourceVersion>"
        ) from None
