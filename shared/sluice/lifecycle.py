"""How a service ends."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


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
