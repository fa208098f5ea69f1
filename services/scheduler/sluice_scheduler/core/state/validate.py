"""Validation: whether books, lines and sums say what the accounts say.

What is derived is kept up to date piece by piece, so a piece that is forgotten would be wrong until somebody takes
the cell over. This works the same things out from the accounts alone, in other words, and says what differs. It
changes nothing, and nothing is decided by it.

A *round* begins with what one look at all accounts can tell: how many pods wait and hold, and that no index has
keys of pods that are gone. Then it goes through pods and queues, so many at a time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Cost, Dim, Group, Part, Shape, group_of, part_of, pod_cost
from sluice_scheduler.core.state.alike import Entry, size_of
from sluice_scheduler.core.state.books import PodSetBook, Ready
from sluice_scheduler.core.state.members import application_by_claim, is_replica, stands_in_no_line
from sluice_scheduler.core.state.minima import is_within
from sluice_scheduler.core.state.promises import promised_cost, promised_part
from sluice_scheduler.core.state.units import entry_of

if TYPE_CHECKING:
    from sluice_scheduler.core.state.application import Application
    from sluice_scheduler.core.state.state import State
    from sluice_scheduler.core.stored.accounts import Pod

#: A queue with more pods and claims takes too long to be added up beside other work.
_QUEUE_MAX: Final = 20_000
#: So many pods are one piece of a round.
_PODS: Final = 20


class Validation:
    """Rounds of validation, a piece at a time."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._pieces: Iterator[list[str]] = iter(())

    def go_on(self, pieces: int) -> list[str]:
        """Look at so many things more; what is wrong with them."""
        if not self._state.begun:
            return []
        found: list[str] = []
        for _ in range(pieces):
            piece = next(self._pieces, None)
            if piece is None:
                self._pieces = _round(self._state, _QUEUE_MAX)
                break
            found += piece
        return found


def validate(state: State) -> list[str]:
    """A whole round at once."""
    return [each for piece in _round(state) for each in piece] if state.begun else []


def _round(state: State, most: int | None = None) -> Iterator[list[str]]:
    """`most`: queues with more than that are not added up."""
    yield list(_counts(state))
    for key in list(state.forest.leaves):
        leaf = state.forest.leaves.get(key)
        if leaf is not None and (most is None or len(state.holders.get(key, ())) + len(leaf.line) <= most):
            yield list(_queue(state, leaf))
    for place in list(state.applications):
        app = state.applications.get(place)
        if app is not None:
            yield list(_application(state, app))
    keys = [pod.key for pod in state.pods]
    for at in range(0, len(keys), _PODS):
        found = [pod for key in keys[at : at + _PODS] if (pod := state.pods.get(key)) is not None]
        yield [each for pod in found for each in _pod(state, pod)]


# ---- all accounts together


def _counts(state: State) -> Iterator[str]:
    waiting: Counter[str] = Counter()
    holding: Counter[str] = Counter()
    for pod in state.pods:
        if pod.phase == "Waiting":
            waiting[pod.queue] += 1
        elif pod.holds:
            holding[pod.queue] += 1
    held = Counter({queue: len(keys) for queue, keys in state.holders.items()})
    for what, kept, counted in (("wait", state.waiting, waiting), ("hold", held, holding)):
        for queue in sorted(kept.keys() | counted.keys()):
            if kept[queue] != counted[queue]:
                yield f"queue {queue}: {kept[queue]} pods {what}, but {counted[queue]} accounts do"
    evicting = {key for keys in state.evicting.values() for key in keys}
    indexes: tuple[tuple[str, Iterable[str]], ...] = (
        ("bypassed", state.bypassed),
        ("misdirected", state.misdirected),
        ("assumed", state.assumed.values()),
        ("evicted", evicting),
        ("pausing", state.retries),
        ("let in", state.endings.let_in),
    )
    for name, keys in indexes:
        yield from (f"{key}: is {name}, but has no account" for key in keys if key not in state.pods)
    for key, claim in state.forest.claims.items():
        if key not in state.pods and not _is_claimed(state, key):
            yield f"{key}: stands in the line of {claim.line}, but nobody claims that"
    yield from _jobs(state)
    yield from _root(state)


def _is_claimed(state: State, key: str) -> bool:
    """Whether an application may claim something under a key: by the name of its object, if it has one."""
    app = application_by_claim(state, key)
    return app is not None and (key == app.claim_key or is_replica(key))


def _jobs(state: State) -> Iterator[str]:
    resting = {each.key: each.job.resume_ms for each in state.workloads if each.job.resume_ms}
    known = {key: until_ms for key, until_ms in state.resting.items() if key in state.workloads}
    if known != resting:
        yield f"jobs rest until {known}, but their accounts say {resting}"


def _root(state: State) -> Iterator[str]:
    """The root holds what its queues hold, and what is held by queues that are gone."""
    sums: dict[Dim, int] = {}
    for leaf in state.forest.leaves.values():
        add(sums, leaf.usage.items())
    reserved = {b.queue for app in state.applications.values() for b in app.books.values() if b.reserved}
    queues = state.holders.keys() | reserved | {promise.queue for promise in state.promises}
    for name in queues - state.forest.leaves.keys():
        add(sums, _held(state, name)[0].items())
    yield from _differ("the root", "holds", state.forest.root.usage, sums)


