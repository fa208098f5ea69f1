"""Statuses that are told again: those that could not be written, and those that may have been lost.

What was last told is committed with everything else, but the statuses themselves are in no outbox: after a
take-over those are told again of which nobody knows that they are in Kafka.
"""

from __future__ import annotations

from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import JOB_REPORT, Report


def tell_again(state: State, report: Report) -> None:
    """With the next tick that has room for it, as what it is about stands then."""
    report.retry = True
    state.reports.put(report)
    workload = report.about.removesuffix(JOB_REPORT)
    if workload in state.workloads:
        state.untold[workload] = None
    else:
        state.report_due = True


def tell_again_since(state: State, time_ms: int) -> None:
    """Statuses that were told at this time of the cell or later, of a state that is to be derived yet: then
    all are looked at anyway."""
    for report in state.reports:
        if report.told_ms >= time_ms:
            report.retry = True
            state.reports.put(report)
