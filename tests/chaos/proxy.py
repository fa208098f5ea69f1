"""A small TCP proxy that can be told to lose what goes through it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

_CHUNK = 64 * 1024


class Proxy:
    """Listens on a port of its own, and passes on to `target`, which may change. Works in a thread of its own while
    it is entered."""

    def __init__(self) -> None:
        self.target = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._open = asyncio.Event()  # cleared while nothing is passed on
        self._open.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server = self._call(self._listen())
        self.port: int = self._server.sockets[0].getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def drop(self) -> int:
        """Reset all connections; how many there were."""
        return self._call(self._reset())

    def stall(self) -> None:
        """From now on connections are half-open: they stand, others are accepted, and nothing comes through."""
        self._loop.call_soon_threadsafe(self._open.clear)

    def go_on(self) -> None:
        """What was sent meanwhile is lost, with its connections: a network that comes back knows of none."""
        self.drop()
        self._loop.call_soon_threadsafe(self._open.set)

    # ---- in its own thread

    def _call(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._accept, "127.0.0.1", 0)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        try:
            there_reader, there = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, there}
        await asyncio.gather(self._pass_on(reader, there), self._pass_on(there_reader, writer))
        self._writers -= {writer, there}

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                await self._open.wait()
                writer.write(chunk)
                await writer.drain()
            writer.write_eof()

    async def _reset(self) -> int:
        found = list(self._writers)
        for writer in found:
            writer.transport.abort()
        return len(found) // 2

    async def _close(self) -> None:
        self._server.close()
        await self._reset()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
