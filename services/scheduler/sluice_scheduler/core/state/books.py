"""Books: the pods that an application has of one pod set, and what is reserved for others."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, TypeVar

from sluice.values import Resources

from sluice_scheduler.core.fairness.claims import Cost, Part, part_of
from sluice_scheduler.core.state.alike import Entry
from sluice_scheduler.core.state.minima import is_within
from sluice_scheduler.core.stored.accounts import Pod

_T = TypeVar("_T")
#: When a pod was admitted and by which decision; its uid and key.
Age: TypeAlias = tuple[int, int, str, str]


@dataclass(slots=True)
class Ready:
    """Pods that wait and do not pause, and what they come to together."""

    by_age: list[tuple[int, str, str]] = field(default_factory=list)  # created at, uid, key
    keys: list[str] = field(default_factory=list)  # in order
    priorities: Counter[int] = field(default_factory=Counter)
    alike: Counter[Part] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.keys)

    def add(self, pod: Pod) -> None:
        key, facts = pod.key, pod.facts
        insort(self.by_age, (facts.created_ms, pod.uid, key))
        insort(self.keys, key)
        self.priorities[facts.priority] += 1
        self.alike[part_of(pod)] += 1

    def remove(self, pod: Pod) -> None:
        key, facts = pod.key, pod.facts
        del self.by_age[bisect_left(self.by_age, (facts.created_ms, pod.uid, key))]
        del self.keys[bisect_left(self.keys, key)]
        _count_off(self.priorities, facts.priority)
        _count_off(self.alike, part_of(pod))


class PodSetBook:
    """The pods of one pod set, and what is reserved for missing ones."""

    __slots__ = (
        "cost",
        "edge",
        "fresh",
        "holding",
        "keys",
        "order",
        "part",
        "priorities",
        "queue",
        "ready",
        "reserved",
        "size",
        "units",
        "waiting",
        "within",
    )

    def __init__(self) -> None:
        self.keys: list[str] = []  # of all its pods, in order
        self.holding: set[str] = set()  # keys; evicted pods are out of it
        #: The same, the oldest first: beyond the minimum they are growth.
        self.order: list[Age] = []
        self.priorities: Counter[int] = Counter()  # of those that hold
        self.fresh: list[Age] = []  # of those, who came since units were last kept
        self.edge: Age | None = None  # the first of those that are growth
        self.units: dict[str, tuple[str, Entry]] = {}  # a pod's key → where it stands as a unit
        self.waiting: set[str] = set()
        self.ready = Ready()  # of those that wait
        self.reserved = 0  # pods
        self.queue = ""
        self.cost: Cost = ()  # of one pod
        self.part: Part | None = None  # as it waits
        self.size: Resources = {}  # what is reserved for one pod
        self.within: set[str] = set()  # of those that wait, who could use that

    @property
    def counts(self) -> bool:
        """Whether there is any pod of it."""
        return bool(self.keys)

    @property
    def usable(self) -> list[str]:
        """The pods that open against what is reserved: the oldest of those that are not too large for it."""
        if not (self.reserved and self.within):
            return []
        return list(islice((key for _, _, key in self.ready.by_age if key in self.within), self.reserved))

    def hold(self, pod: Pod) -> None:
        age = age_of(pod)
        insort(self.keys, age[3])
        self.holding.add(age[3])
        insort(self.order, age)
        self.fresh.append(age)
        self.priorities[pod.facts.priority] += 1

    def release(self, pod: Pod) -> None:
        age = age_of(pod)
        del self.keys[bisect_left(self.keys, age[3])]
        self.holding.remove(age[3])
        del self.order[bisect_left(self.order, age)]
        _count_off(self.priorities, pod.facts.priority)

    def wait(self, pod: Pod) -> None:
        key = pod.key
        insort(self.keys, key)
        self.waiting.add(key)
        if not pod.retry_ms:
            self.ready.add(pod)
        if is_within(pod, self.size):
            self.within.add(key)

    def wait_no_more(self, pod: Pod) -> None:
        key = pod.key
        del self.keys[bisect_left(self.keys, key)]
        self.waiting.remove(key)
        self.within.discard(key)
        if not pod.retry_ms:
            self.ready.remove(pod)


def age_of(pod: Pod) -> Age:
    return (pod.admitted_ms, pod.seq, pod.uid, pod.key)


def _count_off(counter: dict[_T, int], what: _T) -> None:
    """One less; what there is none of leaves no trace."""
    left = counter[what] - 1
    if left:
        counter[what] = left
    else:
        del counter[what]
