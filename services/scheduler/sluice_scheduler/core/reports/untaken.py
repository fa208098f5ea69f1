"""Why nothing is taken back for a claim whose queue has less than it deserves: as far as what is known tells it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sluice.texts import few

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Kind, KindCost, Spot
from sluice_scheduler.core.fairness.shares import FRACTION_BITS, slack
from sluice_scheduler.core.passes.claimants import is_barred
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.turns import asks_for_more, late_from_ms
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import Unit, in_victims_order

_NOTHING: Final = "; nothing is taken back for it: "


def why_nothing_is_taken(state: State, leaf: Branch, claim: Claim, spot: Spot) -> str:
    """What follows the short answer; empty for who deserves nothing more, is told of another reason, or has only
    just come."""
    waited_ms = state.now_ms - claim.created_ms
    is_new = waited_ms < state.config.reclaim_after_ms or state.cell.goes_on
    if is_new or is_barred(state, claim) or not leaf.is_owed(spot.kinds, state.forest.whole):
        return ""
    if not any(scope.policy.reclaims for scope in leaf.path[1:]):
        return f"{_NOTHING}the policy of its queues takes back nothing"
    above = list(_above(state, leaf, spot.kinds))
    if not above:
        return f"{_NOTHING}nobody holds more than he deserves of what it asks for"
    names = few(sorted(other.name for other in above))
    tenures_ms = [_tenure_ends_ms(state, other) for other in above]
    if all(tenures_ms) and leaf.deserves(spot.kinds):
        seconds = -(-(min(tenures_ms) - state.now_ms) // 1000)
        return (
            f"{_NOTHING}what lifts {names} above what is deserved there has a tenure, which ends in {seconds} s at the "
            "earliest"
        )
    return (
        f"{_NOTHING}more than is deserved is held by {names}, but no move that the rules allow makes the sharing "
        "fairer"
    )


def why_no_room_is_kept(state: State, leaf: Branch, claim: Claim, spot: Spot) -> str:
    """What follows that, for who has no turn yet because it is large."""
    seconds = -(-(late_from_ms(state, leaf, claim) - state.now_ms) // 1000)
    if (
        seconds <= 0
        or not (leaf.queue is None or leaf.queue.facts.reserves)
        or not asks_for_more(state, leaf, spot)
    ):
        return ""
    return (
        f"; it is more by itself than {leaf.name} deserves: what becomes free is kept for it once it has waited for a "
        f"tenure beside its patience, in {seconds} s"
    )


def _above(state: State, leaf: Branch, kinds: KindCost) -> Iterator[Branch]:
    """Other queues that hold more than they deserve of what is asked for."""
    paper, asked = Paper(state.forest), [kind for kind, _ in kinds]
    return (
        other for other in state.forest.leaves.values() if other is not leaf and paper.is_above(other, asked)
    )


def _tenure_ends_ms(state: State, leaf: Branch) -> int:
    """Until when the only unit with which a queue crosses what it deserves is left in place; 0: it is not, or others
    go before it."""
    beyond = _beyond(state, leaf)
    own_ms = leaf.queue.facts.tenure_ms if leaf.queue is not None else None
    tenure_ms = state.config.tenure_ms if own_ms is None else own_ms
    ends_ms = beyond[0].since_ms + tenure_ms if len(beyond) == 1 else 0
    return ends_ms if ends_ms > state.now_ms else 0


def _beyond(state: State, leaf: Branch) -> list[Unit]:
    """The first two of the units with which a queue is above what it deserves, who goes first first."""
    over = {kind: amount - _allowed(state, leaf, kind) for kind, amount in leaf.held.items()}
    found: list[Unit] = []
    for unit in in_victims_order(state, leaf, pausing=True):
        if len(found) > 1 or max(over.values(), default=0) <= 0:
            break
        for kind, amount in state.forest.kind_of.cost(unit.cost):
            over[kind] -= amount
        found.append(unit)
    return found


def _allowed(state: State, leaf: Branch, kind: Kind) -> int:
    return (leaf.deserved.get(kind, 0) + slack(state.forest.whole.get(kind, 0))) >> FRACTION_BITS
