"""With each tick: what every branch deserves is worked out anew, as far as it has changed, and kept."""

from __future__ import annotations

from sluice_scheduler.core.fairness.deserved import by_name, stored_name
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import Deserved


def work_out_deserved(state: State) -> None:
    """Decisions go by these figures until the next tick, so a worker that takes over must find the same."""
    changed = state.forest.update_deserved()
    if not changed:
        return
    state.forest.set_deserved(changed)
    known = state.deserved.get(Deserved.kind)
    amounts = dict(known.amounts) if known is not None else {}
    amounts.update((stored_name(branch), by_name(found)) for branch, found in changed.items())
    names = {stored_name(branch) for branch in state.forest.all_branches()}
    kept = {name: found for name, found in sorted(amounts.items()) if name in names and found}
    state.deserved.put(Deserved(amounts=kept))
    state.pass_due = state.report_due = True
