"""What is told of things that are set aside: no more than was told last, and that they are.

It asks nothing of what they are made of, for that is what raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.applications import BY_HAND
from sluice.decisions import Condition, GrantedPods, ReportWorkload
from sluice.values import Resources

from sluice_scheduler.core.intake.aside import STATUS
from sluice_scheduler.core.state.conditions import condition, set_aside_because, since
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import Queue, Report

REASON: Final = "SetAside"
#: Of a Queue or pool of which nothing was told before.
_NOTHING: Final[dict[str, Resources]] = {}


def all_untold(state: State) -> bool:
    """Whether no statuses are told, because what raised was nobody's in particular."""
    return state.is_aside(STATUS)


def is_told_plainly(state: State, key: str) -> bool:
    """Whether something is set aside, or what is told of it."""
    return bool(len(state.asides)) and (state.is_aside(key) or state.is_aside(STATUS + key))


def is_not_told(state: State, key: str) -> bool:
    """Whether even the plain status raised."""
    return state.is_stuck(STATUS + key)


def because(state: State, key: str) -> str:
    return set_aside_because(state, key) or set_aside_because(state, STATUS + key)
