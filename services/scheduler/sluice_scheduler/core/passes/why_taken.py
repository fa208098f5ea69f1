"""Why a unit is taken, in the sentence that its owner reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluice.quantities import format_amount

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Kind, Spot
from sluice_scheduler.core.state.units import Unit


def why_by_priority(claim: Claim, unit: Unit) -> str:
    return f"priority {claim.priority} goes before priority {unit.priority} in {unit.leaf.name}"


def why_by_shares(mine: Branch, theirs: Branch, whole: Mapping[Kind, int], kind: Kind) -> str:
    their_share, they_deserve = theirs.shares_told(whole, kind)
    my_share, i_deserve = mine.shares_told(whole, kind)
    return (
        f"{theirs.name} has {their_share} by weight and deserves {they_deserve}, "
        f"{mine.name} has {my_share} and deserves {i_deserve}"
    )


def why_owed(leaf: Branch, spot: Spot, covering: Iterable[Branch], unit: Unit) -> str:
    """Which guarantee covers the claim: one of what the unit gives, if there is one."""
    found = [(branch, bound) for branch in covering for bound in branch.guarantees]
    found = [each for each in found if each[1].part(spot.cost)]
    branch, bound = max(found, key=lambda each: each[1].part(unit.cost) > 0)
    resource = bound.dims[0][2]
    asked, held = bound.part(spot.cost), branch.used(bound)
    owed = (
        f"{leaf.name} is owed {format_amount(resource, asked)} {resource} by {bound.name}, of which "
        f"{branch.name} holds {format_amount(resource, held)} now"
    )
    if bound.part(unit.cost):
        return owed
    beside = {dim[2] for dim, _ in spot.cost} & {dim[2] for dim, _ in unit.cost}
    return f"{owed}; its claim asks for {' and '.join(sorted(beside))} beside that"
