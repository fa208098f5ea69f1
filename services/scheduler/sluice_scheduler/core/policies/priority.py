"""The highest priority first, whoever asks; of equals the oldest. Guarantees come first, as everywhere."""

from __future__ import annotations

from sluice_scheduler.core.branch import Branch
from sluice_scheduler.core.claims import Claim


class Priority:
    reclaims = False
    half_life_ms = 0

    def rank(self, branch: Branch, claim: Claim) -> tuple[bool, int, int]:
        return (not branch.covered, -claim.priority, claim.created_ms)
