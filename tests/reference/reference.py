"""The executable reference: slow and obvious. From the entities alone, with exact fractions and from nothing,
it computes whose turn it is; tests compare every choice of the fast core with it.

It knows drf, both orderings, gangs, pod groups, plain pods, growth, guarantees and limits, several pools,
evictions and promises.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product

from sluice.quantities import is_percent, parse_percent, to_base_units
from sluice_scheduler.core import State
from sluice_scheduler.core.stored.accounts import Pod, Workload

Amounts = dict[tuple[str, str], int]  # (pool, resource) → amount


@dataclass
class Claim:
    key: str
    place: tuple[object, ...]
    parts: list[tuple[int, dict[str, int], dict[str, str]]]  # pods, requests of each, node selector


@dataclass
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
        for pod in self.state.pods:
            if pod.phase in ("Assumed", "Holding"):
                self._hold(pod)
            elif pod.phase == "Waiting" and not (pod.problem or pod.facts.deleting or pod.retry_ms):
                self._await(pod)
        for group, pods in self.groups.items():
            self._line_up_group(group, pods)
        for workload in self.workloads.values():
            if workload.admitted:
                self._reserve(workload)
            elif not (workload.problem or workload.retry_ms or workload.key in self.promised):
                self._line_up_gang(workload)
        self._promise()

    def _promise(self) -> None:
        for promise in self.state.promises:
            for node in self.leaves[promise.queue].path:
                for _, pool, resource, amount in promise.cost:
                    node.usage[(pool, resource)] = node.usage.get((pool, resource), 0) + amount
                    node.leaving[(pool, resource)] = node.leaving.get((pool, resource), 0) - amount

    def _hold(self, pod: Pod) -> None:
        self._charge(pod.queue, pod.pool, pod.facts.requests, pods=1, leaving=pod.evicting > 0)
        workload = self.workloads.get((pod.namespace, pod.facts.workload))
        if workload is not None and not pod.evicting:
            key = (workload.key, pod.facts.pod_set)
            self.holding[key] = self.holding.get(key, 0) + 1
        elif pod.facts.group_size and not pod.evicting:
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
        parts = [(1, f.requests, f.node_selector) for f in facts]
        self.leaves[pods[0].queue].claims.append(Claim(key, place, parts))

    def _line_up(self, pod: Pod) -> None:
        if pod.key in self.promised:
            return
        facts = pod.facts
        place: tuple[object, ...] = (-facts.priority, facts.created_ms, pod.namespace, pod.uid)
        if facts.workload and not facts.group_size:
            workload = self.workloads.get((pod.namespace, facts.workload))
            if workload is None or not workload.admitted:
                return
            first = (-workload.facts.priority, workload.facts.created_ms, pod.namespace, workload.uid)
            place = (*first, facts.created_ms, pod.uid)
        claim = Claim(pod.key, place, [(1, facts.requests, facts.node_selector)])
        self.leaves[pod.queue].claims.append(claim)

    def _reserve(self, workload: Workload) -> None:
        for pod_set in workload.facts.pod_sets:
            granted = min(minimum(workload, pod_set), workload.granted.get(pod_set.name, 0))
            missing = granted - self.holding.get((workload.key, pod_set.name), 0)
            if missing > 0:
                pool = workload.pools[pod_set.name]
                self._charge(workload.queue, pool, pod_set.requests, pods=missing)

    def _line_up_gang(self, workload: Workload) -> None:
        facts = workload.facts
        parts = [(minimum(workload, s), s.requests, s.node_selector) for s in facts.pod_sets]
        if any(pods for pods, _, _ in parts):
            place = (-facts.priority, facts.created_ms, workload.namespace, workload.uid)
            claim = Claim(workload.key, place, [part for part in parts if part[0]])
            self.leaves[workload.queue].claims.append(claim)

    def _charge(
        self, queue: str, pool: str, requests: dict[str, int], *, pods: int, leaving: bool = False
    ) -> None:
        for node in self.leaves[queue].path:
            amounts = node.leaving if leaving else node.usage
            for resource, amount in requests.items():
                amounts[(pool, resource)] = amounts.get((pool, resource), 0) + amount * pods

    # ---- what fits

    def options(self, claim: Claim) -> list[Amounts]:
        """Costs of the ways to place a claim: all in one pool by name, or each part where it may go."""
        pools = sorted({pool for pool, _ in self.capacity})
        allowed = [
            [p for p in pools if selector.items() <= {"pool": p}.items()] for _, _, selector in claim.parts
        ]
        common = [(p,) * len(allowed) for p in pools if all(p in each for each in allowed)]
        return [self._cost(claim, choice) for choice in common or product(*allowed)]

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
        for resource, text in getattr(node.facts, what).items():
            keys = [key for key in self.capacity if key[1] == resource]
            if is_percent(text):
                found += [([key], int(parse_percent(text) * self.capacity[key])) for key in keys]
            elif keys:
                found.append((keys, to_base_units(resource, text)))
        return found

    def fits(self, leaf: Node, cost: Amounts) -> bool:
        if any(key not in self.capacity for key in cost):
            return False
        for node in leaf.path:
            for keys, most in self.bounds(node, "limit"):
                asked = sum(cost.get(key, 0) for key in keys)
                held = sum(node.usage.get(key, 0) + max(0, node.leaving.get(key, 0)) for key in keys)
                if asked and held + asked > most:
                    return False
        return True

    def head(self, leaf: Node) -> tuple[Claim, Amounts] | None:
        claims = sorted(leaf.claims, key=lambda claim: claim.place)
        if leaf.strict:
            claims = claims[:1]
        for claim in claims:
            for cost in self.options(claim):
                if self.fits(leaf, cost):
                    return claim, cost
        return None

    # ---- shares

    def saturated(self) -> set[tuple[str, str]]:
        asked: dict[tuple[str, str], list[int]] = {key: [] for key in self.capacity}
        for leaf in self.leaves.values():
            for claim in leaf.claims:
                for cost in self.options(claim):
                    for key, amount in cost.items():
                        asked.setdefault(key, []).append(amount)
        found = set()
        for key, most in self.capacity.items():
            left = most - self.root.usage.get(key, 0) - max(0, self.root.leaving.get(key, 0))
            if left <= 0 or (asked[key] and min(asked[key]) > left):
                found.add(key)
        return found

    def is_blocked(self, node: Node) -> bool:
        if node.children:
            return all(self.is_blocked(child) for child in node.children)
        return self.head(node) is None

    def vector(self, node: Node) -> dict[tuple[str, str], Fraction]:
        if not node.children:
            return {
                key: Fraction(amount, self.capacity[key]) if self.capacity.get(key) else Fraction(1)
                for key, amount in node.usage.items()
                if amount
            }
        sums: dict[tuple[str, str], Fraction] = {}
        free = [child for child in node.children if not self.is_blocked(child)]
        smallest = min((self.share(child) for child in free), default=Fraction(0))
        for child in node.children:
            share = self.share(child)
            scale = Fraction(1) if child not in free else smallest / share if share else Fraction(0)
            for key, part in self.vector(child).items():
                sums[key] = sums.get(key, Fraction(0)) + part * scale
        return sums

    def share(self, node: Node) -> Fraction:
        vector = self.vector(node)
        if node.children:
            saturated = self.saturated()
            if len(saturated) < len(self.capacity):
                vector = {key: part for key, part in vector.items() if key not in saturated}
        return max(vector.values(), default=Fraction(0)) / node.weight

    def is_covered(self, node: Node, cost: Amounts) -> bool:
        bounds = self.bounds(node, "guaranteed") if node.facts is not None else []
        covered: set[tuple[str, str]] = set()
        for keys, amount in bounds:
            asked = sum(cost.get(key, 0) for key in keys)
            if asked and asked + sum(node.usage.get(key, 0) for key in keys) > amount:
                return False
            if asked:
                covered.update(keys)
        return bool(bounds) and all(key in covered for key in cost)

    # ---- the choice

    def next_claim(self) -> str | None:
        found = self._best(self.root)
        return found[0].key if found else None

    def _best(self, node: Node) -> tuple[Claim, Amounts, bool] | None:
        """The claim served next under a node, and whether a guarantee at or below it covers the claim."""
        if not node.children:
            head = self.head(node)
            return (*head, self.is_covered(node, head[1])) if head else None
        best: tuple[tuple[object, ...], tuple[Claim, Amounts, bool]] | None = None
        for child in node.children:
            found = self._best(child)
            if found is None:
                continue
            claim, _, covered = found
            rank = (not covered, self.share(child), claim.place[0], claim.place[1], child.order)
            if best is None or rank < best[0]:
                best = rank, found
        if best is None:
            return None
        claim, cost, covered = best[1]
        return claim, cost, covered or (node.facts is not None and self.is_covered(node, cost))


def minimum(workload: Workload, pod_set: object) -> int:
    """Completions equal the count here: whoever has succeeded counts towards the minimum."""
    succeeded = workload.succeeded.get(pod_set.name, 0)  # type: ignore[attr-defined]
    return max(0, pod_set.min_count - succeeded)  # type: ignore[attr-defined]
