"""What keeps a claim from pushing others out though it is owed their room: rules of their queues.

A rule is in the way if the claim would push others out without it. That is tried on paper; nothing is decided by it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sluice.events import QueueFacts

from sluice_scheduler.core.fairness.branch import Branch, below_common, up_to
from sluice_scheduler.core.fairness.claims import Claim
from sluice_scheduler.core.passes.budget import OVERDRAFT, Budget
from sluice_scheduler.core.passes.claimants import Ripens, is_barred
from sluice_scheduler.core.passes.move import Move
from sluice_scheduler.core.passes.reclaim import find_move
from sluice_scheduler.core.passes.session import LOST_WORK, RECLAIM_OFF, Rule, Session
from sluice_scheduler.core.state.state import State

#: So much is looked at for one answer.
_LOOKS_MAX: Final = 400


class InTheWay(NamedTuple):
    rule: Rule
    queues: list[str]  # that have it, and something that the claim would take


def any_rules(state: State) -> bool:
    """Whether any queue of the cell has such a rule."""
    return any(_has(node.facts, rule) for node in state.tree.values() for rule in (RECLAIM_OFF, LOST_WORK))


def rule_in_the_way(state: State, claim: Claim) -> InTheWay | None:
    """None if no rule is in the way, or if the claim is about to push others out."""
    if not any_rules(state) or is_barred(state, claim) or _tried(state, claim) is not None:
        return None
    tries: tuple[tuple[Rule, ...], ...] = ((LOST_WORK,), (RECLAIM_OFF,), (RECLAIM_OFF, LOST_WORK))
    for rules in tries:
        move = _tried(state, claim, *rules)
        if move is not None:
            return InTheWay(rules[0], _queues_with(rules[0], move, state.forest.leaves[claim.line]))
    return None


def _tried(state: State, claim: Claim, *lifted: Rule) -> Move | None:
    session = Session(state, Budget(_LOOKS_MAX - OVERDRAFT), Ripens(state.now_ms), lifted=lifted)
    return find_move(session, state.forest.leaves[claim.line], claim)


def _queues_with(rule: Rule, move: Move, own: Branch) -> list[str]:
    found: set[str] = set()
    for victim in {unit.leaf for unit in move.taken}:
        _, theirs = below_common(own, victim)
        path = (victim,) if rule == LOST_WORK else up_to(theirs, victim)
        found.update(
            branch.name for branch in path if branch.queue is not None and _has(branch.queue.facts, rule)
        )
    return sorted(found)


def _has(facts: QueueFacts, rule: Rule) -> bool:
    return not facts.reclaim if rule == RECLAIM_OFF else facts.lost_work_per_hour_ms is not None
