"""The highest priority first, in whichever queue; the oldest first among equals."""

from __future__ import annotations

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class Priority:
    reclaims = False
    looks_back = False

    def rank(self, branch: Branch, claim: Claim) -> tuple[int, int]:
        return (-claim.priority, claim.created_ms)
