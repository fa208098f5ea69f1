"""What each queue would hold if shares were perfectly fair, for comparisons: DRF by progressive filling.

It goes by what queues ask for now, as if tasks could be divided; guarantees and limits are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sluice_scheduler.simulator.scenario import Queue
from sluice_scheduler.simulator.statistics import jain

#: Parts of a resource, by its name.
Parts = Mapping[str, float]
_NOTHING: Final = 1e-9


@dataclass(slots=True)
class Node:
    """A queue; a leaf if it has no children. An inner queue's own pods are a leaf of weight 1 under it."""

    queue: str
    weight: int
    children: list[Node] = field(default_factory=list)
    _known: dict[frozenset[str], dict[str, float]] = field(default_factory=dict, compare=False, repr=False)

    def speeds_of(self, growing: frozenset[str]) -> dict[str, float]:
        """The speeds if this one's is 1, worked out once for those who grow together."""
        if growing not in self._known:
            self._known[growing] = self.speeds(growing, 1.0)
        return self._known[growing]

    def speeds(self, growing: Collection[str], speed: float) -> dict[str, float]:
        """How fast each growing leaf's share rises if this one's rises at `speed`."""
        if not self.children:
            return {self.queue: speed}
        busy = [child for child in self.children if child.has_any(growing)]
        weights = sum(child.weight for child in busy)
        found: dict[str, float] = {}
        for child in busy:
            found |= child.speeds(growing, speed * child.weight / weights)
        return found

    def has_any(self, growing: Collection[str]) -> bool:
        if self.children:
            return any(child.has_any(growing) for child in self.children)
        return self.queue in growing


def tree_of(queues: Collection[Queue]) -> Node:
    root = Node("", 1)
    by_name = {queue.name: Node(queue.name, queue.weight) for queue in queues}
    for queue in queues:
        parent = by_name.get(queue.parent or "", root)
        if parent is not root and not parent.children:
            parent.children.append(Node(parent.queue, 1))
        parent.children.append(by_name[queue.name])
    return root


def fair_parts(root: Node, asked: Mapping[str, Parts]) -> dict[str, float]:
    """The part of what each queue asks for that it would have: all shares rise together, by weight, until a
    queue has all of it or a resource that it asks for is used up."""
    given = {queue: 0.0 for queue, amounts in asked.items() if any(amounts.values())}
    most = {queue: max(asked[queue].values()) for queue in given}
    left = {resource: 1.0 for amounts in asked.values() for resource in amounts}
    growing = set(given)
    while growing:
        speeds = root.speeds_of(frozenset(growing))
        pace = {queue: speed / most[queue] for queue, speed in speeds.items()}
        drain = dict.fromkeys(left, 0.0)
        for queue, part in pace.items():
            for resource, amount in asked[queue].items():
                drain[resource] += part * amount
        time = min(
            *((1 - given[queue]) / part for queue, part in pace.items()),
            *(left[resource] / flow for resource, flow in drain.items() if flow),
        )
        for queue, part in pace.items():
            given[queue] += part * time
        left = {resource: amount - drain[resource] * time for resource, amount in left.items()}
        growing = {
            queue
            for queue in growing
            if given[queue] < 1 - _NOTHING
            and all(left[resource] > _NOTHING for resource, amount in asked[queue].items() if amount)
        }
    return given


def evenness(root: Node, held: Mapping[str, Parts], asked: Mapping[str, Parts]) -> float:
    """Jain's index of what those who ask for anything hold, each by what would be fair: 1 if it is."""
    fair = fair_parts(root, asked)
    return jain(
        max(held[queue].values(), default=0.0) / (part * max(asked[queue].values()))
        for queue, part in fair.items()
        if part
    )
