"""How a service begins, begins anew, and ends."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any, Final

from kafka.errors import KafkaError

from sluice.settings import Settings
from sluice.telemetry import serve_health

#: Between two beginnings while Kafka is away.
PAUSE_S: Final = 1.0
_log: Final = logging.getLogger(__name__)


class Health:
    """What a service says of itself at /readyz: in a sentence what is missing, and nothing when ready."""

    def __init__(self) -> None:
        #: The present attempt's own word.
        self.unready: Callable[[], str] = lambda: "starting"

    def say(self) -> str:
        return self.unready()


async def serve(settings: Settings, work: Callable[[Settings, Health], Coroutine[Any, Any, None]]) -> None:
    """Do the work, and say at /readyz how it goes."""
    health = Health()

    def tell(problem: str) -> None:
        health.unready = lambda: problem

    async with serve_health(settings, health.say):
        await begin_anew(lambda: work(settings, health), tell)


async def begin_anew(work: Callable[[], Coroutine[Any, Any, None]], tell: Callable[[str], None]) -> None:
    """Do the work, and begin it anew whenever Kafka is what failed it, however long that lasts.

    Beginning anew is what a crash and a restart would come to, for services remember nothing that is not in
    Kafka; but nobody has to be there who restarts them. Whatever else fails ends the service.
    """
    while True:
        try:
            await apart(work())
        except* KafkaError as errors:
            problem = f"starting over: {reasons(errors)}"
            tell(problem)
            _log.warning(problem)
        await asyncio.sleep(PAUSE_S)


async def apart(work: Coroutine[Any, Any, None]) -> None:
    """Do the work in a task of its own, so that who catches what it fails with can be cancelled all the same.

    A task group that fails just when it is cancelled raises its errors alone (until Python 3.13): whoever catches
    these would go on, and nobody would hear of the cancellation again.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task})
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        raise
    task.result()


def reasons(errors: BaseExceptionGroup[Any]) -> str:
    """What failed, each once."""
    return "; ".join(dict.fromkeys(_messages(errors)))


def _messages(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [message for each in error.exceptions for message in _messages(each)]
    return [str(error)]


async def until_told_to_stop(work: Coroutine[Any, Any, None]) -> None:
    """Run `work` until SIGTERM or SIGINT cancels it; raises what ends it otherwise."""
    task = asyncio.create_task(work)
    told = False

    def stop() -> None:
        nonlocal told
        told = True
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not told:
            raise
