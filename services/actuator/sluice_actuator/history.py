"""What the actuator remembers of a cell: which decisions it has passed, which epochs a fence has shut out."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from enum import Enum
from typing import Final

from sluice.decisions import Decision, Fence
from sluice.values import Epoch

#: Digests that are kept to tell a duplicate from a divergence; an older seq is taken for a duplicate.
REMEMBERED: Final = 10_000


class DivergenceError(Exception):
    """One seq, two decisions: two schedulers decide for one cell, or one has forgotten what it decided."""


class Standing(Enum):
    """What a decision is to the actuator that reads it."""

    NEW = "new"
    DUPLICATE = "duplicate"
    FENCED = "fenced"


class CellHistory:
    """The decisions of one cell, in the order in which they were read."""

    def __init__(self) -> None:
        self._digests: OrderedDict[int, bytes] = OrderedDict()
        self._passed = 0
        self._epoch = Epoch(0, 0)
        self._fence = Epoch(0, 0)

    def fences(self, epoch: Epoch) -> bool:
        """Whether a fence has shut out this epoch."""
        return epoch < self._fence

    def take(self, decision: Decision, *, epoch: Epoch, value: bytes) -> Standing:
        """Pass a decision, and say what it is. `value` are its bytes in the log."""
        if not decision.seq:
            return self._take_status(epoch)
        digest = hashlib.blake2b(value, digest_size=16).digest()
        if self._digests.get(decision.seq) == digest:
            return Standing.DUPLICATE
        if self.fences(epoch):
            return Standing.FENCED  # and its seq is not passed: the epoch behind the fence has its own
        if isinstance(decision, Fence):
            self._raise_fence(decision.seq, epoch)
        if decision.seq in self._digests:
            raise DivergenceError(f"seq {decision.seq} was read twice with different contents")
        if decision.seq <= self._passed - REMEMBERED:
            return Standing.DUPLICATE
        self._digests[decision.seq] = digest
        self._passed = max(self._passed, decision.seq)
        self._epoch = max(self._epoch, epoch)
        if len(self._digests) > REMEMBERED:
            self._digests.popitem(last=False)
        return Standing.NEW

    def _take_status(self, epoch: Epoch) -> Standing:
        """A status may come again, in other words; but an owner that was fenced off has nothing to say any
        more: its successor has told anew whatever was not published."""
        if epoch < self._epoch:
            return Standing.FENCED
        self._epoch = epoch
        return Standing.NEW

    def _raise_fence(self, seq: int, epoch: Epoch) -> None:
        """A rebuilt ledger goes on from the tail of the log that it saw, under an epoch of its own. What a
        fenced scheduler may have put behind that tail, or a log made anew, does not count as the same seq."""
        self._fence = max(self._fence, epoch)
        if epoch > self._epoch:
            for later in [known for known in self._digests if known >= seq]:
                del self._digests[later]
            self._passed = min(self._passed, seq - 1)
