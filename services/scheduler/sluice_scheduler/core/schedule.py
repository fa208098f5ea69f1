"""One pass: serve the queue that comes first until nothing fits."""

from __future__ import annotations

import heapq
from typing import Any

from sluice.decisions import Admit

from sluice_scheduler.core.entities import Pod
from sluice_scheduler.core.state import State
from sluice_scheduler.core.tree import QueueNode


def schedule(state: State) -> None:
    """Offer each queue's first pod, in the policy's order; a queue is served as often as its turn comes."""
    turns: list[tuple[Any, str, Pod]] = []
    for name in sorted(state.lines):
        _take_turn(state, turns, name)
    while turns:
        _, name, pod = heapq.heappop(turns)
        queue = state.tree[name]
        pool = find_pool(state, queue, pod)
        if pool:
            admit(state, queue, pod, pool)
        else:
            state.lines[name].block(pod, state.books.freed)
        _take_turn(state, turns, name)


def _take_turn(state: State, turns: list[tuple[Any, str, Pod]], name: str) -> None:
    queue = state.tree[name]
    strict = queue.facts.ordering == "strictFifo"
    head = state.pods.get(state.lines[name].head(state.books.freed, strict=strict))
    if head is not None:
        heapq.heappush(turns, (state.policy.rank(queue, head, state.books), name, head))


def find_pool(state: State, queue: QueueNode, pod: Pod) -> str:
    """The first pool that has room for a pod, within every limit above it; empty if there is none."""
    if not state.is_live(pod.cluster):
        return ""
    for pool in state.places.pools_for(pod.cluster, pod.facts.node_selector):
        key = (pod.cluster, pool)
        requests = pod.facts.requests
        if not state.books.lacking(key, requests) and not state.books.over_limit(queue, key, requests):
            return pool
    return ""


def admit(state: State, queue: QueueNode, pod: Pod, pool: str) -> None:
    """Reserve from this moment on, and decide that the gate be opened."""
    key = (pod.cluster, pool)
    assert not state.books.lacking(key, pod.facts.requests), "a decision never passes capacity"
    assert not state.books.over_limit(queue, key, pod.facts.requests), "a decision never passes a limit"
    share, resource = state.books.dominant_share(queue)
    state.withdraw(pod)
    decision = state.decide(
        Admit,
        cluster=pod.cluster,
        namespace=pod.namespace,
        name=pod.name,
        uid=pod.uid,
        queue=queue.name,
        pool=pool,
        node_selector=state.places.node_selector(pool),
        reason="Fits",
        sentence=(
            f"fits into pool {pool}; {queue.name} came first, with "
            + (f"{float(share):.1%} of {resource} by weight" if resource else "nothing held yet")
        ),
    )
    pod.phase, pod.pool, pod.seq, pod.retry_ms = "Assumed", pool, decision.seq, 0
    state.pods.put(pod)
    state.enter(pod)
