"""List, watch, and list again: whatever the API server does, what is seen adds up to what is there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest
from fakes.cluster import FakeCluster
from prometheus_client import REGISTRY
from sluice.events import Change
from sluice_watcher.kube import Gone, Refused, Unreachable
from sluice_watcher.reflector import ABSENT_PAUSE_S, ABSENT_VERSION, PAGE_SIZE, Reflector

PODS = "/api/v1/pods"


class Recorder:
    """An observer that keeps what it is told, and the objects that this adds up to."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.marks: list[tuple[str, int, dict[str, int]]] = []
        self.objects: set[str] = set()
        self._listed: set[str] = set()
        self._room = asyncio.Event()
        self._room.set()

    def begin(self, version: int, requests: Mapping[str, int]) -> None:
        self.told.append("BEGIN")
        self.marks.append(("BEGIN", version, dict(requests)))
        self._listed = set()

    def listed(self, listed: dict[str, Any]) -> None:
        self.told.append(listed["metadata"]["name"])
        self._listed.add(listed["metadata"]["name"])

    def end(self, version: int, requests: Mapping[str, int]) -> None:
        self.told.append("END")
        self.marks.append(("END", version, dict(requests)))
        self.objects = self._listed

    def changed(self, changed: dict[str, Any], change: Change) -> None:
        name = changed["metadata"]["name"]
        self.told.append(f"{change} {name}")
        (self.objects.discard if change == "DELETED" else self.objects.add)(name)

    def fill(self) -> None:
        self._room.clear()

    def drain(self) -> None:
        self._room.set()

    async def room(self) -> None:
        await self._room.wait()

    async def flushed(self) -> None:
        await self._room.wait()


class World:
    """A reflector on a fake cluster, in a world where sleeping takes no time."""

    def __init__(self) -> None:
        self.cluster = FakeCluster(PODS)
        self.observer = Recorder()
        self.naps: list[float] = []
        self.reflector = self.make_reflector()

    def make_reflector(self, *, optional: bool = False) -> Reflector:
        return Reflector(
            "pod",
            PODS,
            optional=optional,
            cluster=self.cluster,
            observer=self.observer,
            random=Random(1),
            sleep=self._sleep,
        )

    async def _sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(0)

    def put(self, *names: str) -> None:
        for name in names:
            self.cluster.put(PODS, name)

    @asynccontextmanager
    async def reflecting(self) -> AsyncIterator[None]:
        running = asyncio.create_task(self.reflector.run())
        await self.settle()
        yield
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def settle(self, done: Callable[[], bool] = lambda: False) -> None:
        """Let everything happen that can happen now, or as much as it takes."""
        for _ in range(200):
            if done():
                return
            await asyncio.sleep(0)

    @property
    def is_up_to_date(self) -> bool:
        return self.observer.objects == {name for _, name in self.cluster.collection(PODS)}


@pytest.fixture
def world() -> World:
    return World()


def relists(reason: str) -> float:
    return REGISTRY.get_sample_value("sluice_watcher_relists_total", {"kind": "pod", "reason": reason}) or 0.0


async def test_it_lists_and_then_watches(world: World) -> None:
    world.put("a", "b")
    async with world.reflecting():
        world.put("c", "a")
        world.cluster.delete(PODS, "b")
        await world.settle()
    assert world.observer.told == ["BEGIN", "a", "b", "END", "ADDED c", "MODIFIED a", "DELETED b"]
    assert world.observer.marks == [("BEGIN", 102, {}), ("END", 102, {})]
    assert world.cluster.watches == [(PODS, "102")]


async def test_a_long_list_comes_in_pages_and_waits_for_room(world: World) -> None:
    world.put(*(f"pod-{number}" for number in range(2 * PAGE_SIZE + 1)))
    world.observer.fill()
    async with world.reflecting():
        assert len(world.observer.told) == 1 + PAGE_SIZE  # what a page brings, and not more
        world.observer.drain()
        await world.settle()
        assert len(world.observer.objects) == 2 * PAGE_SIZE + 1
        assert world.reflector.synced.is_set()


async def test_it_is_synced_only_when_the_list_is_acknowledged(world: World) -> None:
    async with world.reflecting():
        assert world.reflector.synced.is_set()
    world = World()
    world.observer.fill()
    async with world.reflecting():
        assert not world.reflector.synced.is_set()


async def test_a_watch_waits_for_room(world: World) -> None:
    async with world.reflecting():
        world.observer.fill()
        world.put("a")
        await world.settle()
        world.put("b", "c")
        await world.settle()
        assert world.observer.told[2:] == ["ADDED a"]
        world.observer.drain()
        await world.settle()
        assert world.observer.told[2:] == ["ADDED a", "ADDED b", "ADDED c"]


# ---- where the server has forgotten


