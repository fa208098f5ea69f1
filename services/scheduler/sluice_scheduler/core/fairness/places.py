"""Where pods may go: which nodes make up which pool, and what each pool can hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.stored.entities import Node, Pool, Unmanaged

#: A pool as one cluster has it: nothing of one cluster can serve a pod of another.
PoolKey: TypeAlias = tuple[str, str]  # cluster, pool
Labels: TypeAlias = Mapping[str, str]


class Places:
    """Sums over nodes, kept up to date as nodes come and go."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        self.pools = sorted(pools, key=lambda pool: pool.name)
        #: What may be reserved: what the pool's nodes can allocate, less what unmanaged pods hold.
        self.capacity: dict[PoolKey, Resources] = {}
        self.node_count: dict[str, int] = {pool.name: 0 for pool in self.pools}
        self._selectors = {pool.name: pool.facts.node_selector for pool in self.pools}
        self._nodes: dict[tuple[str, str], Node] = {}
        #: By pool: nodes that it selects and another one has.
        self._lost: dict[str, dict[tuple[str, str], str]] = {pool.name: {} for pool in self.pools}
        self._pools_for: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}

    def add(self, node: Node) -> None:
        self._move(node, 1)
        self._nodes[(node.cluster, node.name)] = node

    def remove(self, node: Node) -> None:
        self._move(node, -1)
        del self._nodes[(node.cluster, node.name)]

    def _move(self, node: Node, sign: int) -> None:
        self._pools_for.clear()
        pool, *others = list(self._pools_with(node.facts.labels)) or [""]
        for other in others:
            if sign > 0:
                self._lost[other][(node.cluster, node.name)] = pool
            else:
                del self._lost[other][(node.cluster, node.name)]
        if pool and node.facts.schedulable:
            self.node_count[pool] += sign
            self._count(node.cluster, pool, node.facts.allocatable, sign)

    def _count(self, cluster: str, pool: str, amounts: Resources, sign: int) -> None:
        """What has come and gone leaves no trace: a worker that takes over must find the same."""
        capacity = self.capacity.setdefault((cluster, pool), {})
        add(capacity, amounts.items(), sign)
        for resource in [name for name, amount in capacity.items() if not amount]:
            del capacity[resource]
        if not capacity:
            del self.capacity[(cluster, pool)]

    def hold(self, unmanaged: Unmanaged, sign: int) -> None:
        """Take what unmanaged pods hold off their pool's capacity, or (-1) put it back."""
        if unmanaged.pool in self.node_count:
            self._count(unmanaged.cluster, unmanaged.pool, unmanaged.requests, -sign)

    def pool_with(self, labels: Labels) -> str:
        """The pool that takes nodes with these labels. Pools do not overlap: the first by name is the one."""
        return next(self._pools_with(labels), "")

    def _pools_with(self, labels: Labels) -> Iterator[str]:
        return (pool.name for pool in self.pools if pool.facts.node_selector.items() <= labels.items())

    def overlap(self, pool: str) -> str:
        """Which nodes a pool selects in vain, for another one has them."""
        lost = self._lost.get(pool)
        if not lost:
            return ""
        (_, node), winner = min(lost.items())
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return (
            f"node {node}{more} also belongs to pool {winner}, first by name, which has it: pools must "
            "not overlap, so narrow spec.nodeSelector of one of them"
        )

    def pool_of(self, cluster: str, node_name: str) -> str:
        node = self._nodes.get((cluster, node_name))
        return self.pool_with(node.facts.labels) if node else ""

    def pools_for(self, cluster: str, node_selector: Labels) -> list[str]:
        """The pools with a node that a pod may go to, by name."""
        key = (cluster, tuple(sorted(node_selector.items())))
        if key not in self._pools_for:
            self._pools_for[key] = sorted(
                {
                    self.pool_with(node.facts.labels)
                    for (where, _), node in self._nodes.items()
                    if where == cluster and node_selector.items() <= node.facts.labels.items()
                }
                - {""}
            )
        return self._pools_for[key]

    def node_selector(self, pool: str) -> dict[str, str]:
        """What narrows a pod to the pool."""
        return dict(self._selectors.get(pool, {}))
