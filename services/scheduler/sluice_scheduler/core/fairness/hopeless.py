"""Shapes of a line that fit nowhere, whoever leaves, and what would have to grow before one could.

A bound that moves a little each second costs nothing for those whom it stays too small for. Of a spread of parts over
pools nobody knows that so simply: a search that was given up may find one when bounds are others, also lower ones. So
such a shape is hopeless until any has changed, and a worker that takes over comes to the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from sluice_scheduler.core.fairness.claims import Shape
from sluice_scheduler.core.fairness.heaps import heap_of, most_entries
from sluice_scheduler.core.fairness.rooms import Room


class Hopeless:
    def __init__(self) -> None:
        #: By shape, rooms of which one at least has to be so large.
        self._lacks: dict[Shape, Mapping[Room, int]] = {}
        #: The same by room, who lacks least first. An entry counts while the shape lacks just that.
        self._by_room: dict[Room, list[tuple[int, int, Shape]]] = {}
        self._spreads: dict[Shape, None] = {}

    def __contains__(self, shape: object) -> bool:
        return shape in self._lacks or shape in self._spreads

    def add(self, shape: Shape, lacks: Mapping[Room, int]) -> None:
        if shape.scattered:
            self._spreads[shape] = None
            return
        self._lacks[shape] = lacks
        for room, need in lacks.items():
            heap = self._by_room.setdefault(room, [])
            heapq.heappush(heap, (need, shape.number, shape))
            if len(heap) > most_entries(len(self._lacks)):
                self._by_room[room] = heap_of(
                    (each[room], other.number, other) for other, each in self._lacks.items() if room in each
                )

    def discard(self, shape: Shape) -> None:
        self._lacks.pop(shape, None)
        self._spreads.pop(shape, None)

    def clear(self) -> list[Shape]:
        """Other rooms are there now, so nothing is known of any. Those that there were."""
        shapes = [*self._lacks, *self._spreads]
        self._lacks, self._by_room, self._spreads = {}, {}, {}
        return shapes

    def take_spreads(self) -> list[Shape]:
        spreads, self._spreads = self._spreads, {}
        return list(spreads)

    def take_grown(self) -> list[Shape]:
        """Take out those that are worth another look, as one of their rooms has become so large."""
        found: list[Shape] = []
        for room, heap in self._by_room.items():
            while heap and heap[0][0] <= room.bound.amount:
                need, _, shape = heapq.heappop(heap)
                if self._lacks.get(shape, {}).get(room) == need:
                    found.append(shape)
                    self.discard(shape)
        return found
