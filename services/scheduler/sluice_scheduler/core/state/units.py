"""Units: what can be taken back, kept in order for each queue.

A *unit* is pods that can only be taken back together: one pod of growth (or one replica), or a whole gang.
Growth goes before gangs, lower priority before higher, and newest before oldest where nothing is chosen by size
(passes/choice.py). Each queue has two lists, its growth and its gangs, in the order in which they are protected:
who goes first stands last, where lists are cheap to change.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim, pod_cost, times
from sluice_scheduler.core.state.alike import Alike, Entry, Newest, Sizes
from sluice_scheduler.core.state.members import stands_in_no_line
from sluice_scheduler.core.stored.accounts import Pod

if TYPE_CHECKING:
    from sluice_scheduler.core.state.application import Application
    from sluice_scheduler.core.state.state import State

_priority_of = itemgetter(0)
_admission_of = itemgetter(1)


class Units:
    """What one queue's pods can be taken back as."""

    __slots__ = ("alike", "alone", "gangs", "growth", "none_before_ms")

    def __init__(self) -> None:
        self.growth: list[Entry] = []
        self.gangs: list[Entry] = []
        self.alike: Alike | None = None  # the growth by size, once a search has asked for it
        self.none_before_ms = 0  # no unit was admitted earlier
        #: Units of single pods without an application, by key, because a search meets them again and again.
        self.alone: dict[str, Unit] = {}

    def __len__(self) -> int:
        return len(self.growth) + len(self.gangs)

    def any_from(self, time_ms: int) -> bool:
        """Whether any unit was admitted then or earlier. What comes later is younger, so a bound stays one."""
        if time_ms < self.none_before_ms:
            return False
        if any(entry[1] <= time_ms for entry in chain(self.growth, self.gangs)):
            return True
        self.none_before_ms = min((entry[1] for entry in chain(self.growth, self.gangs)), default=0)
        return False

    def admitted_by(self, time_ms: int | None) -> Iterator[Entry]:
        """What was admitted then or earlier, who goes first first. Who came later costs nothing."""
        for entries in (self.growth, self.gangs):
            for begin, end in _by_priority(entries, time_ms):
                yield from Newest(entries, begin, end)

    def first_after(self, time_ms: int) -> int | None:
        """When the first was admitted that came later."""
        later = (
            entries[end][1]
            for entries in (self.growth, self.gangs)
            for _, end in _by_priority(entries, time_ms)
            if end < len(entries)
        )
        return min((admitted_ms for admitted_ms in later if admitted_ms > time_ms), default=None)

    def growth_by_size(self, state: State, time_ms: int | None) -> Iterator[tuple[Newest, Sizes]]:
        """The growth of each priority, the lowest first: in order of age, and by what pods ask for."""
        if self.alike is None:
            self.alike = Alike(self.growth)
        ranges = _by_priority(self.growth, time_ms)
        for (begin, end), sizes in zip(ranges, self.alike.by_priority(state), strict=True):
            yield Newest(self.growth, begin, end), sizes

    def gangs_by_priority(self, time_ms: int | None) -> Iterator[Newest]:
        for begin, end in _by_priority(self.gangs, time_ms):
            yield Newest(self.gangs, begin, end)

    def add(self, entry: Entry, *, growth: bool) -> None:
        self.none_before_ms = min(self.none_before_ms, entry[1])
        insort(self.growth if growth else self.gangs, entry)
        if growth and self.alike is not None:
            self.alike.add(entry)

    def remove(self, entry: Entry, *, growth: bool) -> None:
        entries = self.growth if growth else self.gangs
        at = bisect_left(entries, entry)
        assert entries[at] == entry, f"{entry} is not among its queue's units"
        del entries[at]
        self.alone.pop(entry[3], None)
        if growth and self.alike is not None:
            self.alike.remove(entry)


def _by_priority(entries: list[Entry], time_ms: int | None) -> Iterator[tuple[int, int]]:
    """Of each priority from where to where those stand that were admitted by then, the lowest first."""
    begin = len(entries)
    while begin:
        priority, end = entries[begin - 1][0], begin
        begin = bisect_left(entries, priority, hi=end, key=_priority_of)
        if time_ms is not None:
            end = bisect_left(entries, time_ms + 1, begin, end, key=_admission_of)
        yield begin, end


