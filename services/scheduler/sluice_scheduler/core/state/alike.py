"""Pods of one queue that are growth and ask for the same, so that a search finds the newest of each size at once.

This is made when a search asks for it first, because most queues are never searched; and from then on it is kept.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter, length_hint
from typing import TYPE_CHECKING, TypeAlias

from sluice_scheduler.core.fairness.claims import Cost, pod_cost
from sluice_scheduler.core.state.rounds import place_of
from sluice_scheduler.core.stored.accounts import Pod

if TYPE_CHECKING:
    from sluice_scheduler.core.state.state import State

#: Lowest priority last, then the newest last; and the key of a pod, or of an application's claim.
Entry: TypeAlias = tuple[int, int, int, str]

_by_admission = itemgetter(1)


class Row:
    """Pods of one priority that ask for the same, the newest last."""

    __slots__ = ("cost", "entries", "rank")

    def __init__(self, rank: int, cost: Cost) -> None:
        self.rank = rank  # the lowest priority has the highest
        self.cost = cost
        self.entries: list[Entry] = []

    def newest_first(self, by_ms: int | None) -> Newest:
        """Those that were admitted by a time, or all."""
        end = len(self.entries)
        if by_ms is not None:
            end = bisect_left(self.entries, by_ms + 1, key=_by_admission)
        return Newest(self.entries, 0, end)


class Newest:
    """Some of the entries, the newest first."""

    def __init__(self, entries: list[Entry], begin: int, end: int) -> None:
        self._entries = entries
        self._begin = begin
        self._places = iter(range(begin, end)[::-1])

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return self._entries[next(self._places)]

    def leap(self, number: int) -> None:
        """Go on from another place in each round, and in the end with what was passed over."""
        end = self._begin + length_hint(self._places)
        turn = end - place_of(number, end - self._begin)
        self._places = chain(range(self._begin, turn)[::-1], range(turn, end)[::-1])


#: What pods ask for → those that ask for it. The order says nothing.
Sizes: TypeAlias = dict[Cost, Row]


class Alike:
    def __init__(self, entries: Iterable[Entry]) -> None:
        self._fresh = {entry[3]: entry for entry in entries}  # in no row yet
        self._rows: dict[int, Sizes] = {}
        self._row_of: dict[str, Row] = {}

    def add(self, entry: Entry) -> None:
        self._fresh[entry[3]] = entry

    def remove(self, entry: Entry) -> None:
        row = self._row_of.pop(entry[3], None)
        if row is None:
            del self._fresh[entry[3]]
            return
        del row.entries[bisect_left(row.entries, entry)]
        if not row.entries:
            sizes = self._rows[row.rank]
            del sizes[row.cost]
            if not sizes:
                del self._rows[row.rank]

    def standing(self) -> Iterator[tuple[Entry, Cost | None]]:
        """All of them, with what their row says that they ask for."""
        yield from ((entry, None) for entry in self._fresh.values())
        for sizes in self._rows.values():
            yield from ((entry, row.cost) for row in sizes.values() for entry in row.entries)

    def by_priority(self, state: State) -> list[Sizes]:
        """The rows of each priority, the lowest first."""
        if self._fresh:
            self._put_in_rows(state)
        return [self._rows[rank] for rank in sorted(self._rows, reverse=True)]

    def _put_in_rows(self, state: State) -> None:
        """The first time these may be all pods of a large queue, so that most find their row without a size's order."""
        rows: dict[tuple[object, ...], Row] = {}
        for key, entry in self._fresh.items():
            pod = state.pod(key)
            asked = (entry[0], pod.cluster, pod.pool, *pod.facts.requests.items())
            row = rows.get(asked)
            if row is None:
                row = rows[asked] = self._row(entry[0], size_of(pod))
            if row.entries and entry < row.entries[-1]:
                insort(row.entries, entry)
            else:
                row.entries.append(entry)
            self._row_of[key] = row
        self._fresh.clear()

    def _row(self, rank: int, cost: Cost) -> Row:
        sizes = self._rows.setdefault(rank, {})
        row = sizes.get(cost)
        if row is None:
            row = sizes[cost] = Row(rank, cost)
        return row


def size_of(pod: Pod) -> Cost:
    return tuple(sorted(pod_cost(pod)))
