"""One partition of the decisions, for as long as the group leaves it to this actuator."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice.decisions import Decision
from sluice.values import DecisionId, Epoch

from sluice_actuator.history import CellHistory
from sluice_actuator.progress import Progress


class Tenure:
    """What is known of the partition's decisions, and which are under way."""

    def __init__(
        self,
        *,
        is_over: Callable[[], bool],
        history: CellHistory,
        answered: set[DecisionId],
        outcomes_from: int,
        topics: str,
    ) -> None:
        self.history = history
        #: Decisions that had an outcome before they were read in this tenure.
        self.answered = answered
        self.progress = Progress(outcomes_from, topics)
        self.unsettled: dict[Job, asyncio.Future[None]] = {}
        #: Why nothing further is carried out.
        self.problem = ""
        self._is_over = is_over

    @property
    def is_over(self) -> bool:
        """The partition is somebody else's: nothing more is to be done or said about its decisions."""
        return self._is_over()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A decision as it was read."""

    decision: Decision
    epoch: Epoch
    partition: int
    offset: int
    tenure: Tenure
    read_s: float = field(default_factory=time.monotonic)

    @property
    def identity(self) -> DecisionId:
        """What the object will carry. A status has no seq, so its offset says which one is later."""
        return DecisionId(self.epoch, self.decision.seq or self.offset)

    @property
    def was_answered(self) -> bool:
        """Before it was read in this tenure."""
        return DecisionId(self.epoch, self.decision.seq) in self.tenure.answered

    @property
    def is_barred(self) -> bool:
        """It may make no further call: another actuator has it, or a fence has shut its epoch out."""
        return self.tenure.is_over or self.tenure.history.fences(self.epoch)