@dataclass(slots=True, eq=False)
class Unit:
    """Pods that go together, with what is reserved for others of their gang."""

    leaf: Branch
    pods: list[Pod]
    cost: Cost
    priority: int
    admitted_ms: int
    application: Application | None = None
    growth: bool = True

    @property
    def cluster(self) -> str:
        if self.application is not None:
            return self.application.key[0]
        return self.pods[0].cluster

    @property
    def is_whole(self) -> bool:
        """A gang that goes whole, or not at all."""
        return not self.growth

    @property
    def since_ms(self) -> int:
        """When the first of it was admitted. Whoever joins it later makes nothing of it young again: or one pod that
        asks for nothing would let all others stay for another tenure."""
        if self.is_whole:
            return self.admitted_ms
        return min(pod.admitted_ms for pod in self.pods)

    def age(self) -> tuple[int, int]:
        """When it was admitted, and by which decision."""
        app = self.application
        if self.is_whole and app is not None and app.workload is not None:
            return self.admitted_ms, app.workload.seq
        return self.admitted_ms, max((pod.seq for pod in self.pods), default=0)

    @property
    def place(self) -> tuple[int, int, str]:
        """Among those of its class, the newest last."""
        if self.is_whole:
            assert self.application is not None
            return self.admitted_ms, 0, self.application.claim_key
        return self.admitted_ms, self.pods[-1].seq, self.pods[-1].key

    @property
    def pauses(self) -> bool:
        """Whether a pod of it could not be evicted just now."""
        return any(pod.retry_ms for pod in self.pods)

    @property
    def ripe_ms(self) -> int:
        """When it has run for as long as its queue wants."""
        queue = self.leaf.queue
        return self.since_ms + queue.facts.minimum_run_ms if queue is not None else 0

    def work_ms(self, now_ms: int) -> int:
        """The running time of its pods that is lost if they go now."""
        return sum(
            now_ms - max(pod.admitted_ms, pod.facts.saved_ms) for pod in self.pods if pod.phase == "Holding"
        )


def unit_keys(unit: Unit) -> list[str]:
    """Its pods', and of a gang the claim's."""
    keys = [pod.key for pod in unit.pods]
    if unit.is_whole:
        assert unit.application is not None
        keys.append(unit.application.claim_key)
    return keys


def entry_of(pod: Pod, priority: int, key: str = "") -> Entry:
    return (-priority, pod.admitted_ms, pod.seq, key or pod.key)


def in_victims_order(
    state: State, leaf: Branch, *, pausing: bool = False, by_ms: int | None = None
) -> Iterator[Unit]:
    """A queue's units, who goes first first. `pausing`: also those that can't be evicted just now, or are set
    aside. `by_ms`: without what was admitted later."""
    units = state.units.get(leaf.name)
    if units is None:
        return iter(())
    return units_of_entries(state, leaf, units.admitted_by(by_ms), set(), pausing=pausing)


def in_order_of_protection(state: State, leaf: Branch) -> list[Unit]:
    """All of a queue's units, just the other way round."""
    return list(in_victims_order(state, leaf, pausing=True))[::-1]


def units_of_entries(
    state: State, leaf: Branch, entries: Iterable[Entry], seen: set[str], *, pausing: bool = False
) -> Iterator[Unit]:
    """`seen`: pods of replicas that had their turn."""
    units, live = state.units[leaf.name], dict[str, bool]()
    any_aside = bool(len(state.asides))
    for *_, key in entries:
        if any_aside and _is_left_out(state, key, pausing=pausing):
            continue
        unit = units.alone.get(key)
        if unit is None or unit.leaf is not leaf or unit.pods[0] is not state.pods.get(key):
            unit = unit_of(state, leaf, key)
            if unit.application is None and not unit.pods[0].application:
                units.alone[key] = unit
        if len(unit.pods) > 1 and unit.growth:
            if key in seen:
                continue
            seen.update(pod.key for pod in unit.pods)
        cluster = unit.cluster
        if cluster not in live:
            live[cluster] = state.is_live(cluster)
        if live[cluster] and (pausing or not unit.pauses):
            yield unit


def _is_left_out(state: State, key: str, *, pausing: bool) -> bool:
    pod = state.pods.get(key)
    return pod is not None and (state.is_stuck(key) or (not pausing and stands_in_no_line(state, pod)))


def unit_of(state: State, leaf: Branch, key: str) -> Unit:
    pod = state.pods.get(key)
    if pod is None:
        return whole_of(state, leaf, state.application_of_claim(key))
    app = state.application_of(pod) if pod.application else None
    if app is None or not app.admitted:
        return Unit(leaf, [pod], pod_cost(pod), pod.facts.priority, pod.admitted_ms)
    replica = app.replica_of(state, pod)
    priority = app.workload.priority if app.workload is not None else pod.facts.priority
    return Unit(leaf, replica, total_cost(replica), priority, replica[-1].admitted_ms, app)


def whole_of(state: State, leaf: Branch, app: Application) -> Unit:
    """All that an application holds, as one unit: a driver or head, of which there can be only one, goes after
    those that need it."""
    pods: list[Pod] = []
    costs: list[Cost] = []
    for name in app.drivers_last():
        book = app.books[name]
        pods += [state.pod(entry[3]) for entry in book.order]
        costs.append(times(book.cost, book.reserved))
    workload = app.workload
    priority = workload.priority if workload else max((pod.facts.priority for pod in pods), default=0)
    cost = _total([*map(pod_cost, pods), *costs])
    return Unit(leaf, pods, cost, priority, app.since_ms, app, growth=False)


def total_cost(pods: list[Pod]) -> Cost:
    return pod_cost(pods[0]) if len(pods) == 1 else _total(map(pod_cost, pods))


def _total(costs: Iterable[Cost]) -> Cost:
    total: dict[Dim, int] = {}
    add(total, chain.from_iterable(costs))
    return tuple(total.items())
