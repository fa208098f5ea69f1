"""Statuses that are written again: those that could not be written, and those that may have been lost.

The last status is committed with everything else, but statuses are in no outbox: after a take-over all those are
written again that may not have reached Kafka.
"""

from __future__ import annotations

from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.entities import JOB_REPORT, Report


def repeat_status(state: State, report: Report) -> None:
    """Write it with the next tick that has room for it, as its object stands then."""
    report.retry = True
    state.reports.put(report)
    workload = report.about.removesuffix(JOB_REPORT)
    if workload in state.workloads:
        state.status_due[workload] = None
    else:
        state.report_due = True


def repeat_statuses_since(state: State, time_ms: int) -> None:
    """Statuses that were told at this time of the cell or later, of a state that is to be derived yet: then
    all are looked at anyway."""
    for report in state.reports:
        if report.told_ms >= time_ms:
            report.retry = True
            state.reports.put(report)
