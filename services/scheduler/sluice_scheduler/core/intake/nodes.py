"""Nodes and what is held outside Sluice's hands: what there is; and which pool's share a pod holds by its node.

A pod is charged to the pool of its node, whichever of the two was told of first, and goes with the node when that is
labelled into another pool.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluice.events import NodeEvent, UnmanagedEvent
from sluice.values import Resources

from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import Node, Unmanaged, identity


def node_changed(state: State, node: Node | None, event: NodeEvent, sync: str) -> None:
    before = _offered(node)
    if node is None:
        node = Node(facts=event.node, **identity(event, sync))
    elif node.facts == event.node:  # a heartbeat
        node.resource_version = event.resource_version
        state.nodes.put(node)
        return
    else:
        state.places.remove(node)
        node.facts, node.resource_version = event.node, event.resource_version
    state.nodes.put(node)
    state.places.add(node)
    _capacity_changed(state, before, _offered(node))
    _follow_node(state, node)


def node_vanished(state: State, node: Node) -> None:
    state.places.remove(node)
    state.nodes.drop(node.key)
    state.capacity_changed()
    _follow_node(state, node)


def on_unmanaged(state: State, event: UnmanagedEvent) -> None:
    held = Unmanaged(cluster=event.cluster, pool=event.pool, pods=event.pods, requests=event.requests)
    before = state.unmanaged.get(held.key)
    if before is not None:
        state.places.hold(before, -1)
    state.unmanaged.put(held)
    state.places.hold(held, 1)
    _capacity_changed(state, held.requests, before.requests if before is not None else {})


def _offered(node: Node | None) -> Resources:
    return dict(node.facts.allocatable) if node is not None and node.facts.schedulable else {}


def _capacity_changed(state: State, before: Resources, after: Resources) -> None:
    """Workloads that lost pods may push others out again if there is more than before, and not if there is less."""
    if any(amount > before.get(resource, 0) for resource, amount in after.items()):
        state.new_grounds()
    state.capacity_changed()


# ---- who holds of which pool


def pool_held(state: State, pod: Pod) -> str:
    """Where an open pod holds its share: its node's pool, or where it was admitted, or where it may go."""
    facts = pod.facts
    on_node = state.places.pool_of(pod.cluster, facts.node) if facts.node else ""
    return on_node or pod.pool or next(iter(state.places.pools_for(pod.cluster, facts.node_selector)), "")


def _follow_node(state: State, node: Node) -> None:
    """Pods that hold of no pool may have one now, too."""
    follow_nodes(state, state.residents.of(node.cluster, node.name))


def follow_nodes(state: State, keys: Iterable[str]) -> None:
    """Charge pods that hold to the pools that they hold of now."""
    for key in sorted(key for key in keys if not state.is_stuck(key)):
        pod = state.pod(key)
        pool = pool_held(state, pod)
        if pool != pod.pool:
            with state.changing(pod):
                pod.pool = pool