async def test_gone_in_a_list_begins_another(world: World) -> None:
    world.put(*(f"pod-{number}" for number in range(PAGE_SIZE + 1)))
    world.cluster.page_faults.extend([None, Gone(410, "continue token is too old")])
    before = relists("gone")
    async with world.reflecting():
        assert world.is_up_to_date
    assert world.observer.told.count("BEGIN") == 2
    assert world.observer.told.count("END") == 1
    assert relists("gone") == before + 1


async def test_gone_in_answer_to_a_watch_begins_another_list(world: World) -> None:
    async with world.reflecting():
        world.put("a")
        await world.settle()
        world.cluster.break_off(PODS)
        world.cluster.delete(PODS, "a")
        world.cluster.forget()
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "ADDED a", "BEGIN", "END"]


async def test_gone_inside_a_watch_begins_another_list(world: World) -> None:
    async with world.reflecting():
        world.put("a")
        world.cluster.say_error(PODS, 410)
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "ADDED a", "BEGIN", "a", "END"]


async def test_any_other_error_inside_a_watch_begins_another_list_too(world: World) -> None:
    before = relists("status 500")
    async with world.reflecting():
        world.cluster.say_error(PODS, 500)
        await world.settle()
        world.put("a")
        await world.settle()
        assert world.is_up_to_date
    assert relists("status 500") == before + 1


# ---- where a watch goes on


@pytest.mark.parametrize(
    "how",
    [
        None,
        Unreachable("connection reset"),
        Unreachable("silence"),
        Refused(429, "busy"),
        Refused(503, "starting"),
    ],
)
async def test_a_watch_that_ends_goes_on_from_the_last_event(world: World, how: Exception | None) -> None:
    async with world.reflecting():
        world.put("a", "b")
        await world.settle()
        world.cluster.break_off(PODS, how)
        world.put("c")  # before anybody watches again
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "ADDED a", "ADDED b", "ADDED c"]
    assert [version for _, version in world.cluster.watches] == ["100", "102"]


async def test_a_bookmark_moves_on_without_being_told(world: World) -> None:
    async with world.reflecting():
        world.put("a")
        for _ in range(5):
            world.cluster.bookmark(PODS)
        await world.settle()
        world.cluster.forget()  # all but what the bookmark has seen
        world.cluster.break_off(PODS)
        await world.settle()
    assert world.observer.told == ["BEGIN", "END", "ADDED a"]
    assert [version for _, version in world.cluster.watches] == ["100", "106"]


async def test_half_open_connections_lose_nothing(world: World) -> None:
    """The client gives up after its patience (the contract tests measure that) and finds all it missed."""
    async with world.reflecting():
        world.put("a")
        await world.settle()
        world.cluster.cut(PODS)
        world.put("b")
        world.cluster.delete(PODS, "a")
        await world.settle()
        assert not world.is_up_to_date
        world.cluster.patience_ends()
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "ADDED a", "ADDED b", "DELETED a"]


@pytest.mark.parametrize(
    "line", [b'{"type": "ADDED", "obj', b"<html>", b"[1]", b"null", b'{"error": "try later"}']
)
async def test_what_is_no_event_begins_another_list(world: World, line: bytes) -> None:
    async with world.reflecting():
        world.cluster.say(PODS, line)
        world.put("a")
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "BEGIN", "a", "END"]


# ---- trying again


async def test_a_kind_that_is_not_installed_is_tried_until_it_is(world: World) -> None:
    queues = "/apis/sluice.dev/v1alpha1/queues"
    reflector = Reflector(
        "queue", queues, cluster=world.cluster, observer=world.observer, random=Random(1), sleep=world._sleep
    )
    running = asyncio.create_task(reflector.run())
    await world.settle(lambda: len(world.naps) == 10)
    assert not reflector.synced.is_set()
    world.cluster.serve(queues)
    world.cluster.put(queues, "etl")
    await world.settle()
    running.cancel()
    assert world.observer.told == ["BEGIN", "etl", "END"]


async def test_delays_double_up_to_a_bound_with_jitter(world: World) -> None:
    world.cluster.page_faults.extend([Unreachable("no route")] * 8)
    async with world.reflecting():
        await world.settle()
        assert world.reflector.synced.is_set()
    bounds = [0.25, 0.5, 1, 2, 4, 8, 8, 8]
    assert len(world.naps) == len(bounds)
    assert all(bound / 2 <= nap <= bound for nap, bound in zip(world.naps, bounds, strict=True))
    assert len(set(world.naps)) == len(world.naps)


async def test_a_delay_is_no_shorter_than_the_server_asks(world: World) -> None:
    world.cluster.page_faults.append(Refused(429, "too many requests", 17.0))
    async with world.reflecting():
        assert world.naps == [17.0]


