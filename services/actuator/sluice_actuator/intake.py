"""From Kafka's records to the decisions that are this actuator's to carry out."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

from sluice.codec import DECISIONS, EPOCH_HEADER, UnreadableRecordError, find_header
from sluice.decisions import Decision
from sluice.kafka import Received
from sluice.settings import Settings
from sluice.values import DecisionId, Epoch

from sluice_actuator.history import CellHistory, Standing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A decision as it was read, and where."""

    decision: Decision
    epoch: Epoch
    partition: int
    offset: int
    read_s: float = field(default_factory=time.monotonic)

    @property
    def identity(self) -> DecisionId:
        return DecisionId(self.epoch, self.decision.seq)


class Intake:
    """Decodes, and tells new decisions from those that were passed before or come from behind a fence."""

    def __init__(self, settings: Settings) -> None:
        self._cells = settings.cells
        self._histories: defaultdict[str, CellHistory] = defaultdict(CellHistory)

    def decode(self, received: Received) -> Job:
        """Raises UnreadableRecordError."""
        decision = DECISIONS.decode(received.headers, received.value)
        if self._cells.get(decision.cell) != received.partition:
            raise UnreadableRecordError(
                f"cell {decision.cell!r} has no business in partition {received.partition}: "
                "give every service the same SLUICE_CELLS"
            )
        header = find_header(received.headers, EPOCH_HEADER)
        try:
            epoch = Epoch.parse(header or "")
        except ValueError:
            raise UnreadableRecordError(
                f"header {EPOCH_HEADER} is {header!r}: it must be <generation>-<resourceVersion>"
            ) from None
        return Job(decision=decision, epoch=epoch, partition=received.partition, offset=received.offset)

    def place(self, job: Job, value: bytes) -> Standing:
        """Raises DivergenceError."""
        return self._histories[job.decision.cell].take(job.decision, epoch=job.epoch, value=value)

    def fences(self, job: Job) -> bool:
        """Whether a fence that was read since has shut the decision out."""
        return self._histories[job.decision.cell].fences(job.epoch)
