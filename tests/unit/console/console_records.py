"""Records as Kafka delivers them, and their lines."""

from __future__ import annotations

from sluice.codec import DECISIONS, EVENTS
from sluice.decisions import Admit, Decision
from sluice.events import Event, PodEvent, PodFacts
from sluice.kafka import Received
from sluice.values import Epoch
from sluice_console.lines import Line, LogLines

NOON_MS = 1_750_075_200_000  # 12:00:00 UTC


def received(record: Event | Decision, offset: int = 0) -> Received:
    if isinstance(record, Event):
        message = EVENTS.encode(record, source="test")
    else:
        message = DECISIONS.encode(record, source="test", epoch=Epoch(1, 9))
    return Received(partition=0, offset=offset, key=message.key, value=message.value, headers=message.headers)


def pod(time_ms: int = NOON_MS, **facts: object) -> PodEvent:
    all_facts = {"requests": {"cpu": 500, "memory": 2**30, "pods": 1}, "created_ms": 0, **facts}
    return PodEvent(
        time_ms=time_ms,
        cluster="home",
        change="MODIFIED",
        uid="u",
        name="p",
        namespace="ns",
        resource_version=7,
        pod=PodFacts(**all_facts),  # type: ignore[arg-type]
    )


def admit(seq: int, time_ms: int = NOON_MS) -> Admit:
    return Admit(
        seq=seq,
        cell="default",
        cluster="home",
        time_ms=time_ms,
        reason="Fits",
        sentence="fits into pool default",
        name="p",
        namespace="ns",
        uid="u",
        queue="q",
        pool="default",
    )


def lines(*records: Event | Decision) -> list[Line]:
    source = "event" if isinstance(records[0], Event) else "decision"
    log = LogLines(source)  # type: ignore[arg-type]
    return log.of([received(record, offset) for offset, record in enumerate(records)])
