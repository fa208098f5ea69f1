"""How much is left under a bound, and who is told when more is left.

A queue's limits and the pools' capacities are the same thing: the capacities are the limits of the root. Who
does not fit watches *one* room that is too small for it, and is told when that room has become large enough;
then it looks again, and watches the next. So a change costs what it wakes, and nothing for who still waits.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from sluice_scheduler.core.fairness.claims import Cost, Dim
from sluice_scheduler.core.fairness.heaps import heap_of, most_entries

if TYPE_CHECKING:
    from sluice_scheduler.core.fairness.branch import Branch


class Bound(NamedTuple):
    """At most (or, of a guarantee, at least) so much of these dims together; `name` is for people."""

    dims: tuple[Dim, ...]
    amount: int
    name: str

    def part(self, cost: Cost) -> int:
        part = 0
        for dim, amount in cost:
            if dim in self.dims:
                part += amount
        return part


class Watcher(Protocol):
    """Somebody who does not fit. `serial` rises whenever it watches something else, or nothing."""

    serial: int
    watching: Room | None


#: From how much on a watcher is to be woken; the serial that it had when it began to watch.
_Entry: TypeAlias = tuple[int, int, int, Watcher]


class Room:
    __slots__ = ("_live", "_watchers", "bound", "branch", "kept", "kept_for", "left")

    def __init__(self, branch: Branch, bound: Bound) -> None:
        self.branch = branch
        self.bound = bound
        self.kept_for: dict[str, int] = {}  # claims whose turn it has been for long, who comes first first
        self.kept = 0  # the sum of that
        self._watchers: list[_Entry] = []
        self._live = 0
        self.left = self.measure()

    def measure(self) -> int:
        """Evicted pods still take room until they are gone, promised claims already do."""
        usage, leaving = self.branch.usage, self.branch.leaving
        left = self.bound.amount - self.kept
        for dim in self.bound.dims:
            left -= usage.get(dim, 0)
            if leaving:
                left -= max(0, leaving.get(dim, 0))
        return left

    def keep(self, claim: str, need: int) -> None:
        self.kept_for[claim] = need
        self.kept += need

    def keep_nothing(self) -> None:
        self.kept_for, self.kept = {}, 0

    def kept_before(self, claim: str) -> int:
        """How much is kept for those who come before a claim: all, if nothing is kept for itself."""
        before = 0
        for other, need in self.kept_for.items():
            if other == claim:
                break
            before += need
        return before

    def free_for(self, claim: str) -> int:
        """How much is left for a claim, with what is kept for it."""
        return self.left + self.kept - self.kept_before(claim)

    def left_beside(self, claims: Collection[str]) -> int:
        """How much is left for who may pass these claims, with what is kept for them."""
        return self.left + sum(self.kept_for.get(claim, 0) for claim in claims)

    @property
    def is_over(self) -> bool:
        """Whether more is held for good than the bound allows."""
        return self.branch.used(self.bound) > self.bound.amount

    def unheld(self) -> int:
        """How much nobody holds now; what is promised or kept counts as free."""
        usage, leaving = self.branch.usage, self.branch.leaving
        held = sum(usage.get(dim, 0) + leaving.get(dim, 0) for dim in self.bound.dims)
        return self.bound.amount - held

    def watch(self, watcher: Watcher, need: int) -> None:
        """Tell `watcher` when at least so much is left."""
        stop_watching(watcher)
        watcher.watching = self
        heapq.heappush(self._watchers, (need, id(watcher), watcher.serial, watcher))
        self._live += 1

    def forget(self) -> None:
        """One of its watchers watches it no longer."""
        self._live -= 1
        if len(self._watchers) > most_entries(self._live):
            self._watchers = heap_of(entry for entry in self._watchers if _counts(entry))

    def woken(self) -> list[Watcher]:
        """The watchers for whom enough is left now. They stop watching."""
        found: list[Watcher] = []
        while self._watchers and self._watchers[0][0] <= self.left:
            entry = heapq.heappop(self._watchers)
            if _counts(entry):
                found.append(entry[3])
                self._live -= 1
                entry[3].watching = None
                entry[3].serial += 1
        return found


def _counts(entry: _Entry) -> bool:
    return entry[3].watching is not None and entry[3].serial == entry[2]


def stop_watching(watcher: Watcher) -> None:
    room = watcher.watching
    watcher.serial += 1
    watcher.watching = None
    if room is not None:
        room.forget()


def least_needs(needs: Iterable[tuple[Room, int]]) -> dict[Room, int]:
    """Of each room the least that any of them needs."""
    least: dict[Room, int] = {}
    for room, need in needs:
        least[room] = min(need, least.get(room, need))
    return least
