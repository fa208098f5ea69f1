"""Books: the pods that an application has of one pod set, and what is reserved for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.claims import Cost
from sluice_scheduler.core.state.units import Entry

if TYPE_CHECKING:
    pass


class PodSetBook:
    """The pods of one pod set, and what is reserved for missing ones."""

    __slots__ = ("cost", "edge", "fresh", "holding", "order", "queue", "reserved", "units", "waiting")

    def __init__(self) -> None:
        self.holding: set[str] = set()  # keys; evicted pods are out of it
        #: The same, the oldest first: beyond the minimum they are growth.
        self.order: list[tuple[int, int, str, str]] = []
        self.fresh: list[tuple[int, int, str, str]] = []  # of those, who came since units were last kept
        self.edge: tuple[int, int, str, str] | None = None  # the first of those that are growth
        self.units: dict[str, tuple[str, Entry]] = {}  # a pod's key → where it stands as a unit
        self.waiting: set[str] = set()
        self.reserved = 0  # pods
        self.queue = ""
        self.cost: Cost = ()  # of one pod

    @property
    def counts(self) -> bool:
        """Whether there is any pod of it."""
        return bool(self.holding or self.waiting)
