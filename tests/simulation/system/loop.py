"""An event loop without real time and without threads, and the processes that live on it.

Time passes only when nobody has anything to do. Whatever a process does, it does in callbacks of this loop: each
belongs to the process in whose context it was made, so a process can be killed or stopped between any two awaits.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import sys
import warnings
from asyncio import events as asyncio_events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, Final, cast

#: The process to which a callback belongs; without one it is the world's.
PROCESS: Final[ContextVar[Process | None]] = ContextVar("process", default=None)


class Process:
    """One life of a service: what runs in its context runs as long as it lives, and is not stopped."""

    def __init__(self, loop: VirtualLoop, name: str) -> None:
        self.name = name
        self.alive = True
        self.steps = 0  # callbacks that have run
        self.stopped_at: float | None = None
        self._loop = loop
        self._held: list[asyncio.Handle] = []
        #: What befalls it just before its so many-th step.
        self._fuse: tuple[int, Callable[[], None]] | None = None
        self._context = copy_context()
        self._context.run(PROCESS.set, self)

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._loop.create_task(work, context=self._context)

    def kill(self) -> None:
        """As SIGKILL does: nothing of it runs again, not even what would tidy up."""
        self.alive = False
        self._held.clear()

    def stop(self) -> None:
        """As SIGSTOP does."""
        if self.stopped_at is None:
            self.stopped_at = self._loop.time()

    def go_on(self) -> None:
        """As SIGCONT does."""
        self.stopped_at = None
        held, self._held = self._held, []
        for handle in held:
            self._loop.resume(handle)

    def after_steps(self, steps: int, befall: Callable[[], None]) -> None:
        self._fuse = (self.steps + steps, befall)

    def may_step(self, handle: asyncio.Handle) -> bool:
        """Whether this callback is to run now; a stopped process keeps it."""
        if self._fuse is not None and self.steps >= self._fuse[0]:
            befall, self._fuse = self._fuse[1], None
            befall()
        if not self.alive:
            return False
        if self.stopped_at is not None:
            self._held.append(handle)
            return False
        self.steps += 1
        return True


class _Task(asyncio.Task[Any]):
    """Sets of tasks have one order in every run."""

    def __init__(self, *arguments: Any, number: int, **named: Any) -> None:
        self._number = number
        super().__init__(*arguments, **named)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop:
    """What asyncio's tasks, futures and time-outs need of a loop, and nothing else."""

    def __init__(self) -> None:
        self._now = 0.0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._numbers = count()
        self._halted = False
        #: All that there ever were: what is left of a killed process must not be collected, and so tidy up, in the
        #: middle of a run.
        self._tasks: list[asyncio.Task[Any]] = []
        #: Exceptions that nobody has awaited.
        self.unheard: list[dict[str, Any]] = []

    # ---- running

    def run_until(self, until_s: float) -> None:
        """Whatever is due before that moment."""
        before = asyncio_events._get_running_loop()
        asyncio_events._set_running_loop(cast(Any, self))
        try:
            while not self._halted and (self._ready or (self._timers and self._timers[0][0] <= until_s)):
                self._step()
        finally:
            asyncio_events._set_running_loop(before)

    def halt(self) -> None:
        """Let nothing happen any more."""
        self._halted = True

    def _step(self) -> None:
        if not self._ready:
            when, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, when)
            self._ready.append(timer)
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        process: Process | None = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is None or process.may_step(handle):
            handle._run()

    def resume(self, handle: asyncio.Handle) -> None:
        self._ready.append(handle)

    # ---- what asyncio asks for

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, cast(Any, self), context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(max(when, self._now), callback, args, cast(Any, self), context)
        heapq.heappush(self._timers, (timer.when(), next(self._numbers), timer))
        return timer

    def call_later(
        self, delay: float, callback: Any, *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time has come."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=cast(Any, self))

    def create_task(
        self, coro: Any, *, name: str | None = None, context: Context | None = None
    ) -> asyncio.Task[Any]:
        task = _Task(coro, loop=cast(Any, self), name=name, context=context, number=next(self._numbers))
        self._tasks.append(task)
        return task

    def dispose(self) -> None:
        """Collect what is left. Whatever that raises is of no interest."""
        before, sys.unraisablehook = sys.unraisablehook, lambda _: None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for things in (self._tasks, self._ready, self._timers):
                things.clear()
            gc.collect()
        sys.unraisablehook = before

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> asyncio.Future[Any]:
        """At once: there are no threads."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.unheard.append(context)
