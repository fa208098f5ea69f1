"""What the scheduler counts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from sluice_scheduler.core import State
from sluice_scheduler.core.stored.entities import Entity, Queue, Report
from sluice_scheduler.ports import Commit

_PREFIX: Final = "sluice_scheduler"

TAKEOVERS = Counter(f"{_PREFIX}_takeovers_total", "Times a cell was taken over", ["cell", "result"])
ROLLBACKS = Counter(f"{_PREFIX}_rollbacks_total", "Ledgers found older than what they had decided", ["cell"])
SET_ASIDE = Counter(
    f"{_PREFIX}_set_aside_total", "Times that work on something raised an exception", ["cell"]
)
ASIDE = Gauge(
    "sluice_set_aside_things", "Things that are set aside now, for work on them raised an exception", ["cell"]
)
UNREADABLE = Counter(f"{_PREFIX}_unreadable_total", "Records set aside as dead letters", ["cell"])
DIVERGENCES = Counter(f"{_PREFIX}_divergences_total", "Decisions published before with other bytes", ["cell"])
RECORDS = Counter(f"{_PREFIX}_records_total", "Records read from the input log", ["cell"])
DECISIONS = Counter(f"{_PREFIX}_decisions_total", "Decisions committed", ["cell"])
COMMITS = Counter(f"{_PREFIX}_commits_total", "Batches committed to the ledger", ["cell"])
MISMATCHES = Counter(
    f"{_PREFIX}_mismatches_total", "Times that books, lines or sums differed from what accounts say", ["cell"]
)
VALIDATE_SECONDS = Histogram(
    f"{_PREFIX}_validate_seconds", "Time of one piece of validation", buckets=(1e-3, 1e-2, 1e-1, 1)
)
STEP_SECONDS = Histogram(
    f"{_PREFIX}_step_seconds", "Time of one step", buckets=(1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1)
)
BYPASSED = Gauge("sluice_bypassed_pods", "Open pods in bound namespaces without a decision", ["cell"])
MISDIRECTED = Gauge(
    "sluice_misdirected_pods", "Gated pods whose binding or queue label leads to no usable queue", ["cell"]
)
WAITING = Gauge(
    "sluice_waiting_pods", "Pods that wait behind the gate, as the Queue shows", ["cell", "queue"]
)
WAITING_APPLICATIONS = Gauge(
    "sluice_waiting_workloads", "Applications that wait to be admitted, as the Queue shows", ["cell", "queue"]
)
ADMITTED_APPLICATIONS = Gauge(
    "sluice_admitted_workloads", "Applications that were admitted, as the Queue shows", ["cell", "queue"]
)
LOST_WORK = Gauge(
    "sluice_lost_work_seconds", "Running time that was taken from a queue, ever", ["cell", "queue"]
)
PASS_PENDING = Gauge(
    f"{_PREFIX}_pass_pending", "1 while a pass has left something to the next records", ["cell"]
)
OFFSET = Gauge(f"{_PREFIX}_next_offset", "Where in the input log the ledger stands", ["cell"])
#: Metrics that repeat a queue's report: which field of it, and by how much that is divided.
_OF_REPORTS: Final = (
    (WAITING, "pending", 1),
    (WAITING_APPLICATIONS, "pending_workloads", 1),
    (ADMITTED_APPLICATIONS, "admitted_workloads", 1),
    (LOST_WORK, "lost_work_ms", 1000),
)
_REPORT: Final = f"{Report.kind}/{Queue.kind}/"
#: The queues whose reports were observed, by cell.
_reported: dict[str, set[str]] = {}


def observe_commit(cell: str, commit: Commit, state: State) -> None:
    RECORDS.labels(cell).inc(commit.next_offset - commit.expected_offset)
    DECISIONS.labels(cell).inc(len(commit.decisions))
    COMMITS.labels(cell).inc()
    OFFSET.labels(cell).set(commit.next_offset)
    BYPASSED.labels(cell).set(len(state.bypassed))
    MISDIRECTED.labels(cell).set(len(state.misdirected))
    if state.begun:
        PASS_PENDING.labels(cell).set(1 if state.cell.unfinished else 0)
        ASIDE.labels(cell).set(len(state.asides))
        changed = commit.changes if cell in _reported else {each.key: each for each in state.reports}
        _observe_reports(cell, changed)


def _observe_reports(cell: str, changed: Mapping[str, Entity | None]) -> None:
    """The figures in queues' statuses: observed once, when the status is written."""
    told = _reported.setdefault(cell, set())
    for key, report in changed.items():
        if not key.startswith(_REPORT):
            continue
        queue = key.removeprefix(_REPORT)
        if isinstance(report, Report):
            told.add(queue)
            for gauge, figure, unit in _OF_REPORTS:
                gauge.labels(cell, queue).set(report.figures.get(figure, 0) / unit)
        elif queue in told:
            _forget_report(cell, queue)


def _forget_report(cell: str, queue: str) -> None:
    _reported[cell].discard(queue)
    for gauge, _, _ in _OF_REPORTS:
        gauge.remove(cell, queue)


def forget(cell: str) -> None:
    """What a cell holds is told by its owner alone: who has lost it would go on telling the past."""
    for gauge in (ASIDE, BYPASSED, MISDIRECTED, OFFSET, PASS_PENDING):
        with suppress(KeyError):
            gauge.remove(cell)
    for queue in list(_reported.get(cell, ())):
        _forget_report(cell, queue)
    _reported.pop(cell, None)