# ---- a queue


def _queue(state: State, leaf: Branch) -> Iterator[str]:
    name, forest = leaf.name, state.forest
    usage, leaving, wants = _held(state, name)
    for shape, count in leaf.line.counts().items():
        _want_as(wants, shape, count if shape not in leaf.out_of_reach else 0)
    yield from _differ(f"queue {name}", "holds", leaf.usage, usage)
    yield from _differ(f"queue {name}", "has leaving", leaf.leaving, leaving)
    if any(wants.values()) or leaf.wants:
        kept = {(group, at): amount for group, row in leaf.wants.items() for at, amount in enumerate(row)}
        there = {(group, at): amount for group, row in wants.items() for at, amount in enumerate(row)}
        yield from _differ(f"queue {name}", "wants", kept, there)
    for claim in leaf.line:
        if forest.claims.get(claim.key) is not claim or claim.line != name:
            yield f"{claim.key}: stands in the line of {name}, but is not known to stand there"
    yield from _sizes(state, name)
    for branch in leaf.path:
        kinds: dict[tuple[str, str], int] = {}
        add(kinds, ((forest.kind_of(dim), amount) for dim, amount in branch.usage.items()))
        yield from _differ(f"branch {branch.name}", "holds by kind", branch.held, kinds)
        if branch.children and branch is not forest.root:
            below: dict[Dim, int] = {}
            for child in branch.children:
                add(below, child.usage.items())
            yield from _differ(f"branch {branch.name}", "holds", branch.usage, below)
        for room in branch.rooms:
            if room.left != room.measure():
                yield f"{room.bound.name}: {room.left} are left of it, but {room.measure()} should be"


def _sizes(state: State, queue: str) -> Iterator[str]:
    """Whether the growth that a search finds by size is the queue's, and of that size."""
    units = state.units.get(queue)
    if units is None or units.alike is None:
        return
    standing = list(units.alike.standing())
    if sorted(entry for entry, _ in standing) != units.growth:
        yield f"queue {queue}: its growth by size is not its growth"
    for entry, cost in standing:
        pod = state.pods.get(entry[3])
        if pod is not None and cost not in (None, size_of(pod)):
            yield f"{pod.key}: stands among pods of another size"


def _held(state: State, queue: str) -> tuple[dict[Dim, int], dict[Dim, int], dict[Group, list[int]]]:
    """How much accounts, reservations and promises hold in a queue, how much is leaving, and the demand that it counts
    as."""
    usage: dict[Dim, int] = {}
    leaving: dict[Dim, int] = {}
    wants: dict[Group, list[int]] = {}
    costs: list[tuple[Cost, Part | None]] = []
    for key in state.holders.get(queue, ()):
        pod = state.pods.get(key)
        if pod is None or not pod.pool:
            continue  # who has no account is missed when accounts are counted
        if pod.evicting:
            add(leaving, pod_cost(pod))
        else:
            costs.append((pod_cost(pod), part_of(pod)))
    for app in state.applications.values():
        for book in app.books.values():
            if book.reserved and book.queue == queue:
                cost = tuple((dim, amount * book.reserved) for dim, amount in book.cost)
                costs.append((cost, book.part))
    for promise in state.promises:
        if promise.queue == queue:
            costs.append((promised_cost(promise), promised_part(state, promise)))
            add(leaving, ((dim, -amount) for dim, amount in costs[-1][0]))
    for cost, part in costs:
        add(usage, cost)
        _want(wants, *_demand_of(state, cost, part))
    return usage, leaving, wants


def _demand_of(state: State, cost: Cost, part: Part | None) -> tuple[Group, tuple[int, ...]]:
    group, amounts = group_of(cost, state.forest.kind_of)
    if part is not None and cost:
        group = state.forest.group_held(part, cost[0][0][:2])
    return group, amounts


def _want_as(wants: dict[Group, list[int]], shape: Shape, count: int) -> None:
    for group, amounts in shape.wants:
        _want(wants, group, tuple(amount * count for amount in amounts))


def _want(wants: dict[Group, list[int]], group: Group, amounts: tuple[int, ...]) -> None:
    row = wants.setdefault(group, [0] * len(amounts))
    for at, amount in enumerate(amounts):
        row[at] += amount


def _differ(who: str, verb: str, kept: dict, there: dict) -> Iterator[str]:  # type: ignore[type-arg]
    for what in sorted(kept.keys() | there.keys(), key=str):
        if kept.get(what, 0) != there.get(what, 0):
            yield f"{who} {verb} {kept.get(what, 0)} of {what}, but accounts say {there.get(what, 0)}"


# ---- an application


