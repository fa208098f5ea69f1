"""The figures in the statuses of Queues and ResourcePools: amounts are in base units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim, kind_name
from sluice_scheduler.core.fairness.shares import as_decimal, dominant_kind, dominant_share
from sluice_scheduler.core.fairness.tree import QueueNode
from sluice_scheduler.core.reports.counts import Counts
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import LostWork, Pool


class QueueFigures(TypedDict):
    usage: Resources
    demand: Resources
    fair_share: Resources
    dominant_share: str
    dominant_resource: str
    pending: int
    running: int
    pending_workloads: int
    admitted_workloads: int
    lost_work_ms: int
    lost_work_hour_ms: int


class PoolFigures(TypedDict):
    nodes: int
    capacity: Resources
    reserved: Resources
    unmanaged: Resources


def queue_figures(state: State, node: QueueNode, counts: Counts) -> QueueFigures:
    branch = state.forest.branch(node.name)
    assert branch is not None, f"queue {node.name} stands in the tree and has no branch"
    dominant = dominant_kind(branch.held, state.forest.whole)
    lost_ms, lost_hour_ms = _lost_work(state, node) if len(state.lost_work) else (0, 0)
    return {
        "usage": _by_pool(branch.usage),
        "demand": _sorted({kind_name(kind): amount for kind, amount in branch.demand().items()}),
        "fair_share": deserved_by(state, branch),
        "dominant_share": as_decimal(dominant_share(branch.held, state.forest.whole, node.facts.weight)),
        "dominant_resource": kind_name(dominant) if dominant else "",
        "pending": counts.pending[node.name],
        "running": counts.running[node.name],
        "pending_workloads": counts.waiting[node.name],
        "admitted_workloads": counts.admitted[node.name],
        "lost_work_ms": lost_ms,
        "lost_work_hour_ms": lost_hour_ms,
    }


def deserved_by(state: State, branch: Branch) -> Resources:
    """What a queue deserves, by kind."""
    given = state.forest.deserving.given_to(branch)
    return _sorted({kind_name(kind): round(amount) for kind, amount in given.items()})


def _lost_work(state: State, node: QueueNode) -> tuple[int, int]:
    """How much work a queue and those below it lost: in all, and within the last hour."""
    total_ms, hour_ms, nodes = 0, 0, [node]
    while nodes:
        at = nodes.pop()
        nodes += at.children
        lost = state.lost_work.get(f"{LostWork.kind}/{at.name}")
        if lost is not None:
            total_ms += lost.total_ms
            hour_ms += lost.last_hour_ms(state.now_ms)
    return total_ms, hour_ms


def pool_figures(state: State, pool: Pool) -> PoolFigures:
    here = [key for key in sorted(state.places.capacity) if key[1] == pool.name]
    capacity: Resources = {}
    for key in here:
        add(capacity, state.places.capacity[key].items())
    unmanaged: Resources = {}
    for outside in state.unmanaged:
        if outside.pool == pool.name:
            add(unmanaged, outside.requests.items())
    return {
        "nodes": state.places.node_count.get(pool.name, 0),
        "capacity": _sorted(capacity),
        "reserved": _sorted(_reserved(state, pool)),
        "unmanaged": _sorted(unmanaged),
    }


def _reserved(state: State, pool: Pool) -> Resources:
    reserved: Resources = {}
    root = state.forest.root
    for held in (root.usage, root.leaving):
        for (_, name, resource), amount in held.items():
            if name == pool.name:
                add(reserved, [(resource, amount)])
    return reserved


def _by_pool(usage: Mapping[Dim, int]) -> Resources:
    """`pool/resource` → amount, over all clusters."""
    sums: Resources = {}
    for (_, pool, resource), amount in usage.items():
        add(sums, [(f"{pool}/{resource}", amount)])
    return _sorted(sums)


def _sorted(amounts: Resources) -> Resources:
    """Without zeros and in order of name, so that equal amounts are equal bytes."""
    return {name: amounts[name] for name in sorted(amounts) if amounts[name]}
