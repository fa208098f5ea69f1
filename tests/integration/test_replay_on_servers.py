"""`sluice replay` and `sluice audit export|verify` on a real Kafka and a real Redis."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from fakes.owned_cell import until
from redis import Redis
from served_cell import ServedCell
from sluice.codec import DECISIONS, Message
from sluice.events import PodEvent, PodFacts, TickEvent
from sluice.kafka import LogReader, LogWriter, ensure_topics
from sluice.settings import Settings
from sluice_local import Stack
from sluice_scheduler.ledger.redis import RedisLedger

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

BEGAN_MS = 1_000_000
PODS = 200


@dataclass(frozen=True)
class Lived:
    settings: Settings
    environment: dict[str, str]

    def run(self, *words: object, **changes: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "sluice_console.main", *map(str, words)]
        environment = self.environment | changes
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=120
        )


@pytest.fixture(scope="module")
def lived(stack: Stack) -> Iterator[Lived]:
    """A cell with two owners one after another, who admit pods and write snapshots."""
    endpoints = stack.endpoints
    settings = Settings(
        kafka=endpoints.kafka,
        kafka_username=endpoints.kafka_username,
        kafka_password=endpoints.kafka_password,
        redis=endpoints.redis,
        topics="replay-tests",
        snapshot_records=60,
        applications=(),
    )
    redis = Redis.from_url(endpoints.redis)
    asyncio.run(live(settings, redis))
    yield Lived(settings, os.environ | stack.user_env() | {"SLUICE_TOPICS": settings.topics})
    redis.delete(*RedisLedger.keys("default"))


async def live(settings: Settings, redis: Redis) -> None:
    await asyncio.to_thread(ensure_topics, settings)
    cell = ServedCell(settings, redis, settings.redis)
    for first, end in ((0, PODS // 2), (PODS // 2, PODS)):
        async with cell.owned() as owner:
            await until(lambda owner=owner: not owner.missing)
            if not first:
                await cell.open()
            for number in range(first, end, 10):
                await admit_ten(cell, number)
            await cell.settled()
            await asyncio.sleep(1)  # the last snapshot is taken up
    await cell.topics.stop()  # type: ignore[attr-defined]
    await cell.topics.close()
    await cell.ledger.close()


async def admit_ten(cell: ServedCell, first: int) -> None:
    at_ms = BEGAN_MS + 1_000 * first
    for each in range(first, first + 10):
        pod = PodFacts(requests={"cpu": 1}, created_ms=each, gated=True)
        cell.see(PodEvent, f"pod-{each}", time_ms=at_ms, namespace="a", pod=pod)
    cell.tell(TickEvent(time_ms=at_ms, cluster=cell.settings.cluster))
    await until(lambda: cell.admitted == first + 10)


# ---- replays


@pytest.mark.parametrize(
    ("where", "begins"),
    [
        ("rebuild", "a REBUILD at offset 0"),
        ("snapshot", "a snapshot at offset"),
        ("150", "a snapshot at offset"),
        ("1970-01-01T00:18:20+00:00", "a snapshot at offset"),
    ],
)
def test_a_replay_is_identical_wherever_it_begins(lived: Lived, where: str, begins: str) -> None:
    run = lived.run("replay", "--from", where)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "identical" in run.stdout
    assert begins in run.stdout


def test_a_replay_of_an_offset_does_not_begin_with_last_month(lived: Lived) -> None:
    found = json.loads(lived.run("replay", "--from", "180", "--json").stdout)
    assert found["records"] < 150


def test_what_the_core_knew_then_is_shown(lived: Lived) -> None:
    run = lived.run("replay", "--until", "60", "--state", "a/pod-20", "--json")
    known = json.loads(run.stdout)["known"]
    assert known["state"]["pod/local/pod-pod-20"]["phase"] == "Assumed"


@pytest.mark.parametrize(
    "options", [(), ("--from", "150"), ("--pseudonyms",), ("--from", "150", "--pseudonyms")]
)
def test_a_bug_report_is_replayed_without_any_server(
    lived: Lived, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "report.gz"
    run = lived.run("audit", "export", path, *options)
    assert run.returncode == 0, run.stdout + run.stderr
    nowhere = {"SLUICE_KAFKA": "127.0.0.1:1", "SLUICE_REDIS": "redis://127.0.0.1:1/0"}
    run = lived.run("replay", path, **nowhere)
    assert run.returncode == 0, run.stdout + run.stderr
    run = lived.run("audit", "verify", path, "--replay", **nowhere)
    assert run.returncode == 0, run.stdout + run.stderr


# ---- tampering


def test_a_log_that_nobody_touched_is_in_order(lived: Lived) -> None:
    run = lived.run("audit", "verify", "--replay")
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"{PODS + 2} decisions in one chain" in run.stdout


async def copied(settings: Settings, to: str, change: Callable[[list[Message]], None]) -> None:
    """The same topics under another name, as if somebody had got hold of the broker's disk."""
    copies = settings.model_copy(update={"topics": to})
    await asyncio.to_thread(ensure_topics, copies)
    writer = LogWriter(copies)
    for name in ("events_topic", "decisions_topic", "snapshots_topic"):
        reader = LogReader(settings, getattr(settings, name))
        found = [
            Message(key=each.key or b"", value=each.value or b"", headers=each.headers)
            for each in await reader.tail(0, 10**9)
        ]
        await reader.close()
        if name == "decisions_topic":
            change(found)
        await writer.append(getattr(copies, name), 0, found)
    await writer.close()


def place_of(found: list[Message], seq: int) -> int:
    for at, message in enumerate(found):
        with suppress(ValueError):
            if DECISIONS.decode(message.headers, message.value).seq == seq:
                return at
    raise AssertionError


def edit(found: list[Message]) -> None:
    at = place_of(found, 150)
    decision: Any = DECISIONS.decode(found[at].headers, found[at].value)
    found[at] = replace(found[at], value=DECISIONS.value(replace(decision, queue="mine")))


def drop(found: list[Message]) -> None:
    del found[place_of(found, 150)]


def double(found: list[Message]) -> None:
    found.insert(place_of(found, 170), found[place_of(found, 150)])


def swap(found: list[Message]) -> None:
    one, other = place_of(found, 150), place_of(found, 151)
    found[one], found[other] = found[other], found[one]


@pytest.mark.parametrize(
    ("tamper", "named", "replays"),
    [
        (edit, "#150 was edited", "decision #150 differs in queue"),
        (drop, "#150 is missing", "the log holds no decision #150"),
        (double, "#150 stands twice", "identical"),
        (swap, "#150 is out of order: it stands behind #151", "identical"),
    ],
)
def test_what_was_tampered_with_is_named(
    lived: Lived, tamper: Callable[[list[Message]], None], named: str, replays: str
) -> None:
    topics = f"tampered-{tamper.__name__}"
    asyncio.run(copied(lived.settings, topics, tamper))
    run = lived.run("audit", "verify", "--replay", SLUICE_TOPICS=topics)
    assert run.returncode == 1
    assert named in run.stdout, run.stdout
    assert replays in run.stdout, run.stdout


def test_topics_that_are_not_there_are_told_with_a_remedy(lived: Lived) -> None:
    for words in (("audit", "verify"), ("audit", "export", "x.gz"), ("replay",)):
        run = lived.run(*words, SLUICE_TOPICS="nowhere")
        assert run.returncode == 1
        assert "nowhere.events.v1" in run.stderr
        assert "Traceback" not in run.stderr
