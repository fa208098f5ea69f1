"""Applications: pods that belong together, and what is reserved for those of them that are not there yet.

An application stands behind a DynamicWorkload, or is a pod group: pods that name a workload nobody made, and
how many of them start together. Until it is admitted it waits as one gang claim. From then on its missing
minima are reserved, its pods open against the reservation, and every pod beyond that is a growth claim; where
several pods are one replica, they are so together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from sluice.events import Gang, PodSetFacts
from sluice.values import Resources

from sluice_scheduler.core.fairness.claims import Claim, Cost, cost_of, part
from sluice_scheduler.core.state.alike import Entry
from sluice_scheduler.core.state.books import PodSetBook, age_of
from sluice_scheduler.core.state.kinship import controlled
from sluice_scheduler.core.state.members import stuck_in
from sluice_scheduler.core.state.minima import (
    is_within,
    minimum_of,
    missing_of,
    parts_of,
)
from sluice_scheduler.core.state.offers import offer
from sluice_scheduler.core.state.promises import break_promise
from sluice_scheduler.core.state.units import entry_of
from sluice_scheduler.core.state.wanted import (
    asks_the_same,
    gang_claim,
    is_what_was_promised,
    parts_alike,
    parts_like,
)
from sluice_scheduler.core.stored.accounts import Pod, Workload

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State


class Application:
    __slots__ = (
        "_place",
        "_ranked",
        "_whole",
        "books",
        "free",
        "group_gang",
        "group_size",
        "key",
        "offered",
        "replicated",
        "workload",
    )

    def __init__(self, key: tuple[str, str, str]) -> None:
        self.key = key  # cluster, namespace, name
        self.workload: Workload | None = None
        self.group_size = 0
        self.group_gang: Gang | None = None
        self.books: dict[str, PodSetBook] = {}
        self.offered = False  # its waiting pods stand in line one by one
        self.replicated: set[str] = set()  # but of these pod sets so many together as are one replica
        self._place = (0, 0)  # where they were offered
        self.free = False  # its minima are nothing: it starts without a claim
        self._ranked: int | None = None  # its priority, as its units have it
        self._whole: tuple[str, Entry | None] = ("", None)  # where it stands as a unit that goes whole

    @property
    def claim_key(self) -> str:
        return self.workload.key if self.workload else "group/" + "/".join(self.key)

    def book(self, pod_set: str) -> PodSetBook:
        book = self.books.get(pod_set)
        if book is None:
            book = self.books[pod_set] = PodSetBook()
        return book

    def enter(self, pod: Pod, state: State) -> None:
        """A pod that is set aside waits for nothing."""
        book = self.book(pod.pod_set)
        if pod.holds and not pod.evicting:
            book.hold(pod)
        elif pod.waits and not state.is_aside(pod.key):
            book.wait(pod)

    def leave(self, pod: Pod, state: State) -> None:
        book = self.book(pod.pod_set)
        if pod.key in book.waiting:
            book.wait_no_more(pod)
        elif pod.key in book.holding:
            book.release(pod)
            _drop_unit(state, book, pod.key)

    @property
    def admitted(self) -> bool:
        if self.workload is not None:
            return self.workload.admitted and not self.workload.facts.finished
        return self.group_size > 0 and any(book.holding for book in self.books.values())

    @property
    def gang(self) -> Gang | None:
        return self.workload.facts.gang if self.workload is not None else self.group_gang

    @property
    def silent(self) -> bool:
        """Whether an executor failed that no driver has replaced yet: there may be none to use another."""
        return self.workload is not None and self.workload.failed_ms > 0

    @property
    def waits_for_queue(self) -> bool:
        """Whether it may stand in a line once its queue is there."""
        return not self.admitted and (
            self.workload is not None or any(b.waiting for b in self.books.values())
        )

    @property
    def is_gone(self) -> bool:
        """Whether nothing is left of it: another one in its place begins anew."""
        return self.workload is None and not any(book.counts for book in self.books.values())

    def stand_for(self, workload: Workload | None, state: State) -> None:
        """Another object may stand behind it now: then nothing is claimed any more under the key that it had."""
        if workload is not self.workload:
            self._claim(state, self.claim_key, None)
            self.workload = workload

    def settle(self, state: State) -> None:
        self._hear_group(state)
        self._reserve(state)
        self._keep_units(state)
        wanted = self._wanted_gang(state)
        self.free = wanted is not None and not wanted.shape.parts
        self._claim(state, self.claim_key, None if self.free else wanted)
        opens = self.admitted and not self.silent
        replicated = self._replicated()
        for pod_set in sorted(self.replicated | replicated):
            next_one = self._wanted_replica(state, pod_set) if opens and pod_set in replicated else None
            self._claim(state, self.replica_key(pod_set), next_one)
        place = self._line_place()
        if (self.offered, self.replicated, self._place) != (opens, replicated, place):
            self.offered, self.replicated, self._place = opens, replicated, place
            for key in sorted(key for book in self.books.values() for key in book.waiting):
                state.forest.leave(key)
                if self.offered:
                    offer(state, state.pod(key))
                else:
                    break_promise(state, key)
        self._drop_books()

    def _drop_books(self) -> None:
        """Of sets that pods of it named once: a pod's set is a label, which may be another with each edit."""
        for name in [name for name, book in self.books.items() if not (book.counts or book.reserved)]:
            if all(each.name != name for each in self.pod_sets):
                del self.books[name]

    def _line_place(self) -> tuple[int, int]:
        """What its growth's place in line goes by; a group's goes by each pod."""
        return (self.workload.priority, self.workload.in_line_ms) if self.workload is not None else (0, 0)

    def _hear_group(self, state: State) -> None:
        """If a group's pods disagree about it, the one with the first key counts: they may arrive in any order."""
        if self.workload is None:
            firsts = [book.keys[0] for book in self.books.values() if book.counts]
            if firsts:
                first = state.pod(min(firsts)).facts
                self.group_size, self.group_gang = first.group_size, first.gang

    # ---- units

    def replica_of(self, state: State, pod: Pod) -> list[Pod]:
        """The pods of growth that only make sense together with this one."""
        size = self.replica_size(pod.pod_set)
        if size == 1:
            return [pod]
        book = self.book(pod.pod_set)
        minimum = self._minima().get(pod.pod_set, 0)
        at = bisect_left(book.order, age_of(pod)) - minimum
        first = minimum + at - at % size
        return [state.pod(entry[3]) for entry in book.order[first : first + size]]

    def drivers_last(self) -> list[str]:
        single = {each.name for each in self.pod_sets if each.max_count == 1}
        return sorted(self.books, key=lambda name: (name in single, name))

    @property
    def pod_sets(self) -> Iterable[PodSetFacts]:
        return self.workload.facts.pod_sets if self.workload is not None else ()

    def _minima(self) -> dict[str, int]:
        """How many pods of each set are no growth."""
        if not self.admitted:
            return {}
        if self.workload is None:
            return {"": self.group_size}
        return {each.name: minimum_of(self.workload, each) for each in self.pod_sets}

    def _keep_units(self, state: State) -> None:
        """Bring units in step with the pods that hold. The cost is proportional to what has changed."""
        minima = self._minima()
        for name, book in self.books.items():
            self._keep_growth(state, book, minima.get(name, 0))
        queue, wanted = "", None
        if self.admitted and any(
            min(minima.get(n, 0), len(b.order)) or b.reserved for n, b in self.books.items()
        ):
            queue = self.workload.queue if self.workload else self._first(state).queue
            wanted = self._whole_entry(state)
        if self._whole != (queue, wanted):
            if self._whole[1] is not None:
                state.units_of(self._whole[0]).remove(self._whole[1], growth=False)
            if wanted is not None:
                state.units_of(queue).add(wanted, growth=False)
            self._whole = (queue, wanted)

    def _first(self, state: State) -> Pod:
        return min(
            (state.pod(e[3]) for b in self.books.values() for e in b.order[:1]), key=lambda pod: pod.key
        )

    def _whole_entry(self, state: State) -> Entry:
        if self.workload is not None:
            return (-self.workload.priority, self.workload.admitted_ms, 0, self.claim_key)
        held = [book for book in self.books.values() if book.order]
        priority = max(max(book.priorities) for book in held)
        return (-priority, max(book.order[-1][0] for book in held), 0, self.claim_key)

    def _keep_growth(self, state: State, book: PodSetBook, minimum: int) -> None:
        rank = self.workload.priority if self.workload is not None and self.admitted else None
        if self._ranked != rank:
            for other in self.books.values():
                for key in list(other.units):
                    _drop_unit(state, other, key)
                other.fresh, other.edge = list(other.order), None
            self._ranked = rank
        edge = book.order[minimum] if len(book.order) > minimum else None
        if edge != book.edge:
            low, high = sorted(each or _NOBODY for each in (edge, book.edge))
            between = book.order[bisect_left(book.order, low) : bisect_left(book.order, high)]
            for entry in between:
                _drop_unit(state, book, entry[3])
            book.fresh += between
            book.edge = edge
        for entry in book.fresh:
            if edge is not None and entry >= edge and entry[3] in book.holding and entry[3] not in book.units:
                pod = state.pod(entry[3])
                if pod.pool:
                    unit = entry_of(pod, pod.facts.priority if rank is None else rank)
                    book.units[pod.key] = (pod.queue, unit)
                    state.units_of(pod.queue).add(unit, growth=True)
        book.fresh = []

    # ---- the reservation

    def _reserve(self, state: State) -> None:
        for book in self.books.values():
            if book.reserved:
                _charge_reserved(state, book, -book.reserved)
                book.reserved = 0
        workload = self.workload
        if workload is None or not self.admitted or controlled(state, workload):
            return
        for pod_set in workload.facts.pod_sets:
            book = self.book(pod_set.name)
            self._measure(state, book, workload.sizes.get(pod_set.name, {}))
            there = len(book.holding) + stuck_in(state, self, pod_set.name)
            missing = missing_of(workload, pod_set, there)
            pool = workload.pools.get(pod_set.name, "")
            # Admitted when all its pods had been given back, it has no pool: what comes yet stands in line.
            if pool and missing > 0 and (book.within or not book.waiting):
                book.queue = workload.queue
                book.cost = cost_of(workload.cluster, pool, tuple(book.size.items()))
                book.reserved = missing
                book.part = part(workload.cluster, 1, book.size, pod_set.node_selector)
                _charge_reserved(state, book, missing)

    def _measure(self, state: State, book: PodSetBook, size: Resources) -> None:
        """Pods that came larger than they were said to be can't use what is reserved: if all did, it would only
        stand in their way."""
        if book.size != size:
            book.size = size
            book.within = {key for key in book.waiting if is_within(state.pod(key), size)}

    def use_reserved(self, state: State, book: PodSetBook) -> None:
        """A pod comes for what is reserved for one."""
        _charge_reserved(state, book, -1)
        book.reserved -= 1

    # ---- claims of several pods

    def _claim(self, state: State, key: str, wanted: Claim | None) -> None:
        """Under this key, let the wanted claim stand in line or have a promise, and nothing else."""
        standing = state.forest.claims.get(key)
        promise = state.promise_for(key)
        if promise is not None and not (wanted is not None and is_what_was_promised(wanted, promise)):
            break_promise(state, key)
            promise = None
        if wanted is not None and standing is not None and asks_the_same(wanted, standing):
            return
        if standing is not None:
            state.forest.leave(standing.key)
        if wanted is not None and promise is None:
            wanted.shape = state.forest.shape(wanted.shape.parts)
            state.forest.join(wanted)

    def _wanted_gang(self, state: State) -> Claim | None:
        if self.admitted:
            return None
        workload = self.workload
        if workload is not None:
            if workload.facts.finished or workload.problem or workload.queue not in state.forest.leaves:
                return None
            # A suspended application is back in line only after its pods have left.
            if workload.seq in state.evicting or workload.retry_ms or controlled(state, workload):
                return None
            return gang_claim(
                self.claim_key,
                queue=workload.queue,
                priority=workload.priority,
                created_ms=workload.in_line_ms,
                line_ms=workload.in_line_ms,
                names=(workload.namespace, workload.uid),
                parts=parts_of(workload),
            )
        return self._wanted_group(state)

    def _wanted_group(self, state: State) -> Claim | None:
        ready = [book.ready for book in self.books.values() if len(book.ready)]
        if not self.group_size or sum(map(len, ready)) < self.group_size:
            return None
        queue = state.pod(ready[0].keys[0]).queue
        if queue not in state.forest.leaves:
            return None
        alike = sum((each.alike for each in ready[1:]), ready[0].alike)
        created_ms = min(each.by_age[0][0] for each in ready)
        return gang_claim(
            self.claim_key,
            queue=queue,
            priority=max(max(each.priorities) for each in ready),
            created_ms=created_ms,
            line_ms=created_ms,
            names=(self.key[1], state.pod(min(each.keys[0] for each in ready)).uid),
            parts=parts_alike(alike),
        )

    def _replicated(self) -> set[str]:
        return {each.name for each in self.pod_sets if each.replica_size > 1}

    def replica_size(self, pod_set: str) -> int:
        return next((each.replica_size for each in self.pod_sets if each.name == pod_set), 1)

    def replica_key(self, pod_set: str) -> str:
        return "/".join(("replica", pod_set, *self.key))

    def replica(self, state: State, pod_set: str) -> list[Pod]:
        """The pods that are admitted together next, once all are there: a replica, or what one lacks that has
        lost some."""
        book, size = self.book(pod_set), self.replica_size(pod_set)
        wanted = size - len(book.holding) % size
        if len(book.ready) < wanted:
            return []
        return [state.pod(key) for _, _, key in book.ready.by_age[:wanted]]

    def _wanted_replica(self, state: State, pod_set: str) -> Claim | None:
        workload, pods = self.workload, self.replica(state, pod_set)
        if workload is None or not pods or pods[0].queue not in state.forest.leaves:
            return None
        return gang_claim(
            self.replica_key(pod_set),
            queue=pods[0].queue,
            priority=workload.priority,
            created_ms=max(workload.in_line_ms, pods[-1].facts.created_ms),  # before, it was not complete
            line_ms=workload.in_line_ms,
            names=(workload.namespace, workload.uid, pods[0].facts.created_ms, pods[0].uid),
            parts=parts_like(pods),
        )


#: After everybody.
_NOBODY: Final = (1 << 63, 0, "", "")


def _drop_unit(state: State, book: PodSetBook, key: str) -> None:
    standing = book.units.pop(key, None)
    if standing is not None:
        state.units_of(standing[0]).remove(standing[1], growth=True)


def _charge_reserved(state: State, book: PodSetBook, pods: int) -> None:
    """So many pods more are reserved, or less."""
    cost, sign = _times(book.cost, abs(pods)), 1 if pods > 0 else -1
    state.forest.charge(book.queue, cost, sign, part=book.part, pods=abs(pods))


def _times(cost: Cost, count: int) -> Cost:
    return tuple((dim, amount * count) for dim, amount in cost)
