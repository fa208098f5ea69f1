"""Dominant Resource Fairness: serve the queue that has least of what it has most of."""

from __future__ import annotations

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class Drf:
    reclaims = True
    looks_back = False
    by_line = True

    def rank(self, branch: Branch, claim: Claim) -> tuple[int, int, int]:
        """The lowest share first, then priority, then the place in line."""
        return (branch.share, -claim.priority, claim.line_ms)
