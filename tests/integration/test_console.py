"""`sluice` against a real Redis and a real Kafka, on a ledger that the real core and commit have written."""

from __future__ import annotations

import asyncio
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
import redis
from sluice.codec import DECISIONS, EVENTS, Message
from sluice.decisions import Decision
from sluice.events import (
    CellConfig,
    Event,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    OutcomeEvent,
    PodEvent,
    PodFacts,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    QueueFacts,
    RebuildEvent,
    SyncEvent,
    TickEvent,
)
from sluice.kafka import LogWriter, Received, dead_letter, ensure_topics
from sluice.programs import UNREAD
from sluice.settings import Settings
from sluice.values import Epoch, NamespaceSelector
from sluice_local import Stack
from sluice_scheduler.core import CORE_VERSION, State, step
from sluice_scheduler.core.fairness.policies.drf import Drf
from sluice_scheduler.ledger import Commit, Meta, OutboxEntry
from sluice_scheduler.ledger.redis import RedisLedger
from unread import unread

pytestmark = pytest.mark.integration

CELL = "console"
EPOCH = Epoch(1, 7)
KINDS = ("namespace", "node", "pod", "queue", "resourcepool")


def history(now_ms: int) -> list[Event]:
    """A cell from its beginning to two pods admitted of three."""
    config = CellConfig(cell=CELL, clusters=("home",), kinds=KINDS, policy="drf", core_version=CORE_VERSION)
    at: dict[str, Any] = {"time_ms": now_ms, "cluster": "home"}

    def new(name: str, version: int) -> dict[str, Any]:
        return at | {"change": "ADDED", "uid": f"uid-{name}", "name": name, "resource_version": version}

    def answer(seq: int, decision: str) -> OutcomeEvent:
        return OutcomeEvent(**at, seq=seq, epoch=str(EPOCH), decision=decision, result="Applied")

    def listed(kind: str, *events: Event) -> list[Event]:
        mark = SyncEvent(**at, more=True, phase="BEGIN", kind=kind, sync=kind, resource_version=50, request=2)
        return [
            mark,
            *(replace(event, more=True) for event in events),
            replace(mark, more=False, phase="END"),
        ]

    namespace = NamespaceEvent(**new("lab", 10), managed=True, queue="physics")
    queues = [
        QueueEvent(**new("science", 11), queue=QueueFacts(cell=CELL, weight=2)),
        QueueEvent(
            **new("physics", 12),
            queue=QueueFacts(parent="science", namespaces=NamespaceSelector(names=("lab",))),
        ),
    ]
    node = NodeEvent(**new("n1", 14), node=NodeFacts(allocatable={"cpu": 2000, "pods": 10}))
    pods = [
        PodEvent(
            **new(f"p{number}", 20 + number),
            namespace="lab",
            pod=PodFacts(requests={"cpu": 1000, "pods": 1}, created_ms=number, gated=True),
        )
        for number in range(3)
    ]
    return [
        RebuildEvent(**at, config=config, next_seq=1, reason="the ledger is empty"),
        answer(1, "fence"),
        *listed("namespace", namespace),
        *listed("queue", *queues),
        *listed("resourcepool", PoolEvent(**new("default", 13), pool=PoolFacts(cell=CELL))),
        *listed("node", node),
        *listed("pod", *pods),
        answer(3, "admit"),
        answer(4, "admit"),
        TickEvent(time_ms=now_ms + 1, cluster="home"),
    ]


