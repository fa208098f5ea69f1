"""How much of what an application asks for was granted to it."""

from __future__ import annotations

from collections.abc import Iterable

from sluice.decisions import GrantedPods

from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.minima import reclaimable
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload


def granted_pods(state: State, workload: Workload, app: Application) -> tuple[GrantedPods, ...]:
    """Pods beyond those that it spoke of are growth: it asks for as many as there are. What is reserved was
    granted, whether or not its pods have come."""
    facts = workload.facts
    asked = {each.name: each.count - reclaimable(workload, each) for each in facts.pod_sets}
    names = [*asked, *sorted(name for name, book in app.books.items() if name not in asked and book.counts)]
    found = []
    for name in names:
        book = app.book(name)
        there = len(book.holding) + len(book.waiting)
        found.append(
            GrantedPods(
                name=name,
                desired=0 if facts.finished else max(asked.get(name, 0), there),
                admitted=len(book.holding) + book.reserved,
                running=sum(1 for key in book.holding if state.pod(key).facts.phase == "Running"),
                taken=workload.taken.get(name, 0),
            )
        )
    return tuple(found)


def is_short(sets: Iterable[GrantedPods]) -> bool:
    return any(each.admitted < each.desired for each in sets)
