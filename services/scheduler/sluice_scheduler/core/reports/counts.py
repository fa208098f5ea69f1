"""How many pods and applications queues have, and those below them, as their statuses tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from sluice_scheduler.core.state.kinship import controlled
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod


class Counts(NamedTuple):
    """What queues and those below them have of pods and applications, by the queue's name."""

    pending: dict[str, int]
    running: dict[str, int]
    waiting: dict[str, int]  # applications
    admitted: dict[str, int]
    bypassed: dict[str, list[Pod]]
    misdirected: dict[str, list[Pod]]


def count(state: State) -> Counts:
    """From each queue's index, so that one change does not cost a look at all pods."""
    waiting, admitted = _applications(state)
    return Counts(
        pending=_summed_up(state, state.waiting),
        running=_summed_up(state, {name: len(keys) for name, keys in state.holders.items()}),
        waiting=_summed_up(state, waiting),
        admitted=_summed_up(state, admitted),
        bypassed=_gathered(state, state.bypassed),
        misdirected=_gathered(state, state.misdirected),
    )


def _summed_up(state: State, own: Mapping[str, int]) -> dict[str, int]:
    """Of each queue and those below it."""
    found = dict.fromkeys(state.tree, 0)
    for name, count in own.items():
        node = state.tree.get(name) if count else None
        for above in node.path if node is not None else ():
            found[above.name] += count
    return found


def _gathered(state: State, keys: Iterable[str]) -> dict[str, list[Pod]]:
    """Pods by each queue that they are below."""
    found: dict[str, list[Pod]] = {}
    for pod in map(state.pod, sorted(keys)):
        node = state.tree.get(pod.queue)
        for above in node.path if node is not None else ():
            found.setdefault(above.name, []).append(pod)
    return found


def _applications(state: State) -> tuple[Counter[str], Counter[str]]:
    """How many applications wait in each queue itself, and how many are admitted there."""
    counts: tuple[Counter[str], Counter[str]] = Counter(), Counter()
    for workload in state.workloads:
        if not workload.facts.finished and not controlled(state, workload):
            counts[workload.admitted][workload.queue] += 1
    return counts
