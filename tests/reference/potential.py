"""The potential of ADR 0011, slow and obvious: worked out of all that is held, before a move and after it.

Its parts, in this order: what is held within guarantees in whole units; what is held within what is deserved;
the ascending shares of the tree's levels, root first; the number of pods.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from reference.reference import Amounts, Node, Reference
from sluice_scheduler.core import State

#: What is deserved comes from floating point numbers.
_TOLERANCE = Fraction(64, 1 << 30)

Kinds = dict[tuple[str, str], int]

#: By the level of the node, the node, and the supplies and the resource that its guarantee names.
Guaranteed = dict[tuple[int, int, tuple[tuple[str, str], ...]], int]


def is_more(one: Guaranteed, other: Guaranteed) -> bool:
    """Level by level, of something more at the uppermost where any node holds another amount, and of nothing less at
    any."""
    changes = {key: one.get(key, 0) - other.get(key, 0) for key in {*one, *other}}
    levels = {level for (level, _, _), change in changes.items() if change}
    sums: dict[tuple[int, tuple[tuple[str, str], ...]], int] = {}
    for (level, _, kinds), change in changes.items():
        sums[level, kinds] = sums.get((level, kinds), 0) + change
    rises = any(change > 0 for (level, _), change in sums.items() if level == min(levels, default=0))
    return rises and all(change >= 0 for change in sums.values())


@dataclass(eq=False)
class Holding:
    """What can only be taken back together."""

    queue: str
    amounts: Amounts
    pods: int
    order: tuple[object, ...]  # the lowest is protected most
    admitted_ms: int
    seq: int  # of the decision
    since_ms: int | None = None  # if its first pod was admitted before the others


@dataclass
class Value:
    guaranteed: Guaranteed
    deserved: Fraction
    levels: list[list[Fraction]]
    pods: int

    def rises_to(self, after: Value) -> bool:
        if self.guaranteed != after.guaranteed:
            return is_more(after.guaranteed, self.guaranteed)
        if abs(after.deserved - self.deserved) > _TOLERANCE:
            return after.deserved > self.deserved
        if self.levels != after.levels:
            return after.levels > self.levels
        return after.pods > self.pods


def rank(state: State, claim: str, priority: int) -> tuple[bool, int]:
    """Whether a claim will be growth, and its priority: so it is protected once it holds, as the newest of its rank."""
    return claim not in state.workloads and not claim.startswith("group/"), -priority


class Potential:
    def __init__(self, reference: Reference, holdings: Iterable[Holding]) -> None:
        self._reference = reference
        self._holdings = list(holdings)

    def value(self, taken: Iterable[Holding] = (), added: Iterable[Holding] = ()) -> Value:
        held = self._after(taken, added)
        nodes = [node for node in self._below(self._reference.root) if node.parent is not None]
        levels: dict[int, list[Fraction]] = {}
        for node in nodes:
            levels.setdefault(len(node.path), []).append(self._share(node, held))
        return Value(
            guaranteed=self._guaranteed_in(nodes, held),
            deserved=sum((self._deserved(node, held) for node in nodes if not node.children), Fraction(0)),
            levels=[sorted(levels[depth]) for depth in sorted(levels)],
            pods=sum(each.pods for each in held),
        )

    def share(self, node: Node, taken: Iterable[Holding] = (), added: Iterable[Holding] = ()) -> Fraction:
        return self._share(node, self._after(taken, added))

    def surplus(
        self, node: Node, kind: tuple[str, str], taken: Iterable[Holding] = (), added: Iterable[Holding] = ()
    ) -> int:
        """So much more of a kind a branch holds than it deserves, by weight, in parts of a unit."""
        held = self._in(node, self._after(taken, added))
        amount = sum(self._reference.kinds(each.amounts).get(kind, 0) for each in held)
        return ((amount << 16) - self._reference.deserved(node).get(kind, 0)) // node.weight

    def _after(self, taken: Iterable[Holding], added: Iterable[Holding]) -> list[Holding]:
        gone = {id(each) for each in taken}
        return [*(each for each in self._holdings if id(each) not in gone), *added]

    def _below(self, node: Node) -> Iterable[Node]:
        yield node
        for child in node.children:
            yield from self._below(child)

    def _in(self, node: Node, held: list[Holding]) -> list[Holding]:
        """Under one node, those protected most first, one queue after the other."""
        leaves = [leaf for leaf in self._below(node) if not leaf.children]
        names = {id(leaf): name for name, leaf in self._reference.leaves.items()}
        return [
            each
            for leaf in leaves
            for each in sorted(
                (each for each in held if each.queue == names[id(leaf)]), key=lambda each: each.order
            )
        ]

    def _share(self, node: Node, held: list[Holding]) -> Fraction:
        sums: Kinds = {}
        for each in self._in(node, held):
            for kind, amount in self._reference.kinds(each.amounts).items():
                sums[kind] = sums.get(kind, 0) + amount
        parts = (self._part(kind, amount) for kind, amount in sums.items())
        return max(parts, default=Fraction(0)) / node.weight

    def _part(self, kind: tuple[str, str], amount: int) -> Fraction:
        whole = self._reference.whole.get(kind, 0)
        return Fraction(amount, whole) if whole else Fraction(amount > 0)

    def _guaranteed_in(self, nodes: Iterable[Node], held: list[Holding]) -> Guaranteed:
        return {
            (len(node.path), number, kinds): amount
            for number, node in enumerate(nodes)
            for kinds, amount in self._guaranteed(node, held).items()
        }

    def _guaranteed(self, node: Node, held: list[Holding]) -> dict[tuple[tuple[str, str], ...], int]:
        """A unit counts with what the guarantee names of it, if it fits into what is left of that."""
        reference = self._reference
        bounds = reference.bounds(node, "guaranteed") if node.facts is not None else []
        left = [amount for _, amount in bounds]
        total: dict[tuple[tuple[str, str], ...], int] = {}
        for each in sorted(self._in(node, held), key=lambda each: (each.admitted_ms, each.seq)):
            parts = [sum(each.amounts.get(key, 0) for key in keys) for keys, _ in bounds]
            if any(parts) and all(part <= rest for part, rest in zip(parts, left, strict=True)):
                left = [rest - part for part, rest in zip(parts, left, strict=True)]
                for part, (keys, _) in zip(parts, bounds, strict=True):
                    kinds = tuple(sorted({(reference.supplies[pool], resource) for pool, resource in keys}))
                    if part:
                        total[kinds] = total.get(kinds, 0) + part
        return total

    def _deserved(self, leaf: Node, held: list[Holding]) -> Fraction:
        """The lesser of what is held and deserved; after its tenure the unit that crosses counts nothing."""
        reference = self._reference
        deserved = reference.deserved(leaf)
        mine = self._in(leaf, held)
        sums: Kinds = {}
        for each in mine:
            for kind, amount in reference.kinds(each.amounts).items():
                sums[kind] = sums.get(kind, 0) + amount
        counted = sums
        if not self._is_within(sums, deserved):
            within, crossing = self._whole_units(mine, deserved)
            if crossing is not None and self._is_old(leaf, crossing):
                counted = within
        total = Fraction(0)
        for kind, amount in counted.items():
            if counted is sums:
                whole = reference.whole.get(kind, 0)
                allowed = min(amount << 16, deserved.get(kind, 0))
                total += Fraction(allowed, whole << 16) if whole else Fraction(allowed > 0)
            else:
                total += self._part(kind, amount)
        return total

    def _whole_units(self, mine: list[Holding], deserved: Kinds) -> tuple[Kinds, Holding | None]:
        within: Kinds = {}
        crossing = None
        for each in mine:
            with_it = dict(within)
            for kind, amount in self._reference.kinds(each.amounts).items():
                with_it[kind] = with_it.get(kind, 0) + amount
            if self._is_within(with_it, deserved):
                within = with_it
            elif crossing is None:
                crossing = each
        return within, crossing

    def _is_within(self, held: Kinds, deserved: Kinds) -> bool:
        return all(
            amount << 16 <= deserved.get(kind, 0) + self._reference.slack(kind)
            for kind, amount in held.items()
        )

    def _is_old(self, leaf: Node, unit: Holding) -> bool:
        state = self._reference.state
        names = {id(node): name for name, node in self._reference.leaves.items()}
        queue = next(queue for queue in state.queues if queue.name == names[id(leaf)])
        tenure_ms = queue.facts.tenure_ms
        if tenure_ms is None:
            tenure_ms = state.config.tenure_ms
        since_ms = unit.admitted_ms if unit.since_ms is None else unit.since_ms
        return bool(state.now_ms - since_ms >= tenure_ms)
