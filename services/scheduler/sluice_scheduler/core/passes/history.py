"""What queues have used, weighed by how long ago, for policies that look back: decay in fixed point.

A half-life has 4,096 steps; each step multiplies by 2^(-1/4096), a constant computed with integer square
roots, so that every machine and every replay computes the same.
"""

from __future__ import annotations

from functools import cache, lru_cache
from math import isqrt
from typing import TYPE_CHECKING, Final

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim
from sluice_scheduler.core.fairness.shares import dominant_share
from sluice_scheduler.core.stored.entities import History

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State

_BITS: Final = 64
_ONE: Final = 1 << _BITS
_STEP_BITS: Final = 12


def _factors() -> tuple[int, ...]:
    """2^(-2^k/4096) for k = 0 … 12, in units of 2^-64."""
    found = [_ONE >> 1]
    for _ in range(_STEP_BITS):
        found.append(isqrt(found[-1] << _BITS))
    return tuple(reversed(found))


_FACTORS: Final = _factors()


@lru_cache(maxsize=1024)  # all queues decay by the same steps
def decay(steps: int) -> int:
    """2^(-steps/4096), in units of 2^-64."""
    halves, rest = divmod(steps, 1 << _STEP_BITS)
    if halves >= _BITS:
        return 0
    factor = _ONE >> halves
    for k in range(_STEP_BITS):
        if rest >> k & 1:
            factor = (factor * _FACTORS[k]) >> _BITS
    return factor


def look_back(state: State) -> None:
    """Time has passed: let every history decay up to now, in whole steps, towards what was held meanwhile."""
    now, half_life_ms = state.cell.time_ms, state.config.half_life_ms
    for branch in _with_memory(state):
        history = state.histories.get(f"{History.kind}/{branch.name}")
        if history is None:
            continue  # no pass has seen it yet
        steps = ((now - history.time_ms) << _STEP_BITS) // half_life_ms
        if steps > 0:
            kept = decay(steps)
            past = _amounts(history)
            used: dict[str, int] = {}
            for dim in sorted(branch.usage.keys() | past.keys()):
                before, held = past.get(dim, 0), branch.usage.get(dim, 0)
                if amount := held + (((before - held) * kept) >> _BITS):
                    used["/".join(dim)] = amount
            history.used = used
            history.time_ms += (steps * half_life_ms) >> _STEP_BITS
            state.histories.put(history)
            state.past_due = True


def remember(state: State) -> None:
    """Tell the branches what their share of the past is, if that may have changed; a queue's history begins
    with its first pass."""
    if not state.past_due:
        return
    state.past_due = False
    for branch in _with_memory(state):
        history = state.histories.get(f"{History.kind}/{branch.name}")
        if history is None:
            history = History(queue=branch.name, time_ms=state.cell.time_ms, used={})
            state.histories.put(history)
        past = dict(state.forest.kind_of.cost(tuple(_amounts(history).items())))
        branch.past_share = dominant_share(past, state.forest.whole, branch.weight)
        if branch.head is not None:  # without one it has no turn; when it gets one it is ranked anew
            state.forest.touch(branch)


def _amounts(history: History) -> dict[Dim, int]:
    found: dict[Dim, int] = {}
    for name, amount in history.used.items():
        found[_dim(name)] = amount
    return found


@cache
def _dim(name: str) -> Dim:
    cluster, pool, resource = name.split("/", 2)
    return (cluster, pool, resource)


def _with_memory(state: State) -> list[Branch]:
    """Branches whose policy looks back. An inner queue's own pods have their queue's history."""
    siblings = [*state.forest.inner, *state.forest.leaves.values()]
    return [
        branch
        for branch in siblings
        if branch.parent is not None and not branch.is_implicit and branch.parent.policy.looks_back
    ]
