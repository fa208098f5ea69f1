"""Conditions, as every status shows them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from sluice.decisions import Condition

from sluice_scheduler.core.stored.entities import STATUS, Report

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def condition(state: State, kind: str, *, good: bool, problem: str, reason: str = "Problem") -> Condition:
    """A condition that is `good` while there is no problem, and tells the problem otherwise, and of what kind
    it is."""
    return Condition(
        type=kind,
        status="True" if good is not bool(problem) else "False",
        reason=reason if problem else "AsExpected",
        message=problem,
        since_ms=state.cell.time_ms,
    )


def told_no_more_because(state: State, what: str) -> str:
    """Why a status shows what it showed before; empty if it does not."""
    aside = state.aside(STATUS + what)
    if aside is None:
        return ""
    return (
        f"telling its status raised {aside.reason}: it shows what it showed before, and everything else goes on; "
        "upgrade the scheduler (docs/runbook.md, Set aside)"
    )


def set_aside_because(state: State, what: str) -> str:
    """What is wrong with something that is set aside, and what to do; empty if it is not."""
    aside = state.aside(what)
    if aside is None:
        return ""
    return (
        f"work on it raised {aside.reason}: it is set aside so that everybody else's goes on; it keeps what it "
        "holds and is admitted nothing. Change what is unusual about it and create it anew, or upgrade the "
        "scheduler (docs/runbook.md, Set aside)"
    )


def since(last: Report | None, conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Conditions that stand as they were last told keep the time at which they turned."""
    turned = {each.type: each for each in last.conditions} if last else {}
    return tuple(
        replace(each, since_ms=old.since_ms)
        if (old := turned.get(each.type)) is not None and old.status == each.status
        else each
        for each in conditions
    )
