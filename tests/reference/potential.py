"""The potential of DESIGN's reclaim, slow and obvious: with exact fractions, from accounts alone.

What is saturated and who is blocked is fixed before the move; the resources that it takes count as not
saturated, the claimant's and the victims' queues as not blocked.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from reference.reference import Amounts, Node, Reference

Vector = dict[tuple[str, str], Fraction]


class Move:
    def __init__(
        self, reference: Reference, *, to: str, gained: Amounts, lost: list[tuple[str, Amounts]]
    ) -> None:
        self._reference = reference
        self.claimant = reference.leaves[to]
        self.victims = [reference.leaves[name] for name, _ in lost]
        self._changes: dict[int, Amounts] = {}
        self._change(self.claimant, gained, 1)
        for name, amounts in lost:
            self._change(reference.leaves[name], amounts, -1)
        open_leaves = {id(node) for leaf in (self.claimant, *self.victims) for node in leaf.path}
        nodes = list(self._nodes(reference.root))
        self._blocked = {id(n) for n in nodes if id(n) not in open_leaves and reference.is_blocked(n)}
        self._saturated = reference.saturated() - set(gained)
        self._gained = gained

    def _change(self, leaf: Node, amounts: Amounts, sign: int) -> None:
        for node in leaf.path:
            change = self._changes.setdefault(id(node), {})
            for key, amount in amounts.items():
                change[key] = change.get(key, 0) + sign * amount

    def _nodes(self, node: Node) -> Iterable[Node]:
        yield node
        for child in node.children:
            yield from self._nodes(child)

    def _usage(self, node: Node, *, after: bool) -> Amounts:
        change = self._changes.get(id(node), {}) if after else {}
        return {key: node.usage.get(key, 0) + change.get(key, 0) for key in node.usage.keys() | change.keys()}

    # ---- shares

    def vector(self, node: Node, *, after: bool) -> Vector:
        if not node.children:
            whole = self._reference.capacity
            usage = self._usage(node, after=after)
            return {k: Fraction(a, whole[k]) if whole.get(k) else Fraction(1) for k, a in usage.items() if a}
        free = [child for child in node.children if id(child) not in self._blocked]
        smallest = min((self.share(child, after=after) for child in free), default=Fraction(0))
        sums: Vector = {}
        for child in node.children:
            share = self.share(child, after=after)
            scale = Fraction(1) if child not in free else smallest / share if share else Fraction(0)
            for key, part in self.vector(child, after=after).items():
                sums[key] = sums.get(key, Fraction(0)) + part * scale
        return sums

    def share(self, node: Node, *, after: bool) -> Fraction:
        vector = self.vector(node, after=after)
        if node.children:
            vector = {key: part for key, part in vector.items() if key not in self._saturated}
        return max(vector.values(), default=Fraction(0)) / node.weight

    # ---- the judgement

    def shortfalls(self, *, after: bool) -> dict[tuple[str, int], int]:
        found = {}
        for node in self._nodes(self._reference.root):
            if node.facts is not None:
                usage = self._usage(node, after=after)
                for number, (keys, amount) in enumerate(self._reference.bounds(node, "guaranteed")):
                    # What nobody asks for is not short: only the change by the move is looked at.
                    found[(node.name, number)] = max(0, amount - sum(usage.get(key, 0) for key in keys))
        return found

    def robs_a_guarantee(self) -> bool:
        before, after = self.shortfalls(after=False), self.shortfalls(after=True)
        return any(after[name] > before[name] for name in before)

    def mends_a_guarantee(self) -> bool:
        before, after = self.shortfalls(after=False), self.shortfalls(after=True)
        return any(after[name] < before[name] for name in before)

    def robs_somebody_poorer(self) -> bool:
        for victim in self.victims:
            above = {id(node) for node in self.claimant.path}
            theirs = next(node for node in victim.path if id(node.parent) in above)
            mine = next(node for node in self.claimant.path if node.parent is theirs.parent)
            if self.share(mine, after=True) >= self.share(theirs, after=False):
                return True
        return False

    def levels(self, *, after: bool) -> list[list[Fraction]]:
        """The ascending share vectors of the tree's levels, root first; all branches of each."""
        by_depth: dict[int, list[Fraction]] = {}
        for node in self._nodes(self._reference.root):
            if node.parent is not None:
                by_depth.setdefault(len(node.path), []).append(self.share(node, after=after))
        return [sorted(by_depth[depth]) for depth in sorted(by_depth)]
