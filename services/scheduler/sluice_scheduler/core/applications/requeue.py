"""Starts that came to nothing: the application goes back behind all who wait in its queue, and pauses.

It kept room that it did not use while they waited. It pauses as long as its deadline was, and twice as long after
each start in a row that came to nothing: so what never starts takes room, and decisions, less and less often.
"""

from __future__ import annotations

from typing import Final

from sluice_scheduler.core.applications.evict import evict
from sluice_scheduler.core.state.application import Application
from sluice_scheduler.core.state.offers import pause
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.state.units import whole_of
from sluice_scheduler.core.stored.accounts import Workload

#: An application pauses no longer than this, or than the deadline if that is longer; and no shorter than that.
PAUSE_MAX_MS: Final = 30 * 60_000
PAUSE_MIN_MS: Final = 1_000
#: So many applications are judged with one tick; the others with the next ones.
JUDGED_MAX: Final = 100


def requeue(
    state: State,
    app: Application,
    workload: Workload,
    *,
    failures: int,
    deadline_ms: int,
    reason: str,
    sentence: str,
) -> None:
    """`failures`: how many starts in a row have come to nothing. Its queue may be gone by now."""
    workload.requeued_ms = state.now_ms
    leaf = state.forest.leaves.get(workload.queue, state.forest.root)
    evict(state, whole_of(state, leaf, app), reason=reason, sentence=sentence)
    shortest_ms = max(deadline_ms, PAUSE_MIN_MS)
    longer_ms = shortest_ms << min(failures - 1, 20)
    pause(state, workload, state.now_ms + max(shortest_ms, min(longer_ms, PAUSE_MAX_MS)))
