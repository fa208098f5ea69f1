"""Claims: what the queues' lines are made of, and what decides whether one fits.

A *gang claim* asks for all of a workload's minima at once; a *growth claim* for one more pod. A plain pod is
a claim of its own. Claims of one *shape* fit or fail together, so whatever can be known of a claim without
its queue is kept once, on the shape: the *options* of placing it, one pool for all its parts if they may
share one.
"""

from __future__ import annotations

from itertools import product
from typing import Final, NamedTuple, TypeAlias

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.stored.accounts import Pod

#: What is counted apart from everything else: a cluster's share of a pool, and a resource.
Dim: TypeAlias = tuple[str, str, str]
#: Amounts by dim; few, so pairs are faster than a dict.
Cost: TypeAlias = tuple[tuple[Dim, int], ...]
#: Priority first, then age, then names, so that no two claims are equal.
Place: TypeAlias = tuple[int | str, ...]

#: Parts that may not share a pool are combined; more combinations than this nobody wants to wait for.
OPTIONS_MAX: Final = 64


class Part(NamedTuple):
    """So many pods that are alike."""

    cluster: str
    pods: int
    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...]


def part(cluster: str, count: int, requests: Resources, node_selector: dict[str, str]) -> Part:
    return Part(cluster, count, tuple(sorted(requests.items())), tuple(sorted(node_selector.items())))


def part_of(pod: Pod) -> Part:
    return part(pod.cluster, 1, pod.facts.requests, pod.facts.node_selector)


class Option:
    """One way to place a shape: a pool for each part, and what that costs."""

    __slots__ = ("cost", "pools", "shape", "where")

    def __init__(self, shape: Shape, pools: tuple[str, ...]) -> None:
        self.shape = shape
        self.pools = pools
        self.where = " and ".join(dict.fromkeys(pools))
        sums: dict[Dim, int] = {}
        for each, pool in zip(shape.parts, pools, strict=True):
            add(sums, cost_of(each.cluster, pool, each.requests, each.pods))
        self.cost: Cost = tuple(sums.items())


class Shape:
    """What decides, queue and limits apart, whether a claim fits."""

    __slots__ = ("number", "options", "parts", "waiting")

    def __init__(self, parts: tuple[Part, ...], number: int) -> None:
        self.parts = parts
        self.number = number  # in order of first appearance; for identity only, never for order
        self.options: list[Option] = []
        self.waiting = 0  # claims in all lines

    def place(self, pools_of_parts: list[list[str]]) -> None:
        """Work out the options: all parts in one pool, if they may; otherwise each in one of its own."""
        common = [pool for pool in pools_of_parts[0] if all(pool in pools for pools in pools_of_parts[1:])]
        choices = [(pool,) * len(self.parts) for pool in common] or list(product(*pools_of_parts))
        self.options = [Option(self, pools) for pools in choices[:OPTIONS_MAX]]


class Claim:
    """Something that waits in a line."""

    __slots__ = ("created_ms", "gang", "key", "line", "place", "priority", "shape")

    def __init__(
        self, *, key: str, line: str, priority: int, created_ms: int, names: Place, shape: Shape, gang: bool
    ) -> None:
        self.key = key
        self.line = line  # the queue it waits in; empty once it has left
        self.priority = priority
        self.created_ms = created_ms
        self.place: Place = (-priority, created_ms, *names)
        self.shape = shape
        self.gang = gang


def cost_of(cluster: str, pool: str, requests: tuple[tuple[str, int], ...], count: int = 1) -> Cost:
    return tuple(((cluster, pool, resource), amount * count) for resource, amount in requests if amount)


def pod_cost(pod: Pod) -> Cost:
    return cost_of(pod.cluster, pod.pool, tuple(pod.facts.requests.items()))
