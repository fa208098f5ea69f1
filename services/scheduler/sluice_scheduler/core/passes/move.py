"""One move: a claim, and what has to leave so that it fits.

It is tried on paper and judged (potential.py). If one set of victims is judged wrong, others are tried.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from typing import Final

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.branch import Branch, below_common, up_to
from sluice_scheduler.core.fairness.claims import Claim, Cost, Kind, Shape, Spot
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import TOLERANCE
from sluice_scheduler.core.passes.paper import Paper
from sluice_scheduler.core.passes.potential import came_of, levels_rise
from sluice_scheduler.core.passes.search import Search
from sluice_scheduler.core.passes.session import LOST_WORK, Session
from sluice_scheduler.core.passes.spared import have_an_order
from sluice_scheduler.core.passes.turns import served
from sluice_scheduler.core.passes.why_taken import why_by_priority, why_by_shares, why_owed
from sluice_scheduler.core.state.members import priority_of
from sluice_scheduler.core.state.promises import give_up, make_promise, promised_cost
from sluice_scheduler.core.state.rounds import place_of
from sluice_scheduler.core.state.turns import turn_ends_ms
from sluice_scheduler.core.state.units import Unit, unit_keys
from sluice_scheduler.core.stored.entities import Promise

#: A promise is given up so long after its victims should have been deleted.
PATIENCE_MS: Final = 60_000
#: So many victims are tried by themselves: those that waste least, and as many of the others in each round.
_SINGLES_MAX: Final = 2
#: So many claims are let in on paper when a move is judged.
_LET_IN_MAX: Final = 512
#: Of so many shapes at most it is looked at each whether it fits into what victims leave.
_SHAPES_MAX: Final = 64


class Move:
    """A claim, and what has to leave so that it fits."""

    def __init__(self, session: Session, leaf: Branch, claim: Claim, spot: Spot, *, spares: bool) -> None:
        """`spares`: it takes nothing that somebody deserves, for nobody."""
        self._spares = spares
        self._session = session
        self._state = session.state
        self._forest = session.state.forest
        self._leaf = leaf
        self._claim = claim
        self._spot = spot
        self._asked = [kind for kind, _ in spot.kinds]
        self._rooms = self._forest.rooms_for(leaf, spot.cost)
        self._covering = leaf.covering(spot.cost)
        self._before = Paper(self._forest)
        self._paper = Paper(self._forest, claim=claim.key)
        self._paper.move(leaf, spot.cost, 1)
        self._search = self._new_search()
        self._broken: list[Promise] = []
        self._inside = False
        self._outside = bool(self._covering)  # what a guarantee covers is looked for outside it first

    @property
    def taken(self) -> Collection[Unit]:
        return self._search.taken

    def _new_search(self, *, within: Branch | None = None) -> Search:
        """`within`: the claim's own queue, to search that alone."""
        return Search(
            self._state,
            self._session.budget,
            self._session.ranking,
            paper=self._paper,
            short=self._short_rooms,
            may_take_from=self._may_take_from,
            rest_may_give=self._rest_may_give,
            may_take=self._may_preempt if within else self._may_take,
            ripe_since_ms=self._session.ripe_since_ms,
            avoid=None if within else self._leaf,
            within=within,
        )

    def _short_rooms(self) -> Iterator[Room]:
        """Rooms that would be overfull, those nearest to the queue first. Who leaves is counted out."""
        return (room for room, _ in self._rooms if self._paper.missing(room) > 0)

    # ---- the search

    def find(self) -> bool:
        if any(need > room.bound.amount for room, need in self._rooms):
            return False  # it could not fit if everybody left
        if next(self._short_rooms(), None) is None:
            return self._is_due()  # it fits when those are gone who leave already
        if self._is_due():
            self._spares |= self._fits_into_what_is_kept()
            if self._between_queues():
                return True
            if self._outside:
                self._outside = False
                self._search = self._new_search()
                if self._between_queues():
                    return True
        return self._inside_queue()

    def _fits_into_what_is_kept(self) -> bool:
        """Whether the claim would fit, were room not kept for others: nobody loses what he deserves for that."""
        return not self._covering and all(self._paper.missing(room) <= room.kept for room, _ in self._rooms)

    def _is_due(self) -> bool:
        """Whether shares, or a guarantee, speak for the claim."""
        if self._covering:
            return True
        if not any(scope.policy.reclaims for scope in self._leaf.path[1:]):
            return False
        return self._leaf.is_owed(self._spot.kinds, self._forest.whole)

    def _between_queues(self) -> bool:
        search = self._search
        if any(self._is_right() for _ in search.small_sets()):
            return True
        if not search.met_any:
            return False  # nor will it by units of other sizes
        enough = search.enough_by_itself()
        last = [unit for unit in enough if unit.is_whole and self._state.units_of(unit.leaf.name).growth]
        if self._by_itself([unit for unit in enough if unit not in last]):
            return True
        if search.any_units() and self._is_right():
            return True
        search.give_back_all()
        return self._by_itself(last) or any(self._is_right() for _ in search.all_sets())

    def _by_itself(self, units: list[Unit]) -> bool:
        """Whether one of these is a right move."""
        for unit in self._some_of(units):
            self._search.take(unit)
            if self._is_right():
                return True
            self._search.give_back_all()
        return False

    def _some_of(self, units: list[Unit]) -> list[Unit]:
        first, others = units[:_SINGLES_MAX], units[_SINGLES_MAX:]
        if len(others) > _SINGLES_MAX:
            self._session.budget.leaves_out = True
            begin = place_of(self._state.cell.rounds, len(others))
            others = (others[begin:] + others[:begin])[:_SINGLES_MAX]
        return first + others

    def _may_take_from(self, branch: Branch) -> bool:
        if branch in self._leaf.path:
            return not self._outside or any(branch in covering.path[1:] for covering in self._covering)
        if self._session.is_closed(branch):
            return False
        if self._is_owed_by(branch):
            return True
        if branch.is_leaf and self._session.is_worked_out(branch):
            return False
        mine, theirs = below_common(self._leaf, branch)
        assert mine.parent is not None
        if not any(scope.policy.reclaims for scope in mine.parent.path):
            return False
        return self._stays_poorer(mine, theirs) or self._may_come_back(mine, theirs)

    def _rest_may_give(self, scope: Branch, share: int, kinds: Collection[Kind]) -> bool:
        """Whether a child of a branch may give something that has no larger share, nor too much of any other kinds."""
        path = self._leaf.path
        if self._covering or scope not in path[1:]:
            return True
        mine = path[path.index(scope) - 1]
        return self._paper.share(mine) < share or any(kind in kinds for kind in self._asked)

    def _stays_poorer(self, mine: Branch, theirs: Branch) -> bool:
        """Whether the claimant's branch would stay below the other; or within what it deserves, and the other not."""
        if self._paper.share(mine) < theirs.share:
            return True
        return self._before.is_above(theirs, self._asked) and not self._paper.is_above(mine, self._asked)

    def _may_come_back(self, mine: Branch, theirs: Branch) -> bool:
        """Whether the claimant's branch has too much only of kinds that somebody must still give in another room. That
        may be one of its own pods."""
        if not self._before.is_above(theirs, self._asked):
            return False
        later = islice(self._short_rooms(), 1, None)
        comes = {self._forest.kind_of(dim) for room in later for dim in room.bound.dims}
        return all(kind in comes or not self._paper.is_above(mine, (kind,)) for kind in self._asked)

    def _may_take(self, unit: Unit) -> bool:
        if not self._session.ripens.has(unit.ripe_ms):
            return False
        if self._is_owed_by(unit.leaf):
            return True
        if not self._session.ripens.has(turn_ends_ms(self._state, unit_keys(unit))):
            return False
        return LOST_WORK in self._session.lifted or self._search.is_within_lost_work(unit)

    def _is_owed_by(self, victim: Branch) -> bool:
        """Whether a guarantee covers the claim in which the victim has no part. One that both share is as much the
        victim's: they would take the same from each other for ever."""
        if not self._covering or victim in self._leaf.path:
            return False
        mine, _ = below_common(self._leaf, victim)
        return any(mine in covering.path for covering in self._covering)

    def _inside_queue(self) -> bool:
        queue = self._leaf.queue
        if queue is None or queue.facts.preemption != "lowerPriority":
            return False
        self._inside = True
        self._break_promises()
        if next(self._short_rooms(), None) is None:
            return bool(self._broken)
        self._search = self._new_search(within=self._leaf)
        return self._search.any_units()

    def _may_preempt(self, unit: Unit) -> bool:
        return unit.priority < self._claim.priority and self._session.ripens.has(unit.ripe_ms)

    def _break_promises(self) -> None:
        """A claim of higher priority takes over what is held for a lower one in its queue."""
        for promise in sorted(self._state.promises, key=attrgetter("made"), reverse=True):
            if (
                promise.queue == self._leaf.name
                and priority_of(self._state, promise.claim) < self._claim.priority
            ):
                if next(self._short_rooms(), None) is None:
                    return
                self._paper.move(self._leaf, promised_cost(promise), -1)
                self._broken.append(promise)

    # ---- judgement

    def _is_right(self) -> bool:
        """Whether the move raises the potential strictly, and robs nobody poorer."""
        taken, worth = self.taken, self._session.worth
        if self._spares and not self._spares_deserved():
            return False
        rise = worth.rise_of_guaranteed(taken, self._covering_then(), self._spot.cost)
        if rise:
            return rise > 0
        if any(self._robs(victim) for victim in dict.fromkeys(unit.leaf for unit in taken)):
            return False
        if not self._spares_deserved():
            return False
        let_in = self._let_in()
        rise = self._rise_of_deserved(let_in) or levels_rise(self._before, self._paper)
        pods = self._claim.shape.pods + sum(claim.shape.pods for _, claim, _ in let_in)
        for leaf, _, cost in let_in:
            self._paper.move(leaf, cost, -1)
        return rise > 0 or (rise == 0 and pods > sum(len(unit.pods) for unit in taken))

    def _covering_then(self) -> list[Branch]:
        """The branches within whose guarantees the claim stands once the victims are gone: those that cover it
        now, and those that do because it takes the place of a victim below them."""
        path, covering = self._leaf.path, self._covering
        return [
            each for each in path if each in covering or (each.guarantees and self._covers_on_paper(each))
        ]

    def _covers_on_paper(self, branch: Branch) -> bool:
        asked = [bound for bound in branch.guarantees if bound.part(self._spot.cost)]
        return bool(asked) and all(self._paper.used(branch, bound) <= bound.amount for bound in asked)

    def _robs(self, victim: Branch) -> bool:
        if self._is_owed_by(victim):
            return False
        return not self._stays_poorer(*below_common(self._leaf, victim))

    def _spares_deserved(self) -> bool:
        """Whether nobody loses what he deserves, but in a unit that straddles or to a claim that may have it."""
        return have_an_order(self._forest, self.taken, must_be_above=self._must_be_above)

    def _must_be_above(self, unit: Unit) -> tuple[Branch, ...]:
        mine, theirs = below_common(self._leaf, unit.leaf)
        if not self._spares and (self._is_owed_by(unit.leaf) or self._may_have_deserved(mine, theirs)):
            return ()
        return up_to(theirs, unit.leaf)

    def _may_have_deserved(self, mine: Branch, theirs: Branch) -> bool:
        """A claimant may have what others deserve if it stays within what it deserves, or had less than they keep."""
        if self._before.share(mine) < self._paper.share(theirs):
            return True
        return not any(self._paper.is_above(branch, self._asked) for branch in up_to(mine, self._leaf))

    def _rise_of_deserved(self, let_in: list[tuple[Branch, Claim, Cost]]) -> int:
        worth, rise = self._session.worth, 0
        came = [(self._leaf, self._claim, self._spot.cost), *let_in]
        for leaf in self._paper.touched:
            if leaf.is_leaf:
                mine = [came_of(self._state, claim, cost) for other, claim, cost in came if other is leaf]
                after = worth.deserved(self._paper, leaf, self.taken, mine)
                rise += after - worth.deserved(self._before, leaf, ())
        return 0 if abs(rise) <= TOLERANCE * len(self._paper.touched) else rise

    def _let_in(self) -> list[tuple[Branch, Claim, Cost]]:
        """Other claims that are deserved and fit on paper into what victims leave, those of its own line first."""
        fits_exactly = all(self._paper.missing(room) == 0 for room, _ in self._rooms)
        if fits_exactly and not self._search.takes_others(self._spot.cost):
            return []
        found: list[tuple[Branch, Claim, Cost]] = []
        kind = self._spot.kinds[0][0]
        by_leaf = self._shapes_that_fit()
        others = [leaf for leaf in by_leaf if leaf is not self._leaf]
        others.sort(key=lambda leaf: (self._before.surplus(leaf, kind), leaf.order))
        for leaf in (self._leaf, *others):
            shapes = by_leaf.get(leaf, {})
            for claim in islice(leaf.line.in_order(shapes), _LET_IN_MAX - len(found)):
                if claim is self._claim or self._search.takes_whole(claim):
                    continue
                self._session.budget.spend(len(found) % 8 == 0)
                cost = self._fits_on_paper(leaf, claim) if claim.shape in shapes else None
                if cost is not None:
                    self._paper.move(leaf, cost, 1)
                    found.append((leaf, claim, cost))
                else:
                    shapes.pop(claim.shape, None)
                    if leaf.line.strict or not shapes:
                        break
        return found

    def _shapes_that_fit(self) -> dict[Branch, dict[Shape, None]]:
        """The shapes that the pools have room for on paper, by the queues where such claims wait. Where there are many
        shapes, only those of which a queue's first claim is."""
        shapes: Iterable[Shape] = self._forest.shapes.values()
        if len(self._forest.shapes) > _SHAPES_MAX:
            firsts = (leaf.line.first() for leaf in self._forest.leaves.values())
            shapes = dict.fromkeys(first.shape for first in firsts if first is not None)
            self._session.budget.spend(len(self._forest.leaves) // 32)
        found: dict[Branch, dict[Shape, None]] = {}
        for shape in shapes:
            if any(
                all(self._paper.missing_beside(room) + need <= 0 for room, need in spot.needs)
                for spot in self._forest.spots_of(shape)
            ):
                for leaf in shape.lines:
                    found.setdefault(leaf, {})[shape] = None
        return found

    def _fits_on_paper(self, leaf: Branch, claim: Claim) -> Cost | None:
        for spot in self._forest.spots_of(claim.shape):
            if any(
                self._paper.missing_beside(room) + need > 0
                for room, need in self._forest.rooms_for(leaf, spot.cost)
            ):
                continue
            self._paper.move(leaf, spot.cost, 1)
            above = any(
                self._paper.is_above(branch, (kind for kind, _ in spot.kinds)) for branch in leaf.path[:-1]
            )
            self._paper.move(leaf, spot.cost, -1)
            if not above:
                return spot.cost
        return None

    # ---- the deed

    def carry_out(self) -> None:
        state, claim = self._state, self._claim
        for promise in self._broken:
            give_up(state, promise)
        served(state, claim.key)
        state.forest.leave(claim.key)
        reason = "Preempted" if self._inside else "Reclaimed"
        deadlines = [state.now_ms]
        for unit in self.taken:
            deadlines.append(evict(state, unit, reason=reason, sentence=self._why(unit)))
            self._session.budget.spend(3)
        self._session.worth.forget(self.taken, self._leaf, came_of(state, claim, self._spot.cost))
        self._session.ranking.lift(self._leaf.path, self._paper)
        make_promise(
            state,
            Promise(
                claim=claim.key,
                seq=state.cell.next_seq,
                queue=self._leaf.name,
                pools=self._spot.pools,
                cost=tuple((*dim, amount) for dim, amount in self._spot.cost),
                until_ms=max(deadlines) + PATIENCE_MS,
            ),
        )

    def _why(self, unit: Unit) -> str:
        if self._inside:
            return why_by_priority(self._claim, unit)
        mine, theirs = below_common(self._leaf, unit.leaf)
        if self._is_owed_by(unit.leaf):
            outside = [branch for branch in self._covering if mine in branch.path]
            return why_owed(self._leaf, self._spot, outside, unit)
        kind = max(self._asked, key=lambda kind: self._before.surplus(theirs, kind))
        return why_by_shares(mine, theirs, self._forest.whole, kind)
