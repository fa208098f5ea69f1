"""First come, first served, in whichever queue."""

from __future__ import annotations

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class Fifo:
    reclaims = False
    looks_back = False

    def rank(self, branch: Branch, claim: Claim) -> int:
        return claim.created_ms
