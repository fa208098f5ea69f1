"""Requests that travel to a server and answers that travel back, through whatever trouble the network is in.

A server acts in the world's context: a request that was sent is carried out though its sender is killed or
stopped, and one whose answer is lost was carried out all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeVar

from simulation.system.loop import VirtualLoop

T = TypeVar("T")
#: What a request takes each way, mostly; and now and then.
USUAL_S: Final = (0.0005, 0.004)
SLOW_S: Final = (0.02, 0.4)
#: Who waits for an answer gives up after so long, unless he says otherwise.
PATIENCE_S: Final = 10.0


class LostError(ConnectionError):
    """No answer came. The request may have been carried out."""


@dataclass
class Trouble:
    """What befalls requests to one server until some time."""

    until_s: float
    loses_requests: float = 0.0
    loses_answers: float = 0.0
    slows: float = 0.0


class Network:
    def __init__(self, loop: VirtualLoop, rng: Random) -> None:
        self._loop = loop
        self._rng = rng
        self._troubles: dict[str, Trouble] = {}
        self._outside = Context()

    def trouble(self, server: str, trouble: Trouble) -> None:
        self._troubles[server] = trouble

    def calm(self) -> None:
        self._troubles.clear()

    async def ask(self, server: str, serve: Callable[[], T], *, patience_s: float = PATIENCE_S) -> T:
        """What `serve` returns or raises at the server; LostError if no answer came in time."""
        future: asyncio.Future[T] = self._loop.create_future()
        loses_request, loses_answer, slows = self._draw(server)
        there_s, back_s = self._latency(slows), self._latency(slows)
        patience = self._later(patience_s, lambda: _fail(future, LostError(f"{server} does not answer")))
        if not loses_request:

            def answer(settle: Callable[[], None]) -> None:
                if not loses_answer:
                    self._later(back_s, settle)

            self._later(there_s, lambda: answer(_carried_out(serve, future)))
        try:
            return await future
        finally:
            patience.cancel()

    def delay_s(self) -> float:
        """What something takes to get from one place to another."""
        return self._latency(0.0)

    def _draw(self, server: str) -> tuple[bool, bool, float]:
        trouble = self._troubles.get(server)
        if trouble is None or trouble.until_s < self._loop.time():
            return False, False, 0.0
        first, second = self._rng.random(), self._rng.random()
        return first < trouble.loses_requests, second < trouble.loses_answers, trouble.slows

    def _latency(self, slows: float) -> float:
        slow = self._rng.random() < max(slows, 0.002)
        return self._rng.uniform(*(SLOW_S if slow else USUAL_S))

    def _later(self, delay_s: float, do: Callable[[], Any]) -> asyncio.TimerHandle:
        return self._loop.call_later(delay_s, do, context=self._outside)


def _carried_out(serve: Callable[[], T], future: asyncio.Future[T]) -> Callable[[], None]:
    try:
        result = serve()
    except Exception as error:
        failure = error
        return lambda: _fail(future, failure)
    return lambda: None if future.done() else future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever waited for it may have been killed
