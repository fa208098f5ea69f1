"""Taking back: between queues where it strictly improves, inside a queue by priority.

A reclaim is first tried on paper. Victims are picked one by one from the branch with the highest share under
the scope, down to one queue, until the claim would fit; who turns out not to be needed is let go; then the
move is judged. The scope is the whole tree first, and then the claimant's own branch, level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Dim, Option
from sluice_scheduler.core.fairness.hopes import hopeful
from sluice_scheduler.core.fairness.rooms import Room
from sluice_scheduler.core.fairness.shares import as_percent
from sluice_scheduler.core.passes.trial import Trial, rises
from sluice_scheduler.core.passes.victims import Unit, units_of
from sluice_scheduler.core.state.members import priority_of, workload_of
from sluice_scheduler.core.state.promises import give_up, make_promise, promised_cost
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import Promise

#: A promise is given up so long after its victims should have been deleted.
PATIENCE_MS: Final = 60_000


def reclaim(state: State) -> bool:
    """Let the first claim that may push others out do so; whether there was one."""
    state.forest.settle()
    units: dict[Branch, list[Unit]] = {}  # nothing changes until somebody's search is carried out
    for leaf, claim in _claimants(state):
        for option in claim.shape.options:
            search = Search(state, leaf, claim, option, units)
            if search.between_queues() or search.inside_queue():
                search.carry_out()
                return True
    return False


def _claimants(state: State) -> list[tuple[Branch, Claim]]:
    """Who might push others out, in the order in which they would be served."""
    found: list[tuple[Any, Branch, Claim]] = []
    for leaf in hopeful(state.forest):
        if len(leaf.line):
            for claim in leaf.line.firsts(skip=lambda claim: is_barred(state, claim)):
                found.append((state.forest.rank_of(leaf, claim), leaf, claim))
    return [(leaf, claim) for _, leaf, claim in sorted(found, key=lambda each: (each[0], each[2].place))]


def is_barred(state: State, claim: Claim) -> bool:
    """Whether a claim's workload lost pods, and nothing has changed since that lets it push others out."""
    workload = workload_of(state, claim.key)
    if workload is None or workload.barred < state.cell.grounds:
        return False
    leaf = state.forest.leaves[claim.line]
    return not any(_covering(leaf, option) for option in claim.shape.options)


def _covering(leaf: Branch, option: Option) -> list[Branch]:
    """The branches whose guarantees cover what is asked for."""
    return [branch for branch in leaf.path if branch.is_covered(option.cost)]


