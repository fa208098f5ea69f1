"""What pods that Sluice does not manage hold: summed, since only their sum counts against a pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sluice.events import UnmanagedEvent
from sluice.values import Resources

from sluice_watcher.clock import Clock
from sluice_watcher.publisher import Publisher


@dataclass(slots=True)
class Sum:
    pods: int = 0
    requests: Resources = field(default_factory=dict)

    def add(self, requests: Resources, *, pods: int) -> None:
        """Add what `pods` pods request, or take it off again when `pods` is negative."""
        sign = 1 if pods > 0 else -1
        self.pods += pods
        for resource, amount in requests.items():
            rest = self.requests.get(resource, 0) + sign * amount
            if rest:
                self.requests[resource] = rest
            else:
                self.requests.pop(resource, None)


class UnmanagedPods:
    """A small entry a pod, and a sum a node, so that one change costs one addition."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[str, Resources]] = {}  # uid → its node and what it takes there
        self._nodes: defaultdict[str, Sum] = defaultdict(Sum)
        self._unseen: set[str] = set()

    def put(self, uid: str, node: str, requests: Resources) -> None:
        self.drop(uid)
        self._pods[uid] = node, requests
        self._nodes[node].add(requests, pods=1)
        self._unseen.discard(uid)

    def drop(self, uid: str) -> None:
        if uid in self._pods:
            node, requests = self._pods.pop(uid)
            self._nodes[node].add(requests, pods=-1)
            if not self._nodes[node].pods:
                del self._nodes[node]

    def begin(self) -> None:
        self._unseen = set(self._pods)

    def end(self) -> None:
        """What a re-list did not show is gone."""
        for uid in self._unseen:
            self.drop(uid)
        self._unseen = set()

    def by_pool(self, pool_of_node: Mapping[str, str]) -> dict[str, Sum]:
        pools: defaultdict[str, Sum] = defaultdict(Sum)
        for node, held in self._nodes.items():
            if pool := pool_of_node.get(node):
                pools[pool].add(held.requests, pods=held.pods)
        return pools


class UnmanagedReport:
    """Publishes the sums. Another record always comes right behind them: a tick, or the end of a list."""

    def __init__(
        self,
        sums: Callable[[], Mapping[tuple[str, str], Sum]],  # by cell and pool
        *,
        cluster: str,
        clock: Clock,
        publisher: Publisher,
    ) -> None:
        self._sums = sums
        self._cluster = cluster
        self._clock = clock
        self._publisher = publisher
        self._published: Mapping[tuple[str, str], Sum] = {}

    def publish_all(self) -> None:
        self._published = {}
        self.publish_changes()

    def publish_changes(self) -> None:
        sums = self._sums()
        for (cell, pool), held in sums.items():
            if held != self._published.get((cell, pool)):
                self._publisher.put(
                    cell,
                    UnmanagedEvent(
                        time_ms=self._clock.now_ms(),
                        cluster=self._cluster,
                        more=True,
                        pool=pool,
                        pods=held.pods,
                        requests=held.requests,
                    ),
                )
        self._published = sums
