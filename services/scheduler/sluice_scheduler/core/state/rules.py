"""The tree that Queues make, and the places that ResourcePools and nodes make. Stuck ones are left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.places import Places
from sluice_scheduler.core.fairness.tree import QueueNode, build_tree
from sluice_scheduler.core.state.conditions import set_aside_because

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


def find_places(state: State) -> Places:
    pools = (pool for pool in state.own_pools if not state.problem_of(pool))
    places = Places(pool for pool in pools if not state.is_stuck(pool.key))
    for node in state.nodes:
        if not state.is_stuck(node.key):
            places.add(node)
    for held in state.unmanaged:
        places.hold(held, 1)
    return places


def grow_tree(state: State) -> dict[str, QueueNode]:
    """A queue that is set aside can't be used, and says why."""
    queues = [queue for queue in state.own_queues if not state.is_stuck(queue.key)]
    aside = {queue.name: set_aside_because(state, queue.key) for queue in queues if state.is_aside(queue.key)}
    return build_tree(queues, state.config.cell, state.config.all_cells, aside)
