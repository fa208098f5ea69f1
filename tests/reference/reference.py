"""The executable reference: slow and obvious. From the entities alone, with exact fractions and from nothing,
it computes whose turn it is; tests compare every choice of the fast core with it.

It knows drf, both orderings, gangs, pod groups, plain pods, growth, guarantees and limits, several pools and
supplies, the size of nodes, room that is kept, evictions and promises. What is deserved it takes as it was
worked out last: deserved.py knows how.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from sluice.events import PodFacts
from sluice.quantities import is_percent, parse_percent, to_base_units
from sluice_scheduler.core import State
from sluice_scheduler.core.stored.accounts import Pod, Workload

Amounts = dict[tuple[str, str], int]  # (pool, resource) → amount


COVERED, DESERVED, BEYOND = 0, 1, 2


@dataclass
class Claim:
    key: str
    place: tuple[object, ...]
    parts: list[tuple[int, dict[str, int], dict[str, str]]]  # pods, requests of each, node selector
    leaf: Node
    grows: str = ""  # the claim of the application that this is growth of

    @property
    def priority(self) -> int:
        return -int(str(self.place[0]))


@dataclass
class Spot:
    pools: tuple[str, ...]  # of each part
    cost: Amounts
    scattered: bool = False  # no pool is open to all parts


@dataclass(eq=False)
class Node:
    name: str
    weight: int
    order: tuple[int, str]
    parent: Node | None
    facts: object
    strict: bool = False
    children: list[Node] = field(default_factory=list)
    usage: Amounts = field(default_factory=dict)
    leaving: Amounts = field(default_factory=dict)
    kept: Amounts = field(default_factory=dict)  # held by what is set aside, from which nothing is taken
    claims: list[Claim] = field(default_factory=list)

    @property
    def path(self) -> list[Node]:
        return [self, *(self.parent.path if self.parent else [])]


class Reference:
    def __init__(self, state: State) -> None:
        self.state = state
        self.capacity: Amounts = {}
        for node in state.nodes:
            for resource, amount in node.facts.allocatable.items():
                key = (node.facts.labels["pool"], resource)
                self.capacity[key] = self.capacity.get(key, 0) + amount
        self.root = Node("", 1, (0, ""), None, None)
        self.leaves: dict[str, Node] = {}
        self._build("", self.root)
        self._fill()
        for key in (*self.root.usage, *self.root.leaving):
            self.capacity.setdefault(key, 0)
        self.claims = {claim.key: claim for leaf in self.leaves.values() for claim in leaf.claims}
        self.supplies = {pool.name: pool.facts.supply for pool in state.pools}
        self.whole: Amounts = {}
        for (pool, resource), amount in self.capacity.items():
            kind = (self.supplies[pool], resource)
            self.whole[kind] = self.whole.get(kind, 0) + amount

    def _build(self, parent_name: str, parent: Node) -> None:
        queues = [queue for queue in self.state.queues if queue.facts.parent == parent_name]
        for queue in sorted(queues, key=lambda queue: (queue.facts.created_ms, queue.name)):
            order = (queue.facts.created_ms, queue.name)
            strict = queue.facts.ordering == "strictFifo"
            node = Node(queue.name, queue.facts.weight, order, parent, queue.facts, strict=strict)
            parent.children.append(node)
            self.leaves[queue.name] = node
            if any(other.facts.parent == queue.name for other in self.state.queues):
                own = Node(queue.name, 1, order, node, None, strict=node.strict)
                node.children.append(own)
                self.leaves[queue.name] = own
                self._build(queue.name, node)

    # ---- who holds what, who waits for what

    def _fill(self) -> None:
        self.workloads = {(w.namespace, w.name): w for w in self.state.workloads}
        self.promised = {promise.claim for promise in self.state.promises}
        self.holding: dict[tuple[str, str], int] = {}
        self.groups: dict[tuple[str, str], list[Pod]] = {}  # pods that name no workload and wait
        self.begun: set[tuple[str, str]] = set()  # the groups of which some hold
        self.aside = {aside.what for aside in self.state.asides}
        for pod in self.state.pods:
            if pod.phase in ("Assumed", "Holding"):
                self._hold(pod)
            elif self._is_aside(pod):
                continue
            elif pod.phase == "Waiting" and not (pod.problem or pod.facts.deleting or pod.retry_ms):
                self._await(pod)
        for group, pods in self.groups.items():
            self._line_up_group(group, pods)
        for workload in self.workloads.values():
            if self._is_out(workload.cluster, workload.namespace, workload.name):
                continue
            if workload.admitted:
                self._reserve(workload)
            elif not (workload.problem or workload.retry_ms or workload.key in self.promised):
                self._line_up_gang(workload)
        self._promise()

    def _is_aside(self, pod: Pod) -> bool:
        return pod.key in self.aside or self._is_out(pod.cluster, pod.namespace, pod.facts.workload)

    def _is_out(self, cluster: str, namespace: str, title: str) -> bool:
        """An application is set aside by its own key, or by that of the group of pods that it was before."""
        workload = self.workloads.get((namespace, title))
        keys = {f"group/{cluster}/{namespace}/{title}", *([workload.key] if workload is not None else ())}
        return not self.aside.isdisjoint(keys)

    def _promise(self) -> None:
        for promise in self.state.promises:
            for node in self.leaves[promise.queue].path:
                for _, pool, resource, amount in promise.cost:
                    node.usage[(pool, resource)] = node.usage.get((pool, resource), 0) + amount
                    node.leaving[(pool, resource)] = node.leaving.get((pool, resource), 0) - amount

    def _hold(self, pod: Pod) -> None:
        self._charge(pod.queue, pod.pool, pod.facts.requests, pods=1, leaving=pod.evicting > 0)
        if self._is_aside(pod):
            for node in self.leaves[pod.queue].path if pod.queue in self.leaves else ():
                for resource, amount in pod.facts.requests.items():
                    key = (pod.pool, resource)
                    node.kept[key] = node.kept.get(key, 0) + amount
        workload = self.workloads.get((pod.namespace, pod.facts.workload))
        if workload is not None and not pod.evicting:
            key = (workload.key, pod.facts.pod_set)
            self.holding[key] = self.holding.get(key, 0) + 1
        elif pod.facts.group_size and not pod.evicting and not self.state.is_stuck(pod.key):
            self.begun.add((pod.namespace, pod.facts.workload))

    def _await(self, pod: Pod) -> None:
        if pod.facts.group_size:
            self.groups.setdefault((pod.namespace, pod.facts.workload), []).append(pod)
        else:
            self._line_up(pod)

    def _line_up_group(self, group: tuple[str, str], pods: list[Pod]) -> None:
        """All that wait at once, if they are enough; behind those that hold, each for itself."""
        if group in self.begun:
            for pod in pods:
                self._line_up(pod)
            return
        key = f"group/{pods[0].cluster}/{'/'.join(group)}"
        if len(pods) < pods[0].facts.group_size or key in self.promised:
            return
        facts = [pod.facts for pod in pods]
        first = min(pod.uid for pod in pods)
        place = (-max(f.priority for f in facts), min(f.created_ms for f in facts), group[0], first)
        parts = sorted({_like(f): f for f in facts}.items(), key=lambda each: each[0])
        alike = [(sum(_like(f) == like for f in facts), f.requests, f.node_selector) for like, f in parts]
        leaf = self.leaves[pods[0].queue]
        leaf.claims.append(Claim(key, place, alike, leaf))

    def _line_up(self, pod: Pod) -> None:
        if pod.key in self.promised:
            return
        facts = pod.facts
        place: tuple[object, ...] = (-facts.priority, facts.created_ms, pod.namespace, pod.uid)
        grows = f"group/{pod.cluster}/{pod.namespace}/{facts.workload}" if facts.group_size else ""
        if facts.workload and not facts.group_size:
            workload = self.workloads.get((pod.namespace, facts.workload))
            if workload is None or not workload.admitted:
                return
            first = (-workload.facts.priority, workload.facts.created_ms, pod.namespace, workload.uid)
            place, grows = (*first, facts.created_ms, pod.uid), workload.key
        leaf = self.leaves[pod.queue]
        leaf.claims.append(Claim(pod.key, place, [(1, facts.requests, facts.node_selector)], leaf, grows))

    def _reserve(self, workload: Workload) -> None:
        for pod_set in workload.facts.pod_sets:
            holding = self.holding.get((workload.key, pod_set.name), 0)
            granted = min(minimum(workload, pod_set), workload.granted.get(pod_set.name, 0))
            left = min(workload.kept.get(pod_set.name, 0), still_to_run(workload, pod_set) - holding)
            missing = max(granted - holding, left)
            if missing > 0:
                pool = workload.pools[pod_set.name]
                self._charge(workload.queue, pool, pod_set.requests, pods=missing)

    def _line_up_gang(self, workload: Workload) -> None:
        facts = workload.facts
        parts = [(minimum(workload, s), s.requests, s.node_selector) for s in facts.pod_sets]
        if any(pods for pods, _, _ in parts):
            place = (-facts.priority, facts.created_ms, workload.namespace, workload.uid)
            leaf = self.leaves[workload.queue]
            leaf.claims.append(Claim(workload.key, place, [part for part in parts if part[0]], leaf))

    def _charge(
        self, queue: str, pool: str, requests: dict[str, int], *, pods: int, leaving: bool = False
    ) -> None:
        for node in self.leaves[queue].path:
            amounts = node.leaving if leaving else node.usage
            for resource, amount in requests.items():
                amounts[(pool, resource)] = amounts.get((pool, resource), 0) + amount * pods

    # ---- what fits

    def _pools_holding(self, requests: dict[str, int], selector: dict[str, str]) -> list[str]:
        """Pools with a node that is large enough for one such pod, by name."""
        found = set()
        for node in self.state.nodes:
            labels, there = node.facts.labels, node.facts.allocatable
            if selector.items() <= labels.items() and all(there.get(r, 0) >= n for r, n in requests.items()):
                found.add(labels["pool"])
        return sorted(found)

    def spots(self, claim: Claim) -> list[Spot]:
        """Ways to place a claim: all in one pool, or each part where it may go."""
        allowed = [self._pools_holding(requests, selector) for _, requests, selector in claim.parts]
        common = [pool for pool in allowed[0] if all(pool in each for each in allowed)]
        choices = [(pool,) * len(allowed) for pool in common] or _spreads(allowed)
        return [Spot(choice, self._cost(claim, choice), scattered=not common) for choice in choices]

    def _cost(self, claim: Claim, pools: tuple[str, ...]) -> Amounts:
        cost: Amounts = {}
        for (pods, requests, _), pool in zip(claim.parts, pools, strict=True):
            for resource, amount in requests.items():
                if amount:
                    cost[(pool, resource)] = cost.get((pool, resource), 0) + amount * pods
        return cost

    def bounds(self, node: Node, what: str) -> list[tuple[list[tuple[str, str]], int]]:
        if node.facts is None:
            return [([key], amount) for key, amount in self.capacity.items()] if node.parent is None else []
        found = []
        amounts = getattr(node.facts, what)
        if what == "guaranteed":
            found += self._passed_on(node, amounts)
        for resource, text in amounts.items():
            keys = [key for key in self.capacity if key[1] == resource]
            if is_percent(text):
                found += [([key], int(parse_percent(text) * self.capacity[key])) for key in keys]
            elif keys:
                found.append((keys, to_base_units(resource, text)))
        return found

    def _passed_on(self, node: Node, named: dict[str, str]) -> list[tuple[list[tuple[str, str]], int]]:
        """Of a resource that it does not name, an inner queue guarantees what its children do: one bound of all
        that hold in the same pools."""
        found: list[tuple[list[tuple[str, str]], int]] = []
        for child in node.children:
            for below, amount in self.bounds(child, "guaranteed") if child.facts is not None else []:
                if below[0][1] in named:
                    continue
                keys, total = set(below), amount
                for other in [each for each in found if keys.intersection(each[0])]:
                    found.remove(other)
                    keys, total = keys.union(other[0]), total + other[1]
                found.append((sorted(keys), total))
        return found

    def left(self, node: Node, keys: list[tuple[str, str]], most: int, claimant: str = "") -> int:
        """Under a bound, beside what is held, what still leaves, and what is kept for whose turn it is, before the
        claimant's if room is kept for that too."""
        held = sum(node.usage.get(key, 0) + max(0, node.leaving.get(key, 0)) for key in keys)
        kept = 0
        for turn in sorted(self.state.turns, key=lambda turn: (turn.kept_ms, turn.key)):
            claim = self.claims.get(turn.claim)
            if not turn.cost or claim is None:
                continue
            if claim.key == claimant:
                break
            if node in claim.leaf.path and (turn.within or node is not self.root):
                kept += sum(amount for _, pool, resource, amount in turn.cost if (pool, resource) in keys)
        return most - held - min(kept, max(0, most - held))

    def fits(self, leaf: Node, cost: Amounts) -> bool:
        if any(key not in self.capacity for key in cost):
            return False
        for node in leaf.path:
            for keys, most in self.bounds(node, "limit"):
                asked = sum(cost.get(key, 0) for key in keys)
                if asked and asked > self.left(node, keys, most):
                    return False
        return True

    def chosen_spot(self, leaf: Node, claim: Claim) -> Spot | None:
        """Of the spots where a claim fits that with most room beside what must go there."""
        fitting = [spot for spot in self.spots(claim) if self.fits(leaf, spot.cost)]
        if not fitting or fitting[0].scattered:
            return fitting[0] if fitting else None
        choices = len(self.spots(claim))
        pressure = self.pressure()

        def ease(spot: Spot) -> int:
            return min(
                (
                    self.left(self.root, [key], self.capacity[key])
                    - amount
                    - max(0, pressure.get(key, 0) - amount // choices)
                )
                * 1_000_000
                // max(1, self.capacity[key])
                for key, amount in spot.cost.items()
            )

        return max(fitting, key=ease)  # of equals the first

    def pressure(self) -> Amounts:
        """What waits for each pool, and could fit there: of what may go elsewhere too a part."""
        found: Amounts = {}
        for claim in self.claims.values():
            spots = [spot for spot in self.spots(claim) if not spot.scattered]
            if not any(self._has_so_much(spot.cost) for spot in spots):
                continue
            for spot in spots:
                for key, amount in spot.cost.items():
                    found[key] = found.get(key, 0) + amount // len(spots)
        return found

    def _has_so_much(self, cost: Amounts) -> bool:
        return all(amount <= self.capacity.get(key, 0) for key, amount in cost.items())

    def head(self, leaf: Node) -> tuple[Claim, Spot] | None:
        claims = sorted(leaf.claims, key=lambda claim: claim.place)
        if leaf.strict:
            claims = claims[:1]
        for claim in claims:
            spot = self.chosen_spot(leaf, claim)
            if spot is not None:
                return claim, spot
        return None

    # ---- shares

    def kinds(self, amounts: Amounts) -> Amounts:
        """By supply and resource instead of pool and resource."""
        found: Amounts = {}
        for (pool, resource), amount in amounts.items():
            kind = (self.supplies[pool], resource)
            found[kind] = found.get(kind, 0) + amount
        return found

    def share(self, node: Node, more: Amounts | None = None) -> Fraction:
        """The largest part of any kind, by weight."""
        held = self.kinds(node.usage)
        for kind, amount in (more or {}).items():
            held[kind] = held.get(kind, 0) + amount
        return (
            max(
                (
                    Fraction(amount, self.whole[kind]) if self.whole.get(kind) else Fraction(1)
                    for kind, amount in held.items()
                    if amount
                ),
                default=Fraction(0),
            )
            / node.weight
        )

    def is_covered(self, node: Node, cost: Amounts) -> bool:
        """Within the guarantee in each resource that it names and the claim asks for."""
        covered = False
        for keys, amount in self.bounds(node, "guaranteed") if node.facts is not None else []:
            asked = sum(cost.get(key, 0) for key in keys)
            if asked and asked + sum(node.usage.get(key, 0) for key in keys) > amount:
                return False
            covered = covered or asked > 0
        return covered

    def deserved(self, node: Node) -> dict[tuple[str, str], int]:
        """As it was worked out last, in parts of a unit."""
        known = self.state.deserved.get("deserved")
        is_own = node.parent is not None and node.parent.name == node.name
        amounts = known.amounts.get(node.name + "/" * is_own, {}) if known is not None else {}
        found = {}
        for name, amount in amounts.items():
            supply, _, resource = name.partition("/")
            found[(supply, resource)] = amount
        return found

    def deserves(self, node: Node, cost: Amounts) -> bool:
        held, deserved = self.kinds(node.usage), self.deserved(node)
        return all(
            (held.get(kind, 0) + amount) << 16 <= deserved.get(kind, 0) + self.slack(kind)
            for kind, amount in self.kinds(cost).items()
        )

    def slack(self, kind: tuple[str, str]) -> int:
        return ((self.whole.get(kind, 0) << 16) >> 30) + 1

    # ---- the choice

    def next_claim(self) -> tuple[str, tuple[str, ...]] | None:
        """The claim that is served next, and the pool of each of its parts."""
        found = self._best(self.root)
        return (found[0].key, found[1].pools) if found else None

    def _best(self, node: Node) -> tuple[Claim, Spot, int] | None:
        """The claim served next under a node, where, and in which class."""
        best: tuple[tuple[object, ...], tuple[Claim, Spot, int]] | None = None
        if not node.children:
            head = self.head(node)
            return (*head, self._class_of(node, head[1], DESERVED)) if head else None
        for child in node.children:
            found = self._best(child)
            if found is None:
                continue
            claim, _, at = found
            rank = (at, self.share(child), claim.place[0], claim.place[1], child.order)
            if best is None or rank < best[0]:
                best = rank, found
        if best is None:
            return None
        claim, spot, at = best[1]
        return claim, spot, at if node is self.root else self._class_of(node, spot, at)

    def _class_of(self, node: Node, spot: Spot, below: int) -> int:
        """Judged by the place where it would go."""
        if below == COVERED or self.is_covered(node, spot.cost):
            return COVERED
        return DESERVED if below == DESERVED and self.deserves(node, spot.cost) else BEYOND


def _spreads(allowed: list[list[str]]) -> list[tuple[str, ...]]:
    """A pool for each part: who has the fewest choices is the first to choose."""
    order = sorted(range(len(allowed)), key=lambda at: len(allowed[at]))
    return sorted(product(*allowed), key=lambda pools: [pools[at] for at in order])


def _like(facts: PodFacts) -> tuple[object, ...]:
    """What pods that are alike have in common."""
    return (tuple(sorted(facts.requests.items())), tuple(sorted(facts.node_selector.items())))


def minimum(workload: Workload, pod_set: object) -> int:
    return min(pod_set.min_count, still_to_run(workload, pod_set))  # type: ignore[attr-defined]


def still_to_run(workload: Workload, pod_set: object) -> int:
    """At once, of as many as it has pods, or completions if it has a number of them."""
    succeeded = workload.succeeded.get(pod_set.name, 0)  # type: ignore[attr-defined]
    completions = pod_set.count if pod_set.completions is None else pod_set.completions  # type: ignore[attr-defined]
    return max(0, min(pod_set.count, completions - succeeded))  # type: ignore[attr-defined]