class Search:
    """The search for what must leave so that a claim fits."""

    def __init__(
        self,
        state: State,
        leaf: Branch,
        claim: Claim,
        option: Option,
        units: dict[Branch, list[Unit]],
    ) -> None:
        self._state = state
        self._forest = state.forest
        self._leaf = leaf
        self._claim = claim
        self._option = option
        self._covering = _covering(leaf, option)
        self._units = units
        self._highest: Branch | None = None  # of the branches that victims were looked for in
        self._taken: list[Unit] = []
        self._broken: list[Promise] = []
        self._trial = self._new_trial()

    def between_queues(self) -> bool:
        scopes = [branch for branch in reversed(self._leaf.path) if branch is not self._leaf]
        for scope in scopes:
            if not (scope.policy.reclaims or self._covering):
                continue
            if self._highest is not None and len(self._highest.path) >= len(scope.path):
                continue  # a wider scope has failed without looking anywhere else than this one would
            if not self._covering and scope is self._leaf.parent and not self._stays_below_siblings():
                continue
            self._highest = None
            self._taken, self._trial = [], self._new_trial()
            if self._collect(partial(self._victim_below, scope)) and self._is_right():
                return True
        return False

    def _stays_below_siblings(self) -> bool:
        """Whether any sibling has more than the claimant's queue would have. Leaves' shares depend on nothing
        but their usage, so of them it can be told without trying."""
        assert self._leaf.parent is not None
        siblings = [child for child in self._leaf.parent.children if child is not self._leaf]
        share = self._new_trial().share(self._leaf)
        return any(not child.is_leaf or child.share > share for child in siblings)

    def inside_queue(self) -> bool:
        queue = self._leaf.queue
        if queue is None or queue.facts.preemption != "lowerPriority":
            return False
        self._taken, self._trial = [], self._new_trial()
        self._break_promises()
        return self._collect(self._victim_of_lower_priority)

    # ---- what is in the way

    def _new_trial(self) -> Trial:
        trial = Trial(self._forest, taken=[dim for dim, _ in self._option.cost], unblocked=[self._leaf])
        trial.move(self._leaf, self._option.cost, 1)
        return trial

    def _short_rooms(self) -> Iterator[Room]:
        """Rooms that would be overfull, those nearest to the queue first. Who leaves is counted out."""
        for branch in self._leaf.bounded:
            for room in branch.rooms:
                if (
                    room.bound.part(self._option.cost)
                    and self._trial.used(branch, room.bound) > room.bound.amount
                ):
                    yield room

    def _collect(self, pick: Callable[[Room], Unit | None]) -> bool:
        """Take victims until everything fits; then let go whom nobody needs."""
        if any(dim not in self._forest.capacity for dim, _ in self._option.cost):
            return False
        while (room := next(self._short_rooms(), None)) is not None:
            unit = pick(room)
            if unit is None:
                return False
            self._take(unit)
        for unit in list(self._taken):
            self._trial.move(unit.leaf, unit.cost, 1)
            self._taken.remove(unit)
            if next(self._short_rooms(), None) is not None:
                self._trial.move(unit.leaf, unit.cost, -1)
                self._taken.append(unit)
        return bool(self._taken or self._broken)

    def _take(self, unit: Unit) -> None:
        """A gang that goes whole takes its growth pods along."""
        if unit.is_whole:
            for other in [each for each in self._taken if each.application is unit.application]:
                self._taken.remove(other)
                self._trial.move(other.leaf, other.cost, 1)
        self._trial.move(unit.leaf, unit.cost, -1)
        self._taken.append(unit)

    # ---- victims

    def _victim_below(self, scope: Branch, room: Room) -> Unit | None:
        """From the branch with the highest share; the claimant's own is entered when it comes up."""
        within = room.branch if scope in room.branch.path else scope
        if within is self._leaf:
            return None
        if self._highest is None or len(within.path) < len(self._highest.path):
            self._highest = within
        for child in self._by_share(within):
            if child is self._leaf:
                continue
            if child in self._leaf.path:
                unit = self._victim_below(child, room) if self._may_take_within(child) else None
            else:
                unit = self._victim_in(child, room.bound.dims, (child,))
            if unit is not None:
                return unit
        return None

    def _may_take_within(self, branch: Branch) -> bool:
        """What a guarantee covers is looked for outside before it is taken from those who share it."""
        return not self._covering or any(branch in covering.path[1:] for covering in self._covering)

    def _victim_in(self, branch: Branch, dims: tuple[Dim, ...], below: tuple[Branch, ...]) -> Unit | None:
        """The first unit of a branch that may be taken; `below` are the branches that would lose by it."""
        if not self._trial.holds(branch, dims) or (
            branch.queue is not None and not branch.queue.facts.reclaim
        ):
            return None
        if not branch.is_leaf:
            victims = (self._victim_in(child, dims, (child, *below)) for child in self._by_share(branch))
            return next((unit for unit in victims if unit is not None), None)
        return next(
            (
                unit
                for unit in self._untaken(branch)
                if unit.touches(dims) and self._is_ripe(unit) and not self._robs_guarantee(unit, below)
            ),
            None,
        )

    def _victim_of_lower_priority(self, room: Room) -> Unit | None:
        return next(
            (
                unit
                for unit in self._untaken(self._leaf)
                if unit.priority < self._claim.priority
                and unit.touches(room.bound.dims)
                and self._is_ripe(unit)
            ),
            None,
        )

    def _by_share(self, branch: Branch) -> list[Branch]:
        return sorted(
            branch.children, key=lambda child: (self._trial.share(child), child.order), reverse=True
        )

    def _untaken(self, leaf: Branch) -> Iterator[Unit]:
        if leaf not in self._units:
            self._units[leaf] = units_of(self._state, leaf)
        gone = {id(unit) for unit in self._taken}
        whole = {id(unit.application) for unit in self._taken if unit.is_whole}
        return (
            unit for unit in self._units[leaf] if id(unit) not in gone and id(unit.application) not in whole
        )

    def _is_ripe(self, unit: Unit) -> bool:
        """Whether all its pods have run for as long as their queue wants."""
        queue = unit.leaf.queue
        minimum_ms = queue.facts.minimum_run_ms if queue else 0
        return all(self._state.cell.time_ms - pod.admitted_ms >= minimum_ms for pod in unit.pods)

    def _robs_guarantee(self, unit: Unit, below: tuple[Branch, ...]) -> bool:
        """Whether taking it would leave anybody short of a guarantee."""
        return any(
            (part := bound.part(unit.cost)) and self._trial.used(branch, bound) - part < bound.amount
            for branch in below
            for bound in branch.guarantees
        )

    # ---- judgement

    def _is_right(self) -> bool:
        """Whether the move raises the potential strictly, and robs nobody poorer."""
        victims = list(dict.fromkeys(unit.leaf for unit in self._taken))
        leaves = [self._leaf, *victims]
        taken = [dim for dim, _ in self._option.cost]
        before = Trial(self._forest, taken=taken, unblocked=leaves)
        after = Trial(self._forest, taken=taken, unblocked=leaves)
        after.move(self._leaf, self._option.cost, 1)
        for unit in self._taken:
            after.move(unit.leaf, unit.cost, -1)
        if any(self._falls_short(branch, before, after) for leaf in leaves for branch in leaf.path):
            return False
        owed = [self._is_owed_by(victim) for victim in victims]
        if all(owed):
            return True
        for victim, is_owed in zip(victims, owed, strict=True):
            mine, theirs = _below_common(self._leaf, victim)
            if not is_owed and after.share(mine) >= before.share(theirs):
                return False
        if any(_gains(branch, before, after) for branch in self._leaf.path):
            return True
        pods = sum(part.pods for part in self._claim.shape.parts)
        more_pods = pods > sum(len(unit.pods) for unit in self._taken)
        return rises(before, after, leaves, more_pods=more_pods)

    def _is_owed_by(self, victim: Branch) -> bool:
        """Whether a guarantee covers the claim in which the victim has no part.

        One that both share is as much the victim's: they would take the same from each other for ever.
        """
        mine, _ = _below_common(self._leaf, victim)
        return any(mine in covering.path for covering in self._covering)

    def _falls_short(self, branch: Branch, before: Trial, after: Trial) -> bool:
        return any(
            after.used(branch, bound) < min(before.used(branch, bound), bound.amount)
            for bound in branch.guarantees
        )

    # ---- the deed

    def _break_promises(self) -> None:
        """A claim of higher priority takes over what is held for a lower one in its queue."""
        for promise in sorted(self._state.promises, key=lambda promise: -promise.seq):
            if (
                promise.queue == self._leaf.name
                and priority_of(self._state, promise.claim) < self._claim.priority
            ):
                if next(self._short_rooms(), None) is None:
                    return
                self._trial.move(self._leaf, promised_cost(promise), -1)
                self._broken.append(promise)

    def carry_out(self) -> None:
        state, claim = self._state, self._claim
        for promise in self._broken:
            give_up(state, promise)
        state.forest.leave(claim.key)
        inside = all(unit.leaf is self._leaf for unit in self._taken)
        reason = "Preempted" if inside else "Reclaimed"
        deadlines = [state.cell.time_ms]
        for unit in self._taken:
            why = (
                f"priority {claim.priority} goes before priority {unit.priority} in {self._leaf.name}"
                if inside
                else _why_reclaimed(self._leaf, unit.leaf, covered=self._is_owed_by(unit.leaf))
            )
            deadlines.append(evict(state, unit, reason=reason, sentence=why))
        make_promise(
            state,
            Promise(
                claim=claim.key,
                seq=state.cell.next_seq,
                queue=self._leaf.name,
                pools=self._option.pools,
                cost=tuple((*dim, amount) for dim, amount in self._option.cost),
                until_ms=max(deadlines) + PATIENCE_MS,
            ),
        )


def _gains(branch: Branch, before: Trial, after: Trial) -> bool:
    """Whether a shortfall of a guarantee shrinks."""
    return any(
        before.used(branch, bound) < min(bound.amount, after.used(branch, bound))
        for bound in branch.guarantees
    )


def _below_common(one: Branch, other: Branch) -> tuple[Branch, Branch]:
    """The branches of two leaves right under their lowest common ancestor."""
    above = set(one.path)
    theirs = next(branch for branch in other.path if branch.parent in above)
    mine = next(branch for branch in one.path if branch.parent is theirs.parent)
    return mine, theirs


def _why_reclaimed(leaf: Branch, victim: Branch, *, covered: bool) -> str:
    if covered:
        return f"{leaf.name} is owed this by a guarantee"
    mine, theirs = _below_common(leaf, victim)
    return (
        f"{theirs.name} has {as_percent(theirs.share)} by weight of what it has most of, "
        f"{mine.name} only {as_percent(mine.share)}"
    )
