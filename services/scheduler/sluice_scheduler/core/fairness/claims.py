"""Claims: what stands in the queues' lines, and the spots where one may be placed.

A *gang claim* asks for all of a workload's minima at once; a *growth claim* for one more pod. A plain pod is
a claim of its own. Claims of one *shape* fit or fail together, so whatever is known of a claim without its
queue is kept once, on the shape. A *spot* is one way to place a shape: a pool for each of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from sluice.values import Resources

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.stored.accounts import Pod

if TYPE_CHECKING:
    from sluice_scheduler.core.fairness.branch import Branch
    from sluice_scheduler.core.fairness.rooms import Room
    from sluice_scheduler.core.fairness.standing import Alike

#: What is counted apart for what fits: a cluster's share of a pool, and a resource.
Dim: TypeAlias = tuple[str, str, str]
#: What is counted apart for shares: a supply, and a resource.
Kind: TypeAlias = tuple[str, str]
#: Amounts by dim; few, so pairs are faster than a dict.
Cost: TypeAlias = tuple[tuple[Dim, int], ...]
#: The same by kind.
KindCost: TypeAlias = tuple[tuple[Kind, int], ...]
#: Priority first, then age, then names, so that no two claims are equal.
Place: TypeAlias = tuple[int | str, ...]
#: A pool as one cluster has it: nothing of one cluster can serve a pod of another.
PoolKey: TypeAlias = tuple[str, str]
#: Where demand may go within a supply: to which of its pools, in order of name. None: they are not told apart.
Way: TypeAlias = tuple[str, tuple[PoolKey, ...]]
#: Demand that stops together: where it may go (the preferred supply first), and what it asks for.
Group: TypeAlias = tuple[tuple[Way, ...], tuple[str, ...]]
#: What a claim counts as: each group of demand, and how much of each of its resources.
Wants: TypeAlias = tuple[tuple[Group, tuple[int, ...]], ...]
#: What a claim asks for, as far as its queue may be owed it: the supplies, the resources, and whether its parts go to
#: pools of their own.
Demand: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], bool]


class Part(NamedTuple):
    """So many pods that are alike."""

    cluster: str
    pods: int
    requests: tuple[tuple[str, int], ...]
    node_selector: tuple[tuple[str, str], ...]


def part(cluster: str, count: int, requests: Resources, node_selector: dict[str, str]) -> Part:
    return Part(cluster, count, tuple(sorted(requests.items())), tuple(sorted(node_selector.items())))


def part_of(pod: Pod) -> Part:
    return part(pod.cluster, 1, pod.facts.requests, pod.asked_selector)


class Spot:
    """One way to place a shape: a pool for each part, and what that costs."""

    __slots__ = ("alike", "asleep", "cost", "kinds", "needs", "pools", "serial", "shape", "watching", "where")

    def __init__(self, shape: Shape, pools: tuple[str, ...], kind_of: KindOf) -> None:
        self.shape = shape
        self.pools = pools
        self.where = " and ".join(dict.fromkeys(pools))
        sums: dict[Dim, int] = {}
        for each, pool in zip(shape.parts, pools, strict=True):
            add(sums, cost_of(each.cluster, pool, each.requests, each.pods))
        self.cost: Cost = tuple(sums.items())
        self.kinds: KindCost = kind_of.cost(self.cost)
        self.needs: list[tuple[Room, int]] = []  # under the root
        self.alike: Alike | None = None  # pods that hold this already, once there was one
        #: Known not to fit under the root; it watches one room that is too small.
        self.asleep = False
        self.watching: Room | None = None
        self.serial = 0


def group_of(cost: Cost, kind_of: KindOf) -> tuple[Group, tuple[int, ...]]:
    """The demand that a held cost counts as, where it stands. If it spans several supplies, the first by name stands
    for all, as a whole."""
    if not cost:
        return ((), ()), ()
    sums: dict[str, int] = {}
    add(sums, ((resource, amount) for (_, _, resource), amount in cost))
    resources = tuple(sorted(sums))
    pools = sorted({dim[:2] for dim, _ in cost})
    supplies = sorted({kind_of.supply(pool) for pool in pools})
    way: Way = (supplies[0], tuple(pools) if len(supplies) == 1 else ())
    return ((way,), resources), tuple([sums[resource] for resource in resources])


def kind_name(kind: Kind) -> str:
    supply, resource = kind
    return f"{supply}/{resource}" if supply else resource


class KindOf:
    """Which kind a dim is of: pools that name the same supply are one supply for shares."""

    def __init__(self) -> None:
        self._supply: dict[str, str] = {}
        self._known: dict[Dim, Kind] = {}

    def set_supplies(self, supply_of_pool: dict[str, str]) -> None:
        self._supply, self._known = supply_of_pool, {}

    def __call__(self, dim: Dim) -> Kind:
        kind = self._known.get(dim)
        if kind is None:
            kind = self._known[dim] = (self.supply(dim[:2]), dim[2])
        return kind

    def supply(self, pool: PoolKey) -> str:
        return self._supply.get(pool[1], "")

    def by_supply(self, pools: Iterable[PoolKey]) -> dict[str, tuple[PoolKey, ...]]:
        """Pools in order of name."""
        found: dict[str, list[PoolKey]] = {}
        for pool in sorted(pools):
            found.setdefault(self.supply(pool), []).append(pool)
        return {supply: tuple(there) for supply, there in found.items()}

    def cost(self, cost: Cost) -> KindCost:
        pool = cost[0][0][1] if cost else ""
        for dim, _ in cost:
            if dim[1] != pool:
                return self._summed(cost)
        known = self._known  # of one pool nothing adds up
        return tuple([(known.get(dim) or self(dim), amount) for dim, amount in cost])

    def _summed(self, cost: Cost) -> KindCost:
        sums: dict[Kind, int] = {}
        add(sums, ((self(dim), amount) for dim, amount in cost))
        return tuple(sums.items())


class Shape:
    """What decides, queue and limits apart, whether a claim fits."""

    __slots__ = (
        "demand",
        "lines",
        "number",
        "parts",
        "pods",
        "scattered",
        "sleepers",
        "spots",
        "spreads",
        "wants",
    )

    def __init__(self, parts: tuple[Part, ...], number: int) -> None:
        self.parts = parts
        self.pods = sum(part.pods for part in parts)
        self.number = number  # in order of first appearance; for identity only, never for order
        self.spots: list[Spot] = []
        #: The pools of each part, if no pool is open to all of them: then each goes where it may.
        self.scattered: list[list[str]] = []
        #: Ways to do that which are tried where room has to be made for it, once anybody has asked.
        self.spreads: list[Spot] | None = None
        self.sleepers: dict[Branch, None] = {}  # leaves that do not try it until one of its spots wakes
        self.lines: dict[Branch, int] = {}  # the leaves where claims of it wait, and how many
        self.wants: Wants = ()  # as part of its queues' demand
        self.demand: Demand = ((), (), False)

    def asks(self, wants: Wants) -> None:
        """It may go there, and asks for so much."""
        self.wants = wants
        supplies = dict.fromkeys(supply for (ways, _), _ in wants for supply, _ in ways)
        resources = sorted({resource for (_, resources), _ in wants for resource in resources})
        self.demand = tuple(supplies), tuple(resources), bool(self.scattered)

    @property
    def placeable(self) -> bool:
        """Whether any pool has nodes for it."""
        return bool(self.spots or self.scattered)


class Claim:
    """Something that waits in a line."""

    __slots__ = ("created_ms", "ends_in_ms", "gang", "key", "line", "line_ms", "place", "priority", "shape")

    def __init__(
        self,
        *,
        key: str,
        line: str,
        priority: int,
        created_ms: int,
        line_ms: int,
        names: Place,
        shape: Shape,
        gang: bool,
        ends_in_ms: int = 0,
    ) -> None:
        self.key = key
        self.line = line  # the queue it waits in; empty once it has left
        self.priority = priority
        self.created_ms = created_ms  # since when it waits
        #: By this it has its place in its line. Growth stands there where its application does, however long that has
        #: run: but it has waited no longer than its pods.
        self.line_ms = line_ms
        self.place: Place = (-priority, line_ms, *names)
        self.shape = shape
        self.gang = gang
        self.ends_in_ms = ends_in_ms  # it ends so long after its start, as it says itself; 0: it does not say


def cost_of(cluster: str, pool: str, requests: tuple[tuple[str, int], ...], count: int = 1) -> Cost:
    return tuple(((cluster, pool, resource), amount * count) for resource, amount in requests if amount)


def times(cost: Cost, count: int) -> Cost:
    return tuple((dim, amount * count) for dim, amount in cost)


def pod_cost(pod: Pod) -> Cost:
    cluster, pool = pod.cluster, pod.pool
    return tuple([((cluster, pool, resource), each) for resource, each in pod.facts.requests.items() if each])
