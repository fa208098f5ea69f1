"""The watcher between a real API server and a real Kafka: all that happens is in the log, whatever dies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
from sluice.applications import APPLICATION_KINDS
from sluice.events import PodEvent
from sluice_local import Stack
from sluice_watcher.kinds import watched_kinds
from watched_world import World

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

FEW, MANY = 2_000, 10_000
#: Some of them nobody has installed here.
KINDS = {kind.type for kind in watched_kinds({}, APPLICATION_KINDS)}
PATIENCE_S = 120


@pytest.fixture(scope="module")
def lean_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Kafka and an API server of this module's own, to kill, and no controllers that would interfere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        stack = Stack("watched", without=("kube-controller-manager", "kube-scheduler", "kwok"), say=print)
        stack.up(("kafka", "kubernetes"))
        patch.setenv("KUBECONFIG", str(stack.endpoints.kubeconfig))
        yield stack
        stack.down(purge=True)


@pytest.fixture
async def world(lean_stack: Stack) -> AsyncIterator[World]:
    async with World(lean_stack) as world:
        yield world
        world.kill_watcher()


@asynccontextmanager
async def unrest(world: World, namespace: str) -> AsyncIterator[None]:
    """Pods come, change and go for as long as this lasts."""

    async def stir() -> None:
        generation = 0
        while True:
            names = [f"pod-{generation}-{number}" for number in range(20)]
            await world.create_pods(namespace, names)
            await world.label_pods(namespace, names[:10], stirred="yes")
            await world.delete_pods(namespace, names[5:15])
            generation += 1

    await world.bound_namespace(namespace)
    stirring = asyncio.create_task(stir())
    await asyncio.sleep(1)
    yield
    await asyncio.sleep(1)
    stirring.cancel()
    await asyncio.wait([stirring])


async def test_changes_arrive_in_order(world: World) -> None:
    world.start_watcher()
    await world.bound_namespace("changes")
    await world.create_pods("changes", ["a"])
    await world.label_pods("changes", ["a"], seen="yes")
    await world.delete_pods("changes", ["a"])
    await world.create_pods("changes", ["b"])
    async with asyncio.timeout(PATIENCE_S):
        await world.agreement("changes")
    told = [e for e in await world.events() if isinstance(e, PodEvent) and e.namespace == "changes"]
    assert list(dict.fromkeys((e.change, e.name) for e in told)) == [
        ("ADDED", "a"),
        ("MODIFIED", "a"),
        ("DELETED", "a"),
        ("ADDED", "b"),
    ]
    assert told[0].pod.gated
    assert told[0].pod.requests == {"cpu": 100, "memory": 128 * 2**20, "pods": 1}


async def test_a_restarted_watcher_finds_what_happened_meanwhile(world: World) -> None:
    await world.bound_namespace("restart")
    await world.create_pods("restart", ["stays", "goes"])
    world.start_watcher()
    async with asyncio.timeout(PATIENCE_S):
        assert len(await world.agreement("restart")) == 2
        world.kill_watcher()
        await world.delete_pods("restart", ["goes"])
        await world.create_pods("restart", ["comes", "comes-too"])
        world.start_watcher()
        assert len(await world.agreement("restart")) == 3
    marks = await world.marks(*KINDS)
    begun = [mark.sync for mark in marks if mark.phase == "BEGIN"]
    assert len(begun) == len(set(begun))
    assert {mark.kind for mark in marks} == KINDS


async def test_requests_for_everything_are_answered_also_those_that_nobody_was_there_to_hear(
    world: World,
) -> None:
    world.start_watcher()
    await world.ask_for_everything(seq=41)
    async with asyncio.timeout(PATIENCE_S):
        await world.answer(41, KINDS)
        world.kill_watcher()
        await world.ask_for_everything(seq=42)
        world.start_watcher()
        await world.answer(42, KINDS)


async def test_nothing_is_lost_when_the_api_server_is_killed(world: World) -> None:
    world.start_watcher()
    pid = world.pid
    async with asyncio.timeout(PATIENCE_S):
        async with unrest(world, "api-server-dies"):
            for _ in range(2):
                world.stack.kill("kube-apiserver")
                await asyncio.sleep(1)
                await asyncio.to_thread(world.stack.start, "kube-apiserver")
                await asyncio.sleep(1)
        assert await world.agreement("api-server-dies")
    assert world.metric("sluice_watcher_errors_total", kind="pod") > 0
    assert world.pid == pid  # it lived through it


async def test_nothing_is_lost_when_kafka_is_killed(world: World) -> None:
    world.start_watcher()
    async with asyncio.timeout(PATIENCE_S):
        async with unrest(world, "kafka-dies"):
            for _ in range(2):
                world.stack.kill("kafka")
                await asyncio.sleep(1)
                await asyncio.to_thread(world.stack.start, "kafka")
                await asyncio.sleep(1)
        assert await world.agreement("kafka-dies")


async def test_nothing_is_lost_when_the_watcher_is_killed(world: World) -> None:
    world.start_watcher()
    async with asyncio.timeout(PATIENCE_S):
        async with unrest(world, "watcher-dies"):
            for _ in range(3):
                world.kill_watcher()
                await asyncio.to_thread(world.start_watcher)
        assert await world.agreement("watcher-dies")


async def test_memory_stays_flat_however_many_pods_are_listed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    await world.bound_namespace("crowd")
    peaks = []
    for count, first in ((FEW, 0), (MANY, FEW)):
        await world.create_pods("crowd", (f"pod-{number}" for number in range(first, count)))
        world.start_watcher()
        async with asyncio.timeout(PATIENCE_S):
            assert len(await world.agreement("crowd")) == count
        peaks.append(world.peak_memory_bytes())
        begin, end = (mark.time_ms for mark in await world.marks("pod", last=2))
        with capsys.disabled():
            print(
                f"\n{count} pods listed in {end - begin} ms; since its start the watcher used "
                f"{world.cpu_seconds():.1f} s of CPU and at most {peaks[-1] / 2**20:.0f} MiB, and appends "
                f"were acknowledged after {world.mean_lag_ms():.0f} ms on average"
            )
        world.kill_watcher()
    assert peaks[1] - peaks[0] < (MANY - FEW) * 2_000  # an object is several times that