async def write(settings: Settings, events: list[Event]) -> list[Decision]:
    """What the scheduler's shell does, once and in one batch; and an event that nobody can read."""
    await asyncio.to_thread(ensure_topics, settings)
    state, decisions = State({"drf": Drf()}), []
    for event in events:
        decisions += step(state, event)
    ledger = RedisLedger(settings.redis)
    await ledger.acquire(CELL, EPOCH)
    meta = Meta(epoch=EPOCH, topic_id="t", cluster_uid="c", next_offset=0, next_seq=1, published=1)
    await ledger.begin(CELL, meta)
    commit = Commit(
        epoch=EPOCH,
        expected_offset=0,
        next_offset=len(events) + 1,
        expected_seq=1,
        next_seq=state.cell.next_seq,
        published=1,
        changes=state.take_changes(),
        decisions=[
            OutboxEntry(seq=d.seq, epoch=EPOCH, ce_type=DECISIONS.ce_type(d.type), value=DECISIONS.value(d))
            for d in decisions
            if d.seq
        ],
    )
    await ledger.commit(CELL, commit)
    await ledger.close()
    broken = Message(key=b"", value=b"?", headers=[("ce_type", b"dev.sluice.event.pod.v1")])
    messages = [broken, *(EVENTS.encode(event, source="test") for event in events)]
    writer = LogWriter(settings)
    await writer.append(settings.events_topic, 0, messages)
    decided = [DECISIONS.encode(decision, source="test", epoch=EPOCH) for decision in decisions]
    await writer.append(settings.decisions_topic, 0, decided)
    await writer.close()
    return decisions


