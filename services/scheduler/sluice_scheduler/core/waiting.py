"""The lines of waiting pods, one a queue.

Pods of the same shape fit or fail together, so a line is kept by shape: once a shape was found not to fit it
is passed over until something was freed, however many pods of it wait.
"""

from __future__ import annotations

import heapq
from typing import TypeAlias

from sluice_scheduler.core.entities import Pod

#: Cluster, requests, node selector: what decides whether a pod fits.
Shape: TypeAlias = tuple[str, tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]
#: Priority first, then age, then names, so that no two pods are equal.
Place: TypeAlias = tuple[int, int, str, str, str]


def shape_of(pod: Pod) -> Shape:
    facts = pod.facts
    return (pod.cluster, tuple(sorted(facts.requests.items())), tuple(sorted(facts.node_selector.items())))


def place_of(pod: Pod) -> Place:
    return (-pod.facts.priority, pod.facts.created_ms, pod.namespace, pod.name, pod.uid)


class Line:
    """One queue's waiting pods."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}  # by the pod's key
        self._heaps: dict[Shape, list[tuple[Place, str]]] = {}
        self._blocked: dict[Shape, int] = {}  # shape → what `freed` was when it did not fit

    def __len__(self) -> int:
        return len(self._places)

    def join(self, pod: Pod) -> None:
        place = place_of(pod)
        self._places[pod.key] = place
        heapq.heappush(self._heaps.setdefault(shape_of(pod), []), (place, pod.key))

    def leave(self, pod: Pod) -> None:
        """Its entry in the heap is dropped when it comes up."""
        self._places.pop(pod.key, None)

    def block(self, pod: Pod, freed: int) -> None:
        self._blocked[shape_of(pod)] = freed

    def head(self, freed: int, *, strict: bool) -> str:
        """The key of the first pod that may be tried: in a strict line the first of all, or nobody."""
        best: tuple[Place, str] | None = None
        best_blocked = False
        for shape in list(self._heaps):
            top = self._top(shape)
            blocked = self._blocked.get(shape) == freed
            if top is None or (blocked and not strict) or (best is not None and top > best):
                continue
            best, best_blocked = top, blocked
        if best is None or best_blocked:
            return ""
        return best[1]

    def _top(self, shape: Shape) -> tuple[Place, str] | None:
        heap = self._heaps[shape]
        while heap:
            place, key = heap[0]
            if self._places.get(key) == place:
                return heap[0]
            heapq.heappop(heap)
        del self._heaps[shape]
        self._blocked.pop(shape, None)
        return None
