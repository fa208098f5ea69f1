"""First come, first served, whoever asks."""

from __future__ import annotations

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class Fifo:
    reclaims = False
    looks_back = False

    def rank(self, branch: Branch, claim: Claim) -> int:
        return claim.created_ms
