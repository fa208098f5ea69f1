"""Policies order claims; they see shares and claims, and cannot touch the books.

One is named in the cell's configuration, others on queues for what waits in and below them. They are found by
the entry point group `sluice.policies`; docs/policies.md shows one written outside this repository.
"""

from __future__ import annotations

from typing import Any, Protocol

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class Policy(Protocol):
    #: Whether pods are taken from who has most for who has least. Guarantees are enforced in any case.
    reclaims: bool
    #: Whether what was used in the past counts (`branch.past_share`): half as much after each half-life.
    looks_back: bool

    #: Optional: whether of two claims of one queue the one that stands first in its line never ranks behind the
    #: other (then one look is enough).
    # by_line: bool = False

    def rank(self, branch: Branch, claim: Claim) -> Any:
        """Compares siblings by the claim at the head of each: the lowest is served next.

        A claim that a guarantee covers goes first, whatever this says (`Branch.rank`). Ties go to the queue
        created first.
        """
        ...
