"""The moves that ADR 0011 allows, found by trying all sets of victims: slow, and for small cells only.

A claim may be the cause of a move if a guarantee covers it, or if its leaf has less than it deserves of every kind
that it asks for. The units that leave make room for it; the potential rises strictly, also by what else deserved
then fits; nobody poorer is robbed; a unit within a guarantee goes only if more becomes held within guarantees.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import NamedTuple

from reference.potential import Guaranteed, Holding, Potential, is_more, rank
from reference.reference import Amounts, Claim, Node, Reference

#: Admitted last of all: of its rank it is protected least.
_NEWEST = 1 << 40


@dataclass(eq=False)
class Victim:
    """What leaves together: a gang with the growth that stands on it, or a pod of growth."""

    holdings: list[Holding]
    leaf: str
    ripe: bool = True
    application: str = ""
    is_gang: bool = False

    @property
    def amounts(self) -> Amounts:
        sums: Amounts = {}
        for holding in self.holdings:
            for key, amount in holding.amounts.items():
                sums[key] = sums.get(key, 0) + amount
        return sums


class Found(NamedTuple):
    claim: str
    pools: tuple[str, ...]
    victims: list[Victim]


class Moves:
    def __init__(self, reference: Reference, victims: list[Victim], now_ms: int) -> None:
        self._reference = reference
        self._now_ms = now_ms
        self._victims = victims
        unique = {id(each): each for victim in victims for each in victim.holdings}
        self._potential = Potential(reference, unique.values())

    def first(self) -> Found | None:
        """A move that is allowed, if there is any."""
        for leaf in self._reference.leaves.values():
            for claim in _tried(leaf):
                for spot in self._reference.spots(claim):
                    for victims in self._smallest_sets(leaf, claim, spot.cost):
                        if self._is_allowed(leaf, claim, spot.cost, victims):
                            return Found(claim.key, spot.pools, victims)
        return None

    # ---- who leaves

    def _smallest_sets(self, leaf: Node, claim: Claim, cost: Amounts) -> Iterator[list[Victim]]:
        """Sets that make room for the claim, and none of whose parts would."""
        if not self._may_push(leaf, cost):
            return
        usable = [each for each in self._victims if self._may_lose(leaf, each)]
        found: list[set[int]] = []
        for size in range(1, len(usable) + 1):
            for chosen in combinations(usable, size):
                ids = {id(each) for each in chosen}
                if any(smaller <= ids for smaller in found) or not _is_whole(chosen):
                    continue
                if self._fits(leaf, claim, cost, list(chosen)):
                    found.append(ids)
                    yield list(chosen)

    def _may_push(self, leaf: Node, cost: Amounts) -> bool:
        reference = self._reference
        if any(reference.is_covered(node, cost) for node in leaf.path):
            return True
        held, deserved = reference.kinds(leaf.usage), reference.deserved(leaf)
        return all(
            deserved.get(kind, 0) - (held.get(kind, 0) << 16) > reference.slack(kind)
            for kind in reference.kinds(cost)
        )

    def _may_lose(self, leaf: Node, victim: Victim) -> bool:
        theirs = self._reference.leaves[victim.leaf]
        if theirs is leaf or not victim.ripe:
            return False
        shared = {id(node) for node in leaf.path}
        # An inner queue's own pods are what its Queue says, whoever asks for them.
        facts = [
            (node.facts or node.parent.facts)
            for node in theirs.path
            if node.parent and id(node) not in shared
        ]
        return all(each.reclaim for each in facts)  # type: ignore[attr-defined]

    def _fits(self, leaf: Node, claim: Claim, cost: Amounts, gone: list[Victim]) -> bool:
        reference = self._reference
        for node in leaf.path:
            for keys, most in reference.bounds(node, "limit"):
                asked = sum(cost.get(key, 0) for key in keys)
                freed = sum(
                    sum(victim.amounts.get(key, 0) for key in keys)
                    for victim in gone
                    if node in reference.leaves[victim.leaf].path
                )
                if asked and asked > reference.left(node, keys, most, claim.key) + freed:
                    return False
        return True

    # ---- whether they may

    def _is_allowed(self, leaf: Node, claim: Claim, cost: Amounts, victims: list[Victim]) -> bool:
        lost = list({id(each): each for victim in victims for each in victim.holdings}.values())
        came = [self._holding(leaf, claim, cost, 0)]
        before = self._potential.value()
        after = self._potential.value(lost, came)
        if any(self._robs(leaf, victim, lost, came) for victim in victims):
            return False
        if not any(self._spares_deserved(leaf, claim, cost, list(each)) for each in permutations(victims)):
            return False
        if is_more(after.guaranteed, before.guaranteed):
            return True
        if self._is_in_guarantee(lost, before.guaranteed):
            return False
        return before.rises_to(
            self._potential.value(lost, [*came, *self._let_in(leaf, claim, victims, came)])
        )

    def _holding(self, leaf: Node, claim: Claim, cost: Amounts, number: int) -> Holding:
        pods = sum(part[0] for part in claim.parts)
        names = {id(node): name for name, node in self._reference.leaves.items()}
        order = (*rank(self._reference.state, claim.key, claim.priority), _NEWEST + number)
        return Holding(names[id(leaf)], cost, pods, order, self._now_ms, _NEWEST + number)

    def _is_in_guarantee(self, lost: list[Holding], guaranteed: Guaranteed) -> bool:
        return self._potential.value(lost).guaranteed != guaranteed

    def _spares_deserved(self, leaf: Node, claim: Claim, cost: Amounts, victims: list[Victim]) -> bool:
        """Whether each unit, in this order, is taken from branches that have more than they deserve of something in it
        (the last one may straddle), or for a claim that stays within what its own branches deserve or had less than is
        left to them. Of what a guarantee owes the claim nothing is asked."""
        reference, above = self._reference, {id(node) for node in leaf.path}
        gone: list[Holding] = []
        lost = [holding for victim in victims for holding in victim.holdings]
        mine = self._holding(leaf, claim, cost, 0)
        for victim in victims:
            kinds = reference.kinds(victim.amounts)
            theirs = {id(node) for node in reference.leaves[victim.leaf].path}
            is_within = all(
                self._potential.surplus(node, k, (), [mine]) <= reference.slack(k)
                for node in leaf.path
                if id(node) not in theirs
                for k in reference.kinds(cost)
            )
            for node in reference.leaves[victim.leaf].path:
                if id(node) in above or is_within or self._is_owed(leaf, victim, cost):
                    continue
                if self._was_poorer(leaf, reference.leaves[victim.leaf], lost):
                    continue
                if not any(self._potential.surplus(node, k, gone) > reference.slack(k) for k in kinds):
                    return False
            gone += victim.holdings
        return True

    def _was_poorer(self, leaf: Node, other: Node, lost: list[Holding]) -> bool:
        """Whether the claim's branch held less, by share, than the other will, right under what is above both."""
        above = {id(node) for node in leaf.path} & {id(node) for node in other.path}
        mine = [node for node in leaf.path if id(node) not in above][-1]
        theirs = [node for node in other.path if id(node) not in above][-1]
        return self._potential.share(mine) < self._potential.share(theirs, lost)

    def _is_owed(self, leaf: Node, victim: Victim, cost: Amounts) -> bool:
        """By a guarantee in which the victim has no part."""
        shared = {id(node) for node in self._reference.leaves[victim.leaf].path}
        return any(id(n) not in shared and self._reference.is_covered(n, cost) for n in leaf.path)

    def _robs(self, leaf: Node, victim: Victim, lost: list[Holding], came: list[Holding]) -> bool:
        """Whether the claimant's branch would have as much as the victim's had, though it would be above what it
        deserves, or the victim's had no more than it deserves. What a guarantee covers is owed by all who have no part
        in that guarantee."""
        potential, reference = self._potential, self._reference
        if self._is_owed(leaf, victim, came[0].amounts):
            return False
        above = {id(node) for node in leaf.path}
        theirs = next(n for n in reference.leaves[victim.leaf].path if id(n.parent) in above)
        mine = next(node for node in leaf.path if node.parent is theirs.parent)
        if potential.share(mine, lost, came) < potential.share(theirs):
            return False
        kinds = reference.kinds(came[0].amounts)
        stays = all(potential.surplus(mine, k, lost, came) <= reference.slack(k) for k in kinds)
        had_more = any(potential.surplus(theirs, k) > reference.slack(k) for k in kinds)
        return not (stays and had_more)

    def _let_in(self, leaf: Node, claim: Claim, victims: list[Victim], came: list[Holding]) -> list[Holding]:
        """What else deserved then fits: of the claimant's line first, then of others by what they lack. Growth of
        who leaves whole waits with it."""
        reference = self._reference
        ended = {victim.application for victim in victims if victim.is_gang}
        others = sorted((each for each in reference.leaves.values() if each is not leaf), key=reference.share)
        found: list[Holding] = []
        for each in (leaf, *others):
            for other in sorted(each.claims, key=lambda other: other.place):
                if other.key == claim.key or other.grows in ended:
                    continue
                for spot in reference.spots(other):
                    if self._also_fits(each, other, spot.cost, victims, [*came, *found]):
                        found.append(self._holding(each, other, spot.cost, len(found) + 1))
                        break
                else:
                    if each.strict:
                        break
        return found

    def _also_fits(
        self, leaf: Node, claim: Claim, cost: Amounts, gone: list[Victim], came: list[Holding]
    ) -> bool:
        """Beside who came, and so that each branch on its path stays within what it deserves."""
        reference = self._reference
        lost = list({id(each): each for victim in gone for each in victim.holdings}.values())
        mine = self._holding(leaf, claim, cost, 0)
        for node in leaf.path:
            inside = [each for each in came if node in reference.leaves[each.queue].path]
            for keys, most in reference.bounds(node, "limit"):
                asked = sum(cost.get(key, 0) for key in keys)
                taken = sum(each.amounts.get(key, 0) for each in inside for key in keys)
                freed = sum(
                    victim.amounts.get(key, 0)
                    for victim in gone
                    if node in reference.leaves[victim.leaf].path
                    for key in keys
                )
                if asked and asked + taken > reference.left(node, keys, most, claim.key) + freed:
                    return False
            for kind in reference.kinds(cost) if node.parent is not None else ():
                if self._potential.surplus(node, kind, lost, [*came, mine]) > reference.slack(kind):
                    return False
        return True


def _tried(leaf: Node) -> list[Claim]:
    """The first claim of each kind; nobody passes the first of a strict line."""
    claims = sorted(leaf.claims, key=lambda claim: claim.place)
    if leaf.strict:
        return claims[:1]
    seen: dict[str, Claim] = {}
    for claim in claims:
        seen.setdefault(repr(sorted(map(repr, claim.parts))), claim)
    return list(seen.values())


def _is_whole(chosen: tuple[Victim, ...]) -> bool:
    """A gang takes its growth along: growth beside its own gang is counted with that."""
    gangs = {victim.application for victim in chosen if victim.is_gang}
    return not any(victim.application in gangs for victim in chosen if not victim.is_gang)