def _application(state: State, app: Application) -> Iterator[str]:
    name = "/".join(app.key)
    if app.is_gone and app.key not in state.unsettled:
        yield f"{name}: nothing is left of it, but it is known"
    for pod_set, book in app.books.items():
        for key in book.keys:
            pod = state.pods.get(key)
            place = (pod.cluster, pod.namespace, pod.application, pod.pod_set) if pod is not None else ()
            if place != (*app.key, pod_set):
                yield f"{key}: stands in the book of {name} for {pod_set or 'its pods'}, but is no pod of it"
        yield from _book(state, book, f"{name}: {pod_set or 'its pods'}")
    for pod_set in app.books.keys() - {each.name for each in app.pod_sets}:
        if not app.books[pod_set].counts and app.key not in state.unsettled:
            yield f"{name}: {pod_set or 'its pods'} are none, but there is a book for them"


def _book(state: State, book: PodSetBook, who: str) -> Iterator[str]:
    if [entry[3] for entry in book.order if entry[3] in book.holding] != [e[3] for e in book.order]:
        yield f"{who} are in order, but do not hold"
    if book.keys != sorted((*book.holding, *book.waiting)):
        yield f"{who} are listed, but neither hold nor wait"
    waiting = [pod for key in sorted(book.waiting) if (pod := state.pods.get(key)) is not None]
    there = Ready()
    for pod in waiting:
        if not pod.retry_ms:
            there.add(pod)
    if book.ready != there:
        yield f"{who} are ready otherwise than their accounts say"
    if book.within != {pod.key for pod in waiting if is_within(pod, book.size)}:
        yield f"{who} could use what is reserved otherwise than it is known"


# ---- a pod


def _pod(state: State, pod: Pod) -> Iterator[str]:
    key, holds = pod.key, pod.holds
    app = _application_of(state, pod)
    in_line = pod.waits and not stands_in_no_line(state, pod)
    stays = holds and not pod.evicting
    facts = (
        ("holds of its queue", key in state.holders.get(pod.queue, ()), holds),
        ("is assumed", state.assumed.get(pod.seq) == key, pod.phase == "Assumed"),
        (
            "is being evicted",
            key in state.evicting.get(pod.evicting, ()),
            bool(pod.evicting) and pod.phase != "Withdrawn",
        ),
        ("is bypassed", key in state.bypassed, pod.bypassed),
        ("is misdirected", key in state.misdirected, pod.phase == "Waiting" and bool(pod.problem)),
        ("pauses", key in state.retries, bool(pod.retry_ms) and (holds or in_line)),
        ("is let in", key in state.endings.let_in, stays and pod.until_ms > 0),
        ("stands in line", key in state.forest.claims, in_line and _is_offered(state, pod, app)),
        ("is a unit", _is_unit(state, pod, app), stays and bool(pod.pool)),
    )
    yield from _resident(state, pod)
    for what, kept, told in facts:
        if kept != told:
            yield f"{key}: {what}: {kept}, but its account says {told}"
    if app is not None:
        book = app.books.get(pod.pod_set)
        booked = (
            book is not None and key in book.holding,
            book is not None and key in book.waiting,
        )
        told_of = (stays, pod.waits and not state.is_aside(key))
        if booked != told_of:
            yield f"{key}: holds and waits in its application's books: {booked}, but its account says {told_of}"


def _resident(state: State, pod: Pod) -> Iterator[str]:
    """Whether it is known on its node, and holds of that node's pool."""
    cluster, node = pod.cluster, pod.facts.node
    if not pod.holds or not node:
        return
    if pod.key not in state.residents.of(cluster, node):
        yield f"{pod.key}: holds on node {node}, but is not known there"
    pool = state.places.pool_of(cluster, node)
    if pool not in ("", pod.pool) and not (state.cell.rules_due or state.is_stuck(pod.key)):
        yield f"{pod.key}: holds of pool {pod.pool or 'none'}, but its node is of {pool}"


def _application_of(state: State, pod: Pod) -> Application | None:
    """The one whose books it stands in; none is made by asking."""
    if not pod.application or state.is_stuck(pod.key):
        return None
    return state.applications.get((pod.cluster, pod.namespace, pod.application))


def _is_offered(state: State, pod: Pod, app: Application | None) -> bool:
    """Whether a pod that may stand in line should, by itself."""
    if pod.retry_ms or pod.queue not in state.forest.leaves or state.promise_for(pod.key) is not None:
        return False
    return app is None or (app.offered and pod.pod_set not in app.replicated)


def _is_unit(state: State, pod: Pod, app: Application | None) -> bool:
    """Whether its queue knows it as something that can be taken back. What an application holds within its minimum is
    part of a unit that is not the pod's own."""
    if app is None:
        return _stands(state, pod.queue, entry_of(pod, pod.facts.priority))
    book = app.books.get(pod.pod_set)
    if book is None or pod.key not in book.holding or not pod.pool:
        return False
    own = book.units.get(pod.key)
    return own is None or _stands(state, *own)


def _stands(state: State, queue: str, entry: Entry) -> bool:
    units = state.units.get(queue)
    if units is None:
        return False
    at = bisect_left(units.growth, entry)
    return units.growth[at : at + 1] == [entry]
