"""All properties of the core by name, and on which histories each is asked: for tests, the soak and what was kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from guarded import GUARDED
from histories import contents, faults, gangs_apart, restless_jobs
from hypothesis import strategies as st
from object_histories import object_histories
from pools import cuts, shares_are_the_same_however_nodes_are_cut
from properties import PROPERTIES, Content, only_a_lowered_bound_is_passed
from rest import no_owed_claim_waits_at_rest, small_cells
from taken_over import whoever_takes_over_decides_the_same
from waits import (
    an_older_ledger_steps_to_the_same,
    guarantees_are_met_at_rest,
    streams,
    what_is_deserved_is_not_taken,
    who_can_fit_is_served_in_time,
)

POLICIES: Final = ("drf", "drf", "drf", "usage-drf", "fifo", "priority")


def anything() -> st.SearchStrategy[Content]:
    """In some histories not all that is decided can be done."""
    mixed = contents(policies=POLICIES, busy=True)
    return st.builds(_with_flaky, st.one_of(mixed, mixed, gangs_apart()), st.booleans())


def _with_flaky(content: dict[str, Any], flaky: bool) -> Content:
    return {**content, "flaky": flaky}


def faulty() -> st.SearchStrategy[Content]:
    """In these something raises."""
    return st.builds(_with_fault, anything(), faults())


def _with_fault(content: dict[str, Any], fault: dict[str, int]) -> Content:
    return {**content, "fault": fault}


def restless() -> st.SearchStrategy[Content]:
    """Applications that change their minds, or whatever else there is."""
    return st.one_of(restless_jobs(), anything())


Check = Callable[[Content], None]
Histories = Callable[[], st.SearchStrategy[Content]]

HISTORIES: Final[dict[Check, Histories]] = {
    **dict.fromkeys(PROPERTIES, anything),
    **dict.fromkeys(GUARDED, faulty),
    an_older_ledger_steps_to_the_same: anything,
    only_a_lowered_bound_is_passed: restless,
    what_is_deserved_is_not_taken: small_cells,
    shares_are_the_same_however_nodes_are_cut: cuts,
    no_owed_claim_waits_at_rest: small_cells,
    guarantees_are_met_at_rest: small_cells,
    who_can_fit_is_served_in_time: streams,
    whoever_takes_over_decides_the_same: object_histories,
}
CHECKS: Final = {check.__name__: check for check in HISTORIES}
