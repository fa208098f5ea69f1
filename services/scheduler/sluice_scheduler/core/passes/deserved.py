"""With each tick: what every branch deserves is worked out anew, as far as it has changed, and kept."""

from __future__ import annotations

from sluice_scheduler.core.state.state import State, deserved_name
from sluice_scheduler.core.stored.entities import Deserved


def work_out_deserved(state: State) -> None:
    """Decisions go by these figures until the next tick, so a worker that takes over must find the same."""
    changed = state.forest.update_deserved()
    if not changed:
        return
    state.forest.set_deserved(changed)
    known = state.deserved.get(Deserved.kind)
    shares = dict(known.shares) if known is not None else {}
    shares.update((deserved_name(branch), share) for branch, share in changed.items())
    names = {deserved_name(branch) for branch in state.forest.all_branches()}
    kept = {name: share for name, share in sorted(shares.items()) if name in names and share}
    state.deserved.put(Deserved(shares=kept))
    state.pass_due = state.report_due = True