async def test_success_begins_the_delays_anew(world: World) -> None:
    world.cluster.page_faults.extend([Unreachable("no route")] * 4)
    async with world.reflecting():
        world.put("a")
        await world.settle()
        world.cluster.break_off(PODS, Unreachable("reset"))
        await world.settle()
    assert world.naps[-1] <= 0.25


async def test_a_server_that_hangs_up_at_once_is_not_asked_in_a_tight_loop(world: World) -> None:
    async with world.reflecting():
        for _ in range(4):
            world.cluster.break_off(PODS)
            await world.settle()
    assert len(world.naps) == 4
    assert world.naps[3] > world.naps[0]


# ---- lists that are asked for


async def test_a_list_may_be_asked_for_while_watching(world: World) -> None:
    async with world.reflecting():
        world.put("a")
        await world.settle()
        world.reflector.relist("resync", cell="one", request=7)
        world.reflector.relist("resync", cell="two", request=8)
        await world.settle()
        world.put("b")
        await world.settle()
        assert world.is_up_to_date
    assert world.observer.told == ["BEGIN", "END", "ADDED a", "BEGIN", "a", "END", "ADDED b"]
    assert world.observer.marks[2:] == [
        ("BEGIN", 101, {"one": 7, "two": 8}),
        ("END", 101, {"one": 7, "two": 8}),
    ]


async def test_a_list_asked_for_during_a_list_comes_after_it(world: World) -> None:
    world.observer.fill()
    async with world.reflecting():
        world.reflector.relist("resync", cell="one", request=7)
        await world.settle()
        assert world.observer.told == ["BEGIN"]
        world.observer.drain()
        await world.settle()
    assert world.observer.told == ["BEGIN", "END", "BEGIN", "END"]
    assert [requests for _, _, requests in world.observer.marks] == [{}, {}, {"one": 7}, {"one": 7}]


async def test_a_request_survives_a_list_that_fails(world: World) -> None:
    async with world.reflecting():
        world.cluster.page_faults.append(Unreachable("no route"))
        world.reflector.relist("resync", cell="one", request=7)
        await world.settle()
        world.reflector.relist("route changed")
        await world.settle()
    assert [requests for _, _, requests in world.observer.marks[2:]] == [{"one": 7}, {"one": 7}, {}, {}]


async def test_a_list_asked_for_while_waiting_to_try_again(world: World) -> None:
    async with world.reflecting():
        world.cluster.watch_faults.extend([Unreachable("no route")] * 3)
        world.cluster.break_off(PODS)
        await world.settle(lambda: len(world.cluster.watch_faults) == 1)
        world.reflector.relist("route changed")
        await world.settle()
        world.put("a")
        await world.settle()
        assert world.is_up_to_date


async def test_a_kind_that_nobody_has_installed_is_empty_until_somebody_does(world: World) -> None:
    world.cluster = FakeCluster()
    world.reflector = world.make_reflector(optional=True)
    async with world.reflecting():
        assert world.observer.marks == [("BEGIN", ABSENT_VERSION, {}), ("END", ABSENT_VERSION, {})]
        assert world.reflector.synced.is_set()
        world.reflector.relist("resync", cell="one", request=7)
        await world.settle()
        assert world.observer.marks[2:] == [
            ("BEGIN", ABSENT_VERSION, {"one": 7}),
            ("END", ABSENT_VERSION, {"one": 7}),
        ]
        assert min(world.naps[1:]) >= ABSENT_PAUSE_S
        world.cluster.serve(PODS)
        world.put("a")
        await world.settle(lambda: world.is_up_to_date)
    assert world.observer.told[-3:] == ["BEGIN", "a", "END"]


async def test_a_kind_that_is_uninstalled_leaves_nothing_behind(world: World) -> None:
    world.reflector = world.make_reflector(optional=True)
    world.put("a")
    async with world.reflecting():
        world.cluster.withdraw(PODS)
        world.cluster.break_off(PODS)
        await world.settle(lambda: not world.observer.objects)
    assert world.observer.marks[-1] == ("END", ABSENT_VERSION, {})


async def test_a_kind_that_has_to_be_there_is_waited_for(world: World) -> None:
    world.cluster = FakeCluster()
    world.reflector = world.make_reflector()
    async with world.reflecting():
        assert not world.reflector.synced.is_set()
        assert world.observer.marks == []


async def test_a_list_that_is_asked_for_cuts_a_pause_short(world: World) -> None:
    pausing = asyncio.Event()

    async def sleep_for_ever(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    world.cluster = FakeCluster()
    world.reflector = Reflector(
        "pod",
        PODS,
        optional=True,
        cluster=world.cluster,
        observer=world.observer,
        random=Random(1),
        sleep=sleep_for_ever,
    )
    async with world.reflecting():
        await pausing.wait()
        world.reflector.relist("resync", cell="one", request=7)
        await world.settle()
    assert world.observer.marks[-1] == ("END", ABSENT_VERSION, {"one": 7})
