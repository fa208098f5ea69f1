"""A service begins anew when Kafka fails it, says so meanwhile, and ends for whatever else is wrong."""

from __future__ import annotations

import asyncio

import pytest
import sluice.lifecycle
from aiohttp import ClientSession
from kafka.errors import KafkaConnectionError
from sluice.lifecycle import Health, begin_anew, serve
from sluice.settings import Settings


@pytest.fixture
def settings(unused_tcp_port: int) -> Settings:
    return Settings(http=f"127.0.0.1:{unused_tcp_port}")


async def ready(settings: Settings) -> tuple[int, str]:
    host, port = settings.http_address
    async with ClientSession() as http, http.get(f"http://{host}:{port}/readyz") as response:
        return response.status, await response.text()


async def test_it_begins_anew_as_often_as_kafka_fails(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sluice.lifecycle, "PAUSE_S", 0.01)
    failures: list[BaseException] = [
        KafkaConnectionError("nobody listens"),
        ExceptionGroup("tasks", [ExceptionGroup("more", [KafkaConnectionError("still nobody")])]),
    ]
    at_work = asyncio.Event()

    async def work(_: Settings, health: Health) -> None:
        if failures:
            raise failures.pop(0)
        health.unready = str
        at_work.set()
        await asyncio.Event().wait()

    serving = asyncio.create_task(serve(settings, work))
    await asyncio.wait_for(at_work.wait(), 10)
    assert await ready(settings) == (200, "ok\n")
    serving.cancel()


async def test_until_then_it_says_what_is_missing(settings: Settings) -> None:
    beginnings: asyncio.Queue[Health] = asyncio.Queue()

    async def work(_: Settings, health: Health) -> None:
        beginnings.put_nowait(health)
        raise ExceptionGroup("tasks", [KafkaConnectionError("nobody listens")])

    serving = asyncio.create_task(serve(settings, work))
    await beginnings.get()
    status, text = await ready(settings)
    assert status == 503
    assert "starting over" in text
    assert "nobody listens" in text
    serving.cancel()


async def test_whatever_else_fails_ends_it(settings: Settings) -> None:
    async def work(_: Settings, health: Health) -> None:
        raise ExceptionGroup("tasks", [KafkaConnectionError("nobody listens"), ValueError("a fault of ours")])

    with pytest.raises(ExceptionGroup) as raised:
        await asyncio.wait_for(serve(settings, work), 10)
    assert raised.group_contains(ValueError, match="a fault of ours")


async def test_what_fails_just_when_it_is_cancelled_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sluice.lifecycle, "PAUSE_S", 0.01)
    begun, fails = asyncio.Event(), asyncio.Event()

    async def fail() -> None:
        begun.set()
        await fails.wait()
        raise KafkaConnectionError("nobody listens")

    async def work() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())

    task = asyncio.create_task(begin_anew(work, lambda _: None))
    await begun.wait()
    fails.set()
    task.cancel()
    begun.clear()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(5):
            await task
    assert not begun.is_set()
