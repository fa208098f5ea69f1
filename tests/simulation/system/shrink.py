"""The shortest trace that still fails in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from simulation.system.actions import Trace

#: So many shorter traces are tried at most.
TRIES_MAX: Final = 200


def shrink(trace: Trace, fails: Callable[[Trace], bool], tries: int = TRIES_MAX) -> Trace:
    """Leave out actions, many at a time at first, as long as `fails`."""
    size = len(trace.actions) // 2
    while size and tries:
        at = 0
        while at < len(trace.actions) and tries:
            shorter = replace(trace, actions=trace.actions[:at] + trace.actions[at + size :])
            tries -= 1
            if fails(shorter):
                trace = shorter
            else:
                at += size
        size //= 2
    return trace
