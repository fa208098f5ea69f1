"""Setting aside: what raised an exception is worked on no more, so that everybody else's work goes on.

It keeps what it holds, is admitted nothing and is taken nothing; news of it is passed over. Another version of
the core takes it up again; what has happened to it meanwhile comes with the next list.
"""

from __future__ import annotations

from sluice.events import Event, ObjectEvent, SetAsideEvent

from sluice_scheduler.core.state.members import application_by_claim
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import Aside


def subject_of(event: Event) -> str:
    """What a record is about, as far as that can be set aside."""
    if isinstance(event, ObjectEvent):
        return f"{event.type}/{event.cluster}/{event.uid}"
    return event.type


def is_passed_over(state: State, event: Event) -> bool:
    return isinstance(event, ObjectEvent) and state.is_aside(subject_of(event))


def on_set_aside(state: State, event: SetAsideEvent) -> None:
    """The same may be read twice: when it was met, and where it stands in the log."""
    if state.is_aside(event.what):
        return
    state.asides.put(
        Aside(
            what=event.what,
            reason=event.reason,
            core_version=state.config.core_version,
            since_ms=state.now_ms,
        )
    )
    app = application_by_claim(state, event.what) if event.what.count("/") > 1 else None
    keys = [event.what]
    if app is not None:
        state.unsettled.pop(app.key, None)
        keys += [
            *map(app.replica_key, app.replicated),
            *(k for book in app.books.values() for k in book.waiting),
        ]
    for key in keys:
        state.forest.leave(key)
    state.report_due = True
