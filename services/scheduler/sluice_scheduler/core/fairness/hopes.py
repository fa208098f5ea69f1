"""Who may push others out when nothing fits: in a full cluster many wait, and few have something to gain.

A blocked leaf stands under its parent by its *hope*. Only the latest hope of each counts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.branch import Branch, Hope
from sluice_scheduler.core.fairness.claims import Dim, Option
from sluice_scheduler.core.fairness.shares import ROUNDING, SHARE_ONE, dominant, leaf_vector, rounded

if TYPE_CHECKING:
    from sluice_scheduler.core.fairness.forest import Forest


def stand_in_hope(leaf: Branch, capacity: Mapping[Dim, int]) -> None:
    """Let a blocked leaf be found by those who look for leaves that may push others out."""
    if not leaf.hope_is_known:
        leaf.hope_is_known = True
        leaf.hope = None
        if len(leaf.line):
            leaf.hope = min(
                (_share_with(leaf, each, capacity) for c in leaf.line.firsts() for each in c.shape.options),
                default=SHARE_ONE,
            )
    if leaf.hope is not None and leaf.parent is not None:
        heapq.heappush(leaf.parent.hopes, (leaf.hope, leaf.order, leaf))


def _share_with(leaf: Branch, option: Option, capacity: Mapping[Dim, int]) -> int:
    """What a leaf's share would be with an option; less than nothing where shares don't decide."""
    preempts = leaf.queue is not None and leaf.queue.facts.preemption != "never"
    if preempts or leaf.is_covered(option.cost):
        return -1
    largest = max(leaf.vector.values(), default=0)
    for dim, amount in option.cost:
        held = leaf.usage.get(dim, 0) + amount
        largest = max(largest, leaf_vector({dim: held}, capacity)[dim])
    return rounded(largest // leaf.weight)


def hopeful(forest: Forest) -> list[Branch]:
    """Leaves that may push others out, found without trying those that can't. Asked when nothing fits.

    Simple semantics: all leaves that wait. But of all victims, take the one nearest to the claimant:
    under their lowest common ancestor the claimant's branch must stay below what the victim's had
    (`Search._is_right`). Nothing fits, so all are blocked; the claimant alone counts as not blocked in
    its branch, for no victim is nearer. So that branch would have what all below it hold, unscaled, and
    the claim; and the victim's has at most what all below it hold. Who is in no branch where the one is
    less than what the richest sibling has at most can only fail, unless a guarantee covers his claim.
    """
    assert forest.root.first() is None, "what fits is served before anything is taken back"
    found: dict[Branch, None] = {}
    if not forest.claims:
        return []
    for parent in (forest.root, *forest.inner):
        richest, second = 0, 0  # where nobody's pods are taken for shares' sake, guarantees are left
        if any(scope.policy.reclaims for scope in parent.path):
            richest, second = heapq.nlargest(2, (0, 0, *map(_most, parent.children)))
        found.update(dict.fromkeys(_hopes_below(parent, richest)))
        for branch in parent.children:
            if not branch.is_leaf:
                others = second if _most(branch) == richest else richest
                found.update(dict.fromkeys(_may_gain(forest, branch, others)))
    return list(found)


def _may_gain(forest: Forest, branch: Branch, richest: int) -> Iterator[Branch]:
    """The leaves below an inner branch that wait for what would leave it poorer than its richest sibling,
    or what its guarantee covers."""
    for option, fit in forest.root.fits.items():
        if _least_with(branch, option, forest.capacity) < richest or branch.is_covered(option.cost):
            yield from (leaf for leaf in fit.leaves if branch in leaf.path)


def _least_with(branch: Branch, option: Option, capacity: Mapping[Dim, int]) -> int:
    """What a blocked inner branch's share would be at the least if a claim below it were not blocked. The
    resources that it takes are not saturated; a little is off for what is rounded on the way up."""
    parts = (
        branch.vector.get(dim, 0) + part for dim, part in leaf_vector(dict(option.cost), capacity).items()
    )
    return rounded((max(parts, default=0) - ROUNDING) // branch.weight)


def _most(branch: Branch) -> int:
    """A blocked branch's share at the most, whatever counts as saturated or not blocked."""
    return branch.share if branch.is_leaf else rounded(dominant(branch.vector, branch.weight))


def _hopes_below(parent: Branch, share: int) -> list[Branch]:
    """The blocked leaves right under a branch whose own share would stay below this one."""
    found: dict[Branch, Hope] = {}
    while parent.hopes and parent.hopes[0][0] < share:
        hope = heapq.heappop(parent.hopes)
        if hope[2].blocked and hope[2].hope == hope[0]:
            found[hope[2]] = hope
    for hope in found.values():
        heapq.heappush(parent.hopes, hope)
    return list(found)
