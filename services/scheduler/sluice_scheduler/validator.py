"""Validation beside the work: a piece every so many ticks. What it finds is told, and stops nothing."""

from __future__ import annotations

import logging
import time
from typing import Final

from sluice_scheduler import metrics
from sluice_scheduler.core import State
from sluice_scheduler.core.state.validate import Validation

log = logging.getLogger(__name__)

#: So many pieces at a time: some milliseconds.
PIECES: Final = 50
#: So many of the things that are wrong are logged at a time.
LOGGED_MAX: Final = 10


class Validator:
    def __init__(self, cell: str, state: State, ticks: int) -> None:
        self._cell = cell
        self._validation = Validation(state)
        self._ticks = ticks
        self._since = 0  # ticks

    def tick(self) -> None:
        """Call this between steps."""
        self._since += 1
        if not self._ticks or self._since < self._ticks:
            return
        self._since = 0
        started = time.perf_counter()
        try:
            found = self._validation.go_on(PIECES)
        except Exception as error:
            found = [f"validation raised {type(error).__name__}: {error}"]
        metrics.VALIDATE_SECONDS.observe(time.perf_counter() - started)
        if found:
            metrics.MISMATCHES.labels(self._cell).inc(len(found))
        for each in found[:LOGGED_MAX]:
            log.error("what is derived differs from the accounts: %s", each, extra={"cell": self._cell})
