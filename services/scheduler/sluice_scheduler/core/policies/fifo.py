"""First come, first served, whoever asks. Guarantees come first, as everywhere."""

from __future__ import annotations

from sluice_scheduler.core.branch import Branch
from sluice_scheduler.core.claims import Claim


class Fifo:
    reclaims = False
    half_life_ms = 0

    def rank(self, branch: Branch, claim: Claim) -> tuple[bool, int]:
        return (not branch.covered, claim.created_ms)
