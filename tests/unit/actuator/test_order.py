"""Many at once, each object's in order."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict

from sluice_actuator.order import Lanes


async def test_each_objects_jobs_run_in_order_and_no_more_at_once_than_slots(rng: random.Random) -> None:
    done: defaultdict[str, list[int]] = defaultdict(list)
    running = most = 0

    async def run(job: tuple[str, int]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(rng.randrange(4)):
            await asyncio.sleep(0)
        running -= 1
        key, number = job
        done[key].append(number)

    async with asyncio.TaskGroup() as tasks:
        lanes = Lanes[tuple[str, int]](tasks, run, slots=5, waiting_max=1000, makes_needless=never)
        for number in range(400):
            key = f"object-{rng.randrange(20)}"
            assert lanes.put(key, (key, number)) is None
            if rng.random() < 0.1:
                await asyncio.sleep(0)
    assert sum(map(len, done.values())) == 400
    assert all(numbers == sorted(numbers) for numbers in done.values())
    assert most == 5


async def test_one_that_pauses_keeps_its_place_but_not_its_slot() -> None:
    log: list[str] = []
    awake = asyncio.Event()

    async def sleep() -> None:
        await awake.wait()

    async def run(job: str) -> None:
        log.append(f"{job} begins")
        if job == "a1":
            await lanes.pause(sleep())
        log.append(f"{job} ends")

    async with asyncio.TaskGroup() as tasks:
        lanes = Lanes[str](tasks, run, slots=1, waiting_max=1000, makes_needless=never)
        for job in ("a1", "a2", "b1"):
            lanes.put(job[0], job)
        await asyncio.sleep(0.01)
        assert log == ["a1 begins", "b1 begins", "b1 ends"]
        awake.set()
    assert log[3:] == ["a1 ends", "a2 begins", "a2 ends"]


async def test_the_last_of_those_that_wait_takes_the_place_of_what_it_makes_needless() -> None:
    done: list[str] = []

    async def run(job: str) -> None:
        done.append(job)
        await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as tasks:
        lanes = Lanes[str](
            tasks, run, slots=9, waiting_max=1000, makes_needless=lambda a, b: a[0] == b[0] == "r"
        )
        lanes.put("x", "r1")
        await asyncio.sleep(0.001)  # it runs by now, so it does not wait
        assert [lanes.put("x", job) for job in ("r2", "r3", "n4", "r5", "r6")] == [
            None,
            "r2",
            None,
            None,
            "r5",
        ]
    assert done == ["r1", "r3", "n4", "r6"]


async def test_there_is_room_again_once_fewer_wait() -> None:
    release = asyncio.Event()

    async def run(_: int) -> None:
        await release.wait()

    async with asyncio.TaskGroup() as tasks:
        lanes = Lanes[int](tasks, run, slots=1, waiting_max=2, makes_needless=never)
        await lanes.room()
        for job in range(3):
            lanes.put(job, job)
        room = tasks.create_task(lanes.room())
        await asyncio.sleep(0.001)
        assert not room.done()
        release.set()
        await room


async def test_who_pauses_still_waits() -> None:
    """In an outage every job pauses: without an end to taking up more, all decisions would be in memory."""
    awake = asyncio.Event()

    async def run(_: int) -> None:
        await lanes.pause(awake.wait())  # type: ignore[arg-type]

    async with asyncio.TaskGroup() as tasks:
        lanes = Lanes[int](tasks, run, slots=2, waiting_max=10, makes_needless=never)
        taken = 0
        while lanes.has_room and taken < 1_000:
            lanes.put(taken, taken)
            taken += 1
            await asyncio.sleep(0)
        assert taken == 10
        room = tasks.create_task(lanes.room())
        await asyncio.sleep(0.001)
        assert not room.done()
        awake.set()
        await room


def never(later: object, earlier: object) -> bool:
    return False
