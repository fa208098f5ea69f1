"""Setting aside: what raised an exception is worked on no more, so that everybody else's work goes on.

It keeps what it holds, is admitted nothing, is taken nothing and keeps no room; of its news only its end counts.
What raises even so is *stuck*: it is not touched at all. Another version of the core takes all up again, and has
everything listed anew, for what has happened to it meanwhile was passed over.

Afterwards everything is derived from the entities, as by a worker that takes over: so that is what holds for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sluice.decisions import Notice
from sluice.events import ObjectEvent, PodEvent, SetAsideEvent

from sluice_scheduler.core.state.conditions import set_aside_because
from sluice_scheduler.core.state.members import application_key, part_of_application, queue_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.core.stored.entities import PASS, RECORD, STATUS, Aside, Pool, Queue, TrackedObject

#: So many records that were passed over are remembered, to be shown.
RECORDS_MAX: Final = 20


def set_aside(state: State, events: Sequence[SetAsideEvent]) -> None:
    """Set aside all that is to be just before one record. What is set aside for the second time is stuck."""
    if not state.begun:
        return  # there is nothing yet
    for event in events:
        known = state.aside(event.what)
        if known is not None:
            known.stuck = True
            state.asides.put(known)
        else:
            _put_aside(state, event)
        if event.what.startswith((f"{Queue.kind}/", f"{Pool.kind}/")):
            state.cell.rules_due = True
            state.cells.put(state.cell)
    _forget_old_records(state)
    state.derive()
    for event in events:
        pod = state.pods.get(event.what)
        if pod is not None and not state.is_stuck(event.what) and state.is_live(pod.cluster):
            sentence = set_aside_because(state, event.what)
            state.decide(Notice(**state.about(pod), about="pod", reason="SetAside", sentence=sentence))


def _put_aside(state: State, event: SetAsideEvent) -> None:
    state.asides.put(
        Aside(
            what=event.what,
            name=_name_of(state, event.what),
            reason=event.reason,
            core_version=state.config.core_version,
            since_ms=state.now_ms,
        )
    )
    for promise in list(state.promises):
        if event.what in _owners(state, promise.claim):
            state.promises.drop(promise.key)
    for turn in list(state.turns):
        if event.what in _owners(state, turn.claim):
            state.turns.drop(turn.key)


def _name_of(state: State, what: str) -> str:
    """The name under which people know it; empty if there is none."""
    key = what.removeprefix(STATUS)
    kind, _, place = key.partition("/")
    if kind == "group":
        return "/".join(place.split("/")[1:])
    found = state.table(kind).get(key) if state.has_table(kind) else None
    if not isinstance(found, TrackedObject):
        return ""
    return f"{found.namespace}/{found.name}" if found.namespace else found.name


def _owners(state: State, claim: str) -> tuple[str, str]:
    return application_key(state, claim), part_of_application(state, claim)


def _forget_old_records(state: State) -> None:
    passed = [each for each in state.asides if each.what.startswith((RECORD, PASS))]
    passed.sort(key=lambda each: int(each.what.rpartition("/")[2]))
    for each in passed[:-RECORDS_MAX]:
        state.asides.drop(each.key)


def is_passed_over(state: State, key: str, event: ObjectEvent) -> bool:
    """Something that is set aside is passed over, except for its end, because others wait for what it holds."""
    if not state.is_aside(key):
        return False
    ends = event.change == "DELETED" or (isinstance(event, PodEvent) and event.pod.finished)
    return not ends or state.is_stuck(key)


def forget_aside(state: State, key: str) -> None:
    """An object that is gone is set aside no longer, and neither is an application that has neither object nor pods."""
    if not len(state.asides):
        return
    gone = {key, STATUS + key}
    for aside in state.asides:
        what, (kind, _, _) = aside.what, aside.what.partition("/")
        if (kind == "group" and application_key(state, what) == what and not queue_of(state, what)) or (
            kind == Workload.kind and aside.name and what not in state.workloads
        ):
            gone |= {what, STATUS + what}
    for what in sorted(gone):
        state.asides.discard(f"{Aside.kind}/{what}")
    state.report_due = True
    if any(what.startswith(("group/", f"{Workload.kind}/")) for what in gone):
        state.derive()  # it is there again, and its pods are what they say they are
