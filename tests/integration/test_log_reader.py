"""A reader of a real Kafka that has no room for more: it stays in its group, and loses nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from kafka import KafkaConsumer
from sluice.codec import Message
from sluice.kafka import SESSION_TIMEOUT_MS, LogReader, LogWriter, Position, ensure_topics
from sluice.settings import Settings
from sluice_local import Stack

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def kafka_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("read", say=print)
        stack.up(["kafka"])
        yield stack
        stack.down(purge=True)


async def test_standing_by_keeps_the_partition_and_loses_no_record(
    kafka_alone: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Longer than a member may be silent, and than one may go without polling."""
    endpoints = kafka_alone.endpoints
    settings = Settings(
        kafka=endpoints.kafka,
        kafka_username=endpoints.kafka_username,
        kafka_password=endpoints.kafka_password,
        topics="stand-by",
    )
    ensure_topics(settings)
    writer = LogWriter(settings)
    patient = partial(KafkaConsumer, max_poll_interval_ms=SESSION_TIMEOUT_MS)
    monkeypatch.setattr("sluice.kafka.KafkaConsumer", patient)
    reader = LogReader(settings, settings.events_topic, group="patient")

    async def append(count: int) -> None:
        messages = [Message(key=b"k", value=bytes(500), headers=[("ce_id", b"x")])] * count
        await writer.append(settings.events_topic, 0, messages)

    await append(5_000)
    read: list[Any] = []
    while not read:
        read += await reader.poll(0.5)
    hand_out = dict(reader.assigned)
    assert list(hand_out) == [0]
    ends = time.monotonic() + 1.5 * SESSION_TIMEOUT_MS / 1000
    rounds = 0
    while time.monotonic() < ends:
        assert await reader.stand_by(0.5) == []
        rounds += 1
    assert dict(reader.assigned) == hand_out
    assert await reader.commit({0: Position(read[-1].offset)}), "it is a member still"
    assert rounds < 500, "it is no busy loop"
    await append(1_000)
    while len(read) < 6_000:
        read += await reader.poll(0.5)
    assert [received.offset for received in read] == list(range(6_000))
    await asyncio.gather(writer.close(), reader.close())
