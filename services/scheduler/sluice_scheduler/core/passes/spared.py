"""Whether victims can go in an order in which nobody loses what he deserves, but in a unit that straddles.

Who may go behind all others does so, and then the same is asked of the rest. Nobody's place gets worse when another
goes behind him, so that finds an order if there is any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.state.units import Unit

#: So often it is looked for who of the rest may go behind all others.
_ROUNDS_MAX: Final = 8


def have_an_order(
    forest: Forest, victims: Iterable[Unit], *, must_be_above: Callable[[Unit], Iterable[Branch]]
) -> bool:
    """`must_be_above`: the branches that have to have more than they deserve of something in a unit when it goes."""
    paper = Paper(forest)
    left = sorted(victims, key=lambda unit: -sum(amount for _, amount in unit.cost))  # the largest straddles
    for unit in left:
        paper.move(unit.leaf, unit.cost, -1)
    for _ in range(_ROUNDS_MAX):
        rest = [unit for unit in left if not _goes_last(unit, must_be_above(unit), paper, forest)]
        if len(rest) == len(left):
            break
        left = rest
    return not left


def _goes_last(unit: Unit, above: Iterable[Branch], paper: Paper, forest: Forest) -> bool:
    """Whether a unit may go behind those that are gone on paper; then it is back there."""
    paper.move(unit.leaf, unit.cost, 1)
    kinds = [kind for kind, _ in forest.kind_of.cost(unit.cost)]
    if all(paper.is_above(branch, kinds) for branch in above):
        return True
    paper.move(unit.leaf, unit.cost, -1)
    return False
