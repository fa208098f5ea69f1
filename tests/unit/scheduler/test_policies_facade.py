"""A plug-in needs the facade alone, and what it is shown there is what the core has."""

from __future__ import annotations

import re
from pathlib import Path

from sluice_scheduler import policies
from sluice_scheduler.core.fairness.branch import Branch as CoreBranch
from sluice_scheduler.core.fairness.policies import Policy
from sluice_scheduler.core.fairness.policies.drf import Drf
from sluice_scheduler.core.fairness.tree import QueueNode

DOCUMENTED = Path(__file__).parents[3] / "docs" / "policies.md"


class LongestQueue:
    reclaims = False
    looks_back = False

    def rank(self, branch: policies.Branch, claim: policies.Claim) -> tuple[int, int]:
        return (-sum(len(child.line) for child in branch.children), claim.created_ms)


def test_who_is_written_against_the_facade_is_a_policy_of_the_core() -> None:
    policy: Policy = LongestQueue()
    other: policies.Policy = policy
    assert not other.reclaims


def test_what_the_facade_shows_of_a_branch_the_core_has() -> None:
    branch: policies.Branch = CoreBranch(None, None, is_leaf=False, policy=Drf())
    shown = [name for name, of in vars(policies.Branch).items() if isinstance(of, property)]
    assert len(shown) == 8
    assert all(hasattr(branch, name) for name in shown)
    assert all(name in QueueNode.__dataclass_fields__ for name in ("name", "facts"))


def test_the_documented_example_imports_nothing_else_of_sluice() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENTED.read_text(), re.DOTALL)
    imports = re.findall(r"^(?:from|import) (\S+)", "\n".join(blocks), re.MULTILINE)
    assert {name for name in imports if name.startswith("sluice")} == {"sluice_scheduler.policies"}
