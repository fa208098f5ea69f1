"""Dominant Resource Fairness: serve the queue that has least of what it has most of."""

from __future__ import annotations

from sluice_scheduler.core.branch import Branch
from sluice_scheduler.core.claims import Claim


class Drf:
    reclaims = True
    half_life_ms = 0

    def rank(self, branch: Branch, claim: Claim) -> tuple[bool, int, int, int]:
        """First claims that a guarantee covers, then the lowest share, then priority, then age."""
        return (not branch.covered, branch.share, -claim.priority, claim.created_ms)
