"""Many at once, each object's in order."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Lanes(Generic[Job]):
    """A lane for each object; the first job of every lane runs, as far as there are slots.

    A job that pauses gives its slot to others and keeps its place in the lane. It counts as waiting until it
    is done: in an outage every job pauses, and there must come an end to taking up more.
    """

    def __init__(
        self,
        tasks: asyncio.TaskGroup,
        run: Callable[[Job], Awaitable[None]],
        *,
        slots: int,
        waiting_max: int,
        makes_needless: Callable[[Job, Job], bool],
    ) -> None:
        self._tasks = tasks
        self._run = run
        self._slots = asyncio.Semaphore(slots)
        self._waiting_max = waiting_max
        self._makes_needless = makes_needless
        self._waiting = 0
        self._room = asyncio.Event()
        self._room.set()
        self._lanes: dict[Hashable, deque[Job]] = {}

    def put(self, key: Hashable, job: Job) -> Job | None:
        """Returns the waiting job, if there is one, that `job` makes needless and takes the place of."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = deque()
            self._tasks.create_task(self._drain(key, lane))
        needless = lane.pop() if lane and self._makes_needless(job, lane[-1]) else None
        lane.append(job)
        self._count(0 if needless else 1)
        return needless

    @property
    def has_room(self) -> bool:
        """Whether fewer jobs wait than may, those that run or pause among them."""
        return self._room.is_set()

    async def room(self) -> None:
        """Return once there is room."""
        await self._room.wait()

    async def pause(self, sleeping: Awaitable[None]) -> None:
        """Sleep in the middle of a job without holding up other lanes."""
        self._slots.release()
        try:
            await sleeping
        finally:
            await self._slots.acquire()

    async def _drain(self, key: Hashable, lane: deque[Job]) -> None:
        while lane:
            async with self._slots:
                await self._run(lane.popleft())
            self._count(-1)
        del self._lanes[key]

    def _count(self, change: int) -> None:
        self._waiting += change
        if self._waiting < self._waiting_max:
            self._room.set()
        else:
            self._room.clear()
