"""DRF with a memory: what was used lately counts too, half as much after each half-life.

Who has waited while others ran catches up afterwards. Nobody loses pods for what he used in the past.
"""

from __future__ import annotations

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim


class UsageDrf:
    reclaims = False
    looks_back = True
    by_line = True

    def rank(self, branch: Branch, claim: Claim) -> tuple[int, int, int, int]:
        return (branch.past_share, branch.share, -claim.priority, claim.line_ms)
