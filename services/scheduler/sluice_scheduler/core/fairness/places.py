"""Where pods may go: which nodes make up which pool, what each pool can hold, and how large its nodes are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import PoolKey
from sluice_scheduler.core.fairness.reaches import Reaches, Selected
from sluice_scheduler.core.fairness.sizes import Size, size_of
from sluice_scheduler.core.stored.entities import Node, Pool, Unmanaged
from sluice_scheduler.core.stored.names import Names

Labels: TypeAlias = Mapping[str, str]


class Places:
    """Sums over nodes, kept up to date as nodes come and go."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        self.pools = sorted(pools, key=lambda pool: pool.name)
        #: What may be reserved: what the pool's nodes can allocate, less what unmanaged pods hold.
        self.capacity: dict[PoolKey, Resources] = {}
        self.node_count: dict[str, int] = {pool.name: 0 for pool in self.pools}
        self.supplies = {pool.name: pool.facts.supply for pool in self.pools}
        self._selectors = {pool.name: pool.facts.node_selector for pool in self.pools}
        self._nodes: dict[tuple[str, str], Node] = {}  # by cluster and uid
        self._pool_of: dict[tuple[str, str], str] = {}
        self._named: Names[tuple[str, str], Node] = Names(lambda node: (node.cluster, node.name))
        self._with_label: dict[tuple[str, str, str], dict[tuple[str, str], None]] = {}
        #: By pool: nodes that it selects and another one has.
        self._lost: dict[str, dict[tuple[str, str], str]] = {pool.name: {} for pool in self.pools}
        self._reaches = Reaches()  # how large the nodes are that stand in pools

    def add(self, node: Node) -> None:
        self._move(node, 1)

    def remove(self, node: Node) -> None:
        self._move(node, -1)

    def _move(self, node: Node, sign: int) -> None:
        key = (node.cluster, node.uid)
        pool, *others = list(self._pools_with(node.facts.labels)) or [""]
        for other in others:
            if sign > 0:
                self._lost[other][key] = pool
            else:
                del self._lost[other][key]
        self._index_labels(node, sign)
        if sign > 0:
            self._nodes[key], self._pool_of[key] = node, pool
            self._named.add(node)
        else:
            del self._nodes[key], self._pool_of[key]
            self._named.remove(node)
        if pool:
            self._reach(node, pool, sign)
            if node.facts.schedulable:
                self.node_count[pool] += sign
                self._count(node.cluster, pool, node.facts.allocatable, sign)

    def _index_labels(self, node: Node, sign: int) -> None:
        key = (node.cluster, node.uid)
        for label in node.facts.labels.items():
            there = self._with_label.setdefault((node.cluster, *label), {})
            if sign > 0:
                there[key] = None
            else:
                there.pop(key, None)
                if not there:
                    del self._with_label[(node.cluster, *label)]

    def _reach(self, node: Node, pool: str, sign: int) -> None:
        key = (node.cluster, node.uid)
        if sign > 0:
            self._reaches.add(key, node.facts.labels, pool, size_of(node.facts.allocatable))
        else:
            self._reaches.remove(key)

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

    def _pools_with(self, labels: Labels) -> Iterator[str]:
        """The pools that select nodes with these labels. Pools do not overlap: the first by name has them."""
        return (pool.name for pool in self.pools if pool.facts.node_selector.items() <= labels.items())

    def overlap(self, pool: str) -> str:
        """Which nodes a pool selects in vain, for another one has them."""
        lost = self._lost.get(pool)
        if not lost:
            return ""
        node, winner = min((self._nodes[key].name, pool) for key, pool in lost.items())
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        return (
            f"node {node}{more} also belongs to pool {winner}, first by name, which has it: pools must "
            "not overlap, so narrow spec.nodeSelector of one of them"
        )

    def pool_of(self, cluster: str, node_name: str) -> str:
        node = self._named.get((cluster, node_name))
        return self._pool_of[(cluster, node.uid)] if node is not None else ""

    # ---- where pods may go

    def pools_for(self, cluster: str, node_selector: Labels) -> list[str]:
        """The pools with a node that a pod may go to, by name."""
        keys = self._matching(cluster, tuple(sorted(node_selector.items())))
        return sorted({pool for key in keys if (pool := self._pool_of[key])})

    def pools_holding(self, cluster: str, selector: tuple[tuple[str, str], ...], requests: Size) -> list[str]:
        """The pools that a pod may go to and in which one node is large enough for it."""
        by_pool = self._reaches.of((cluster, selector))
        return sorted(pool for pool, sizes in by_pool.items() if sizes.hold(requests))

    def largest(self, cluster: str, selector: tuple[tuple[str, str], ...], resource: str) -> int:
        """How much of a resource the node has that has most of it, of those that a pod may go to."""
        by_pool = self._reaches.of((cluster, selector))
        return max((sizes.largest(resource) for sizes in by_pool.values()), default=0)

    def take_changed(self) -> list[Selected]:
        """The selectors with which something else may fit than when somebody asked last."""
        return self._reaches.take_changed()

    def forget_selector(self, selected: Selected) -> None:
        """Nobody waits with it any more."""
        if selected[1]:
            self._reaches.forget(selected)

    def _matching(self, cluster: str, selector: tuple[tuple[str, str], ...]) -> Iterator[tuple[str, str]]:
        if not selector:
            return (key for key in self._nodes if key[0] == cluster)
        having = [self._with_label.get((cluster, *label), {}) for label in selector]
        fewest = min(having, key=len)
        return (key for key in fewest if all(key in others for others in having))

    def node_selector(self, pool: str) -> dict[str, str]:
        """What narrows a pod to the pool."""
        return dict(self._selectors.get(pool, {}))
