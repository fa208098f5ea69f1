"""Both logs as one: a readable line for each record, whatever it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from console_records import NOON_MS, admit, lines, pod, received
from contract.samples import DECISION_SAMPLES, EVENT_SAMPLES
from pydantic_core import to_json
from sluice.codec import DECISIONS, EVENTS
from sluice.decisions import Decision, ReportPool
from sluice.events import (
    Event,
    OutcomeEvent,
    PodSetFacts,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    QueueFacts,
    TickEvent,
    UnmanagedEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.kafka import Received
from sluice.values import NamespaceSelector
from sluice_console.lines import Line, LogLines, merged
from sluice_console.sentences import sentence_of


def words(line: Line) -> str:
    return " ".join(line.as_text().plain.split())


def test_a_decision_says_when_which_about_what_and_why() -> None:
    (line,) = lines(admit(7))
    assert words(line) == "12:00:00.000 decision #7 admit pod/ns/p Fits: fits into pool default"


def test_a_status_is_named_by_its_place_in_the_log() -> None:
    status = next(each for each in DECISION_SAMPLES if isinstance(each, ReportPool))
    (_, line) = lines(admit(7), status)
    assert words(line).split()[1:4] == ["decision", "@1", "reportpool"]
    refused = OutcomeEvent(
        time_ms=NOON_MS, cluster="home", seq=0, epoch="1-9", decision="reportpool", result="Failed", uid="u"
    )
    (line,) = lines(refused)
    assert words(line) == "12:00:00.000 event @0 outcome answers a status Failed"


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"gated": True}, "waits behind the gate for cpu 0.5, memory 1Gi"),
        ({"node": "n1", "phase": "Running"}, "open, on n1, Running, holds cpu 0.5, memory 1Gi"),
        ({"phase": "Succeeded"}, "Succeeded: its account is closed, cpu 0.5, memory 1Gi given back"),
        ({"gated": True, "deleting": True}, "waits behind the gate for cpu 0.5, memory 1Gi, being deleted"),
    ],
)
def test_an_event_says_what_it_tells_the_scheduler(facts: dict[str, Any], sentence: str) -> None:
    (line,) = lines(pod(**facts))
    assert words(line) == f"12:00:00.000 event @0 pod pod/ns/p MODIFIED: {sentence}"


def edited(*states: QueueFacts | PoolFacts | None) -> list[str]:
    """The sentences of these states of one object, one after another; None: it is deleted."""
    kind: Any = PoolEvent if isinstance(states[0], PoolFacts) else QueueEvent
    field = "pool" if kind is PoolEvent else "queue"
    common: dict[str, Any] = {"uid": "u", "name": "team", "cluster": "home", "resource_version": 1}
    last, records = states[0], []
    for at, state in enumerate(states):
        change = {"change": "MODIFIED" if state else "DELETED", field: state or last}
        records.append(kind(time_ms=NOON_MS + at, **change, **common))
    return [line.sentence for line in lines(*records)]


def test_an_edited_queue_says_what_was_edited_from_what_to_what() -> None:
    first = QueueFacts(
        weight=2, guaranteed={"cpu": "2", "memory": "1Gi"}, namespaces=NamespaceSelector(names=("x",))
    )
    other: dict[str, Any] = {
        "guaranteed": {"cpu": "3"},
        "reclaim": False,
        "limit_by_pool": {"p": {"cpu": "50%"}},
    }
    second = replace(first, generation=2, **other)
    assert edited(
        first, first, second, replace(second, problem="spec.parent: a circle"), None, QueueFacts()
    ) == [
        "weight 2, guaranteed.cpu 2, guaranteed.memory 1Gi, namespaces.names x",
        "as before",
        "guaranteed.cpu 2 → 3, limitByPool.p.cpu none → 50%, reclaim true → false, guaranteed.memory 1Gi → none",
        "spec.parent: a circle; as before",
        "is gone",
        "all as by default",
    ]


def test_an_edited_pool_does_so_too() -> None:
    first = PoolFacts(node_selector={"disk": "ssd"})
    assert edited(first, replace(first, node_selector={"disk": "hdd"}, supply="gpus")) == [
        "nodeSelector.disk ssd",
        "nodeSelector.disk ssd → hdd, supply none → gpus",
    ]


def test_an_outcome_names_the_decision_that_it_answers() -> None:
    (line,) = lines(
        OutcomeEvent(
            time_ms=NOON_MS,
            cluster="home",
            seq=7,
            epoch="1-9",
            decision="admit",
            result="Conflict",
            message="the gate was opened by somebody else",
        )
    )
    assert words(line) == (
        "12:00:00.000 event @0 outcome answers #7 Conflict: the gate was opened by somebody else"
    )


#: More than 64 bits hold.
GREEDY = UnmanagedEvent(time_ms=1, cluster="c", pool="p", pods=3, requests={"memory": 3 * 2**63})


@pytest.mark.parametrize(
    "record", [*EVENT_SAMPLES, *DECISION_SAMPLES, GREEDY], ids=lambda record: record.type
)
def test_every_record_has_a_line_and_loses_nothing_as_json(record: Event | Decision) -> None:
    (line,) = lines(record)
    assert len(line.as_text().plain.splitlines()) == 1
    again = to_json(line.as_json()["record"])
    codec = EVENTS if isinstance(record, Event) else DECISIONS
    assert codec.decode_as(codec.ce_type(record.type), again) == record


@pytest.mark.parametrize(
    ("headers", "value"),
    [
        ([], b"{}"),
        ([("ce_type", b"dev.sluice.event.pod.v1"), ("ce_time", b"2025-06-16T12:00:00Z")], b"\xff"),
        ([("ce_type", b"dev.sluice.event.pod.v9"), ("ce_time", b"yesterday")], None),
    ],
)
def test_what_cannot_be_read_is_shown_as_such_and_is_not_the_end(
    headers: list[tuple[str, bytes]], value: bytes | None
) -> None:
    unreadable = Received(partition=0, offset=1, key=None, value=value, headers=headers)
    log = LogLines("event")
    first, second, third = log.of([received(pod()), unreadable, received(pod(), 2)])
    assert words(second).startswith("12:00:00.000 event @1 unreadable: ")
    assert second.as_json()["error"] == second.error
    assert not first.error
    assert not third.error


def test_causes_stand_before_their_effects_and_each_log_keeps_its_order() -> None:
    events = lines(
        pod(NOON_MS), pod(NOON_MS + 50), pod(NOON_MS + 20), TickEvent(time_ms=NOON_MS + 90, cluster="c")
    )
    # Decided when the cell's time, the largest seen, was that of the second event.
    decisions = lines(admit(1, NOON_MS), admit(2, NOON_MS + 50))
    assert order(merged([events, decisions])) == ["@0", "#1", "@1", "@2", "#2", "@3"]


def order(merged_lines: object) -> Sequence[str]:
    return [
        f"#{line.seq}" if line.source == "decision" else f"@{line.offset}"
        for line in merged_lines  # type: ignore[attr-defined]
    ]


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({}, "Job, held back, asks for 3 main (at least 1)"),
        ({"released": True}, "Job, released, asks for 3 main (at least 1)"),
        ({"finished": True, "failed": True}, "Job that has failed: it holds and wants nothing"),
        ({"problem": "spec.parallelism: write 0 or more"}, "spec.parallelism: write 0 or more"),
    ],
)
def test_an_application_says_what_it_asks_for(facts: dict[str, Any], sentence: str) -> None:
    pods = PodSetFacts(name="main", count=3, min_count=1)
    known: dict[str, Any] = {"kind": "Job", "pod_sets": (pods,), "created_ms": 0}
    workload = WorkloadFacts(**known | facts)
    event = WorkloadEvent(
        time_ms=0,
        cluster="local",
        change="ADDED",
        uid="u",
        name="j",
        resource_version=1,
        workload=workload,
    )
    assert sentence_of(event) == sentence
