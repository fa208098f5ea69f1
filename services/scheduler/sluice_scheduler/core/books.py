"""The books: what every pool has and has given away, and what every queue holds of it.

Two sums over the pods' accounts, kept up to date with each charge and release; nobody else adds or subtracts.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from sluice.events import Amounts
from sluice.values import Resources

from sluice_scheduler.core.places import Places, PoolKey, add_resources
from sluice_scheduler.core.tree import QueueNode, total_amount


class Books:
    def __init__(self, places: Places) -> None:
        self.capacity = places.capacity
        self.reserved: dict[PoolKey, Resources] = {}
        self._usage: dict[str, dict[PoolKey, Resources]] = {}  # of a queue and all below it
        #: Rises whenever something that did not fit might fit now.
        self.freed = 0

    # ---- what is there

    def usage(self, queue: str) -> Mapping[PoolKey, Resources]:
        return self._usage.get(queue, {})

    def used(self, queue: str, resource: str) -> int:
        """What a queue holds of a resource, over all pools."""
        return sum(held.get(resource, 0) for held in self.usage(queue).values())

    def capacities(self, resource: str) -> dict[str, int]:
        """Each pool's capacity of a resource, by the pool's name."""
        sums: dict[str, int] = {}
        for (_, pool), capacity in self.capacity.items():
            sums[pool] = sums.get(pool, 0) + max(0, capacity.get(resource, 0))
        return sums

    # ---- what moves

    def charge(self, queue: QueueNode | None, pool: PoolKey, requests: Resources) -> None:
        """Without a queue (it was deleted while its pods run) the pool still counts what is held."""
        add_resources(self.reserved.setdefault(pool, {}), requests)
        for node in queue.path if queue else ():
            add_resources(self._usage.setdefault(node.name, {}).setdefault(pool, {}), requests)

    def release(self, queue: QueueNode | None, pool: PoolKey, requests: Resources) -> None:
        add_resources(self.reserved[pool], requests, -1)
        for node in queue.path if queue else ():
            add_resources(self._usage[node.name][pool], requests, -1)
        self.freed += 1

    # ---- what may be given

    def lacking(self, pool: PoolKey, requests: Resources) -> str:
        """The first resource of which the pool has too little left for `requests`; empty if it fits."""
        capacity, reserved = self.capacity.get(pool, {}), self.reserved.get(pool, {})
        return next(
            (
                resource
                for resource, amount in requests.items()
                if amount and reserved.get(resource, 0) + amount > capacity.get(resource, 0)
            ),
            "",
        )

    def over_limit(self, node: QueueNode, pool: PoolKey, requests: Resources) -> str:
        """`queue's limit of resource` that `requests` would pass, from the queue up; empty if none."""
        for queue in node.path:
            for resource, amount in requests.items():
                limit = self.limit(queue, resource)
                if limit is not None and self.used(queue.name, resource) + amount > limit:
                    return f"{queue.name}'s limit of {resource}"
                keyed = queue.facts.limit_by_pool.get(pool[1], {})
                if resource in keyed:
                    held = self.usage(queue.name).get(pool, {}).get(resource, 0)
                    if held + amount > self._of_pool(keyed, pool, resource):
                        return f"{queue.name}'s limit of {resource} in pool {pool[1]}"
        return ""

    def limit(self, queue: QueueNode, resource: str) -> int | None:
        """A queue's limit over all pools; limits keyed by pool are judged in their pool."""
        return total_amount(queue.facts.limit, {}, resource, self.capacities(resource))

    def guaranteed(self, queue: QueueNode, resource: str) -> int:
        facts = queue.facts
        amounts, by_pool = facts.guaranteed, facts.guaranteed_by_pool
        return total_amount(amounts, by_pool, resource, self.capacities(resource)) or 0

    def _of_pool(self, amounts: Amounts, pool: PoolKey, resource: str) -> int:
        capacity = {pool[1]: self.capacity.get(pool, {}).get(resource, 0)}
        return total_amount({}, {pool[1]: amounts}, resource, capacity) or 0

    # ---- fairness

    def dominant_share(self, queue: QueueNode) -> tuple[Fraction, str]:
        """The largest share that a queue has of any resource of any pool, divided by its weight; and which.

        What is held of a pool that has nothing of it (its nodes were lost) counts as all of it.
        """
        largest, which = Fraction(0), ""
        for pool, held in self.usage(queue.name).items():
            capacity = self.capacity.get(pool, {})
            for resource, amount in held.items():
                if amount <= 0:
                    continue
                share = Fraction(amount, max(amount, 1) if (c := capacity.get(resource, 0)) <= 0 else c)
                if share > largest:
                    largest, which = share, f"{pool[1]}/{resource}"
        return largest / queue.facts.weight, which
