"""Shedding: capacity or a limit has shrunk below what is held, and what is over is taken back."""

from __future__ import annotations

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.passes.victims import Unit, units_of
from sluice_scheduler.core.state.promises import give_up, promised_cost
from sluice_scheduler.core.state.state import State


def shed(state: State) -> None:
    """Take back what is over, the richest first."""
    for room in state.forest.overfull():
        for promise in sorted(state.promises, key=lambda promise: -promise.seq):
            if _is_over(room) and room.bound.part(promised_cost(promise)):
                give_up(state, promise)
        while _is_over(room):
            unit = _to_shed(state, room.branch, room.bound.dims)
            if unit is None:
                break
            evict(state, unit, reason="Overcommitted", sentence=f"more is held than {room.bound.name} allows")
            state.forest.settle()


def _is_over(room: Room) -> bool:
    return room.branch.used(room.bound) > room.bound.amount


def _to_shed(state: State, branch: Branch, dims: tuple[Dim, ...]) -> Unit | None:
    """Whoever gave his pods out of reach of others' claims has not given them out of reach of this."""
    if branch.is_leaf:
        return next((unit for unit in units_of(state, branch) if unit.touches(dims)), None)
    for child in sorted(branch.children, key=lambda child: (child.share, child.order), reverse=True):
        if any(child.usage.get(dim, 0) > 0 for dim in dims):
            unit = _to_shed(state, child, dims)
            if unit is not None:
                return unit
    return None
