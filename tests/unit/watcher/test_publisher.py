"""In order, acknowledged, bounded; of one append only the last record asks for a scheduling pass."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest
from fakes.log import FakeLog
from sluice.events import Event, SyncEvent, TickEvent
from sluice_watcher import publisher as publisher_module
from sluice_watcher.clock import Clock
from sluice_watcher.publisher import APPEND_MAX, UNACKNOWLEDGED_MAX, Publisher, asking_once


def tick(number: int, *, more: bool = False) -> TickEvent:
    return TickEvent(time_ms=number, cluster="c", more=more)


TOPIC = "t"


def made(log: FakeLog, clock: Clock) -> Publisher:
    return Publisher(
        log,
        topic=TOPIC,
        partitions={"one": 0, "two": 1},
        source="test",
        clock=clock,
        set_aside=lambda event, value: None,
    )


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publisher_module, "PACE_S", 0.0)


@pytest.fixture
def log() -> FakeLog:
    return FakeLog()


@pytest.fixture
async def publisher(log: FakeLog) -> AsyncIterator[Publisher]:
    publisher = made(log, Clock(lambda: 0.0))
    running = asyncio.create_task(publisher.run())
    yield publisher
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


def times(events: Sequence[Event]) -> list[int]:
    return [event.time_ms for event in events]


async def test_each_cell_gets_its_records_in_order(log: FakeLog, publisher: Publisher) -> None:
    for number in range(3 * APPEND_MAX):
        publisher.put("one" if number % 3 else "two", tick(number))
        if number % 100 == 0:
            await asyncio.sleep(0)
    await publisher.flushed()
    assert times(log.events(TOPIC, 0)) == [n for n in range(3 * APPEND_MAX) if n % 3]
    assert times(log.events(TOPIC, 1)) == [n for n in range(3 * APPEND_MAX) if n % 3 == 0]


async def test_what_arrives_together_is_appended_together_and_asks_once(
    log: FakeLog, publisher: Publisher
) -> None:
    for number in range(3):
        publisher.put("one", tick(number))
    await publisher.flushed()
    assert log.appends == [3]
    assert [event.more for event in log.events(TOPIC)] == [True, True, False]


async def test_an_append_is_bounded_and_each_asks(log: FakeLog, publisher: Publisher) -> None:
    for number in range(APPEND_MAX + 1):
        publisher.put("one", tick(number))
    await publisher.flushed()
    assert log.appends == [APPEND_MAX, 1]
    assert [event.time_ms for event in log.events(TOPIC) if not event.more] == [APPEND_MAX - 1, APPEND_MAX]


async def test_what_arrives_during_an_append_is_the_next(log: FakeLog, publisher: Publisher) -> None:
    log.hold()
    publisher.put("one", tick(0))
    await asyncio.sleep(0.01)
    publisher.put("one", tick(1))
    publisher.put("one", tick(2))
    await asyncio.sleep(0.01)
    assert log.appends == [1]
    log.release()
    await publisher.flushed()
    assert log.appends == [1, 2]


async def test_it_says_for_how_long_kafka_has_not_answered(log: FakeLog) -> None:
    now_s = 100.0
    clock = Clock(lambda: now_s)
    publisher = made(log, clock)
    running = asyncio.create_task(publisher.run())
    log.hold()
    publisher.put("two", tick(0))
    await asyncio.sleep(0.01)
    now_s = 107.5
    assert publisher.stalled_ms == 7_500
    log.release()
    await publisher.flushed()
    assert publisher.stalled_ms == 0
    running.cancel()


def test_a_list_in_between_asks_for_nothing_before_its_end() -> None:
    def mark(phase: str) -> SyncEvent:
        return SyncEvent(
            time_ms=0,
            cluster="c",
            more=phase == "BEGIN",
            phase=phase,  # type: ignore[arg-type]
            kind="pod",
            sync="1",
            resource_version=1,
        )

    news, body = tick(1), tick(2, more=True)

    def more(*events: Event) -> list[bool]:
        return [event.more for event in asking_once(events)]

    assert more(news, mark("BEGIN"), body, news, body) == [True, True, True, False, True]
    assert more(body, body) == [True, True]
    assert more(news, body, mark("END")) == [True, True, False]


async def test_room_ends_when_kafka_falls_behind(log: FakeLog, publisher: Publisher) -> None:
    log.hold()
    for number in range(UNACKNOWLEDGED_MAX):
        publisher.put("one", tick(number))
    await asyncio.wait_for(publisher.room(), 1)
    publisher.put("one", tick(0))
    waiting = asyncio.create_task(publisher.room())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    assert publisher.unacknowledged == UNACKNOWLEDGED_MAX + 1
    log.release()
    await asyncio.wait_for(waiting, 5)
    await publisher.flushed()
    assert publisher.unacknowledged == 0


async def test_flushed_waits_for_what_was_put_before_and_not_for_later(
    log: FakeLog, publisher: Publisher
) -> None:
    log.hold()
    publisher.put("two", tick(0))
    waiting = asyncio.create_task(publisher.flushed())
    await asyncio.sleep(0.01)
    assert not waiting.done()
    log.release()
    await asyncio.sleep(0)
    publisher.put("two", tick(1))
    await asyncio.wait_for(waiting, 1)


async def test_a_failed_append_ends_the_publisher(log: FakeLog) -> None:
    publisher = made(log, Clock())
    log.failure = RuntimeError("Kafka did not acknowledge in time")
    publisher.put("one", tick(0))
    with pytest.raises(ExceptionGroup) as raised:
        await publisher.run()
    assert raised.value.exceptions == (log.failure,)
