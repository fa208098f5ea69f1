"""Serve whoever has most waiting. The whole of a policy: two settings and a rank."""

from sluice_scheduler.core.branch import Branch
from sluice_scheduler.core.claims import Claim


class LongestQueue:
    reclaims = False
    half_life_ms = 0

    def rank(self, branch: Branch, claim: Claim) -> tuple[bool, int, int]:
        return (not branch.covered, -self._waiting(branch), claim.created_ms)

    def _waiting(self, branch: Branch) -> int:
        return len(branch.line) + sum(self._waiting(child) for child in branch.children)