@pytest.fixture(scope="module")
def environment(stack: Stack) -> Iterator[dict[str, str]]:
    """A shell that is pointed at the stack, and at topics and a cell of these tests' own."""
    own = {"SLUICE_TOPICS": "console-tests", "SLUICE_CELLS": json.dumps({CELL: 0}), "SLUICE_CLUSTER": "home"}
    environment = os.environ | stack.user_env() | own
    environment.pop("COLUMNS", None)  # how wide tables may be where nobody's terminal shows them
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        asyncio.run(write(Settings(), history(time.time_ns() // 1_000_000)))
    yield environment
    keys = RedisLedger.keys(CELL)
    redis.Redis.from_url(stack.endpoints.redis).delete(*keys)


def sluice(environment: Mapping[str, str], *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sluice_console.main", *words]
    return subprocess.run(
        command, env=dict(environment) | changes, capture_output=True, text=True, check=False, timeout=120
    )


def test_queues_are_what_the_core_has_reported(environment: Mapping[str, str]) -> None:
    run = sluice(environment, "queue", "list", "--json")
    assert run.returncode == 0, run.stderr
    found = {queue["name"]: queue for queue in json.loads(run.stdout)}
    assert found.keys() == {"science", "physics"}
    assert {name: (q["running"], q["pending"]) for name, q in found.items()} == {
        "science": (2, 1),
        "physics": (2, 1),
    }
    assert found["science"]["usage"]["default/cpu"] == 2000
    assert found["science"]["dominantShare"] == "0.5000", "all of the cpu, by weight 2"


def test_queues_for_people(environment: Mapping[str, str]) -> None:
    table = sluice(environment, "queue", "list")
    assert [line.split()[0] for line in table.stdout.splitlines()] == ["QUEUE", "physics", "science"]
    tree = sluice(environment, "queue", "tree")
    assert tree.stdout.splitlines()[1].startswith("└── physics")
    one = sluice(environment, "queue", "get", "physics")
    assert "namespaces      lab" in one.stdout
    unknown = sluice(environment, "queue", "get", "physic")
    assert unknown.returncode == 1
    assert "did you mean physics?" in unknown.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "list"),
        ("queue", "tree", "--json"),
        ("status",),
        ("audit", "tail"),
        ("audit", "tail", "--follow", "--ticks"),
        ("explain", "physics"),
    ],
    ids=" ".join,
)
def test_a_reader_who_goes_away_is_told_nothing(
    environment: Mapping[str, str], words: tuple[str, ...]
) -> None:
    run = unread([sys.executable, "-m", "sluice_console.main", *words], environment)
    assert (run.returncode, run.stderr) == (UNREAD, "")


def test_the_status_names_what_is_wrong(environment: Mapping[str, str]) -> None:
    run = sluice(environment, "status", "--json")
    (cell,) = json.loads(run.stdout)["cells"]
    assert (cell["epoch"], cell["lag"]) == ("1-7", 0)
    assert cell["decided"] == cell["published"]
    (cluster,) = cell["clusters"]
    assert (cluster["name"], cluster["live"]) == ("home", True)
    assert cell["unreadable"] == 1
    assert run.returncode == 1, "an unreadable record is a problem"
    assert any("can't be read" in problem for problem in cell["problems"])


def test_the_audit_tells_the_story_in_order(environment: Mapping[str, str]) -> None:
    run = sluice(environment, "audit", "tail", "-n", "1000")
    lines = run.stdout.splitlines()
    assert "unreadable: record" in lines[0]

    def at(*words: str) -> int:
        return next(number for number, line in enumerate(lines) if all(word in line for word in words))

    assert at("rebuild", "begins anew") < at("#1 ", "fence") < at("#3 ", "admit", "pod/lab/p0")
    assert at("event", "pod/lab/p0") < at("decision #3 ")
    assert not any(" tick " in line for line in lines)


def test_the_audit_for_machines_is_cut_to_what_is_asked_for(environment: Mapping[str, str]) -> None:
    run = sluice(environment, "audit", "tail", "-n", "2", "--decisions", "--json")
    records = [json.loads(line) for line in run.stdout.splitlines()]
    assert [record["source"] for record in records] == ["decision", "decision"]
    assert all(record["record"]["cell"] == CELL for record in records)


def test_the_audit_follows(environment: Mapping[str, str]) -> None:
    command = [sys.executable, "-m", "sluice_console.main", "audit", "tail", "-f", "-n", "1", "--ticks"]
    with subprocess.Popen(command, env=dict(environment), stdout=subprocess.PIPE) as following:
        assert following.stdout
        os.set_blocking(following.stdout.fileno(), False)
        assert _read_until(following.stdout, b"reportpool")
        late = TickEvent(time_ms=time.time_ns() // 1_000_000, cluster="far-away")
        with pytest.MonkeyPatch.context() as patch:
            for name, value in environment.items():
                patch.setenv(name, value)
            message = EVENTS.encode(late, source="test")
            asyncio.run(_append(Settings(), message, topic="console-tests.events.v1"))
        assert _read_until(following.stdout, b" tick ")
        following.terminate()


def test_servers_that_do_not_answer_are_told_with_a_remedy(environment: Mapping[str, str]) -> None:
    for words, change, told in (
        (["queue", "list"], {"SLUICE_REDIS": "redis://127.0.0.1:1/0"}, "Redis at 127.0.0.1:1/0"),
        (["status"], {"SLUICE_KAFKA": "127.0.0.1:1"}, "Kafka at 127.0.0.1:1"),
        (["audit", "tail"], {"SLUICE_TOPICS": "nowhere"}, "no topic nowhere.decisions.v1"),
        (["queue", "list"], {"SLUICE_CELLS": '{"moon": 0}'}, "there is no ledger of cell moon yet"),
    ):
        run = sluice(environment, *words, **change)
        assert run.returncode == 1
        assert told in run.stderr
        assert "remedy: " in run.stderr
        assert "Traceback" not in run.stderr


def test_dead_letters_are_shown_with_why_and_whence(environment: Mapping[str, str]) -> None:
    assert sluice(environment, "audit", "dead-letters").stdout == "no dead letters\n"
    broken = Received(partition=0, offset=17, key=b"k", value=b"?!", headers=[("ce_type", b"x")])
    letter = dead_letter(broken, topic="console-tests.events.v1", error="no idea")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        asyncio.run(_append(Settings(), letter, topic="dlq.console-tests.events.v1"))
    assert sluice(environment, "audit", "dead-letters").stdout.splitlines() == [
        "console-tests.events.v1@17: no idea",
        "    ?!",
    ]
    shown = json.loads(sluice(environment, "audit", "dead-letters", "--json").stdout)
    assert (shown["error"], shown["value"], shown["headers"]) == ("no idea", "?!", {"ce_type": "x"})
    (cell,) = json.loads(sluice(environment, "status", "--json").stdout)["cells"]
    assert cell["deadLetters"] == 1


async def _append(settings: Settings, message: Message, *, topic: str) -> None:
    writer = LogWriter(settings)
    await writer.append(topic, 0, [message])
    await writer.close()


def _read_until(stream: Any, wanted: bytes, *, within_s: float = 60) -> bool:
    deadline, read = time.monotonic() + within_s, b""
    while wanted not in read and time.monotonic() < deadline:
        select.select([stream], [], [], 1.0)
        read += stream.read() or b""
    return wanted in read
