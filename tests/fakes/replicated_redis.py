"""A Redis with replicas, as far as a client can tell: a real one, with WAITAOF answered on its behalf."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class ReplicatedRedis:
    """Each connection is passed on to `behind`; what it asks is noted."""

    def __init__(self, behind: str) -> None:
        self.replicas = 0  # that have everything on their disks
        #: Per connection, the commands that came on it.
        self.connections: list[list[bytes]] = []
        self._behind = behind
        self._server: asyncio.Server | None = None

    async def start(self, socket: str) -> None:
        self._server = await asyncio.start_unix_server(self._serve, socket)

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, client: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        commands: list[bytes] = []
        self.connections.append(commands)
        replies, redis = await asyncio.open_unix_connection(self._behind)
        back = asyncio.create_task(self._pass_on(replies, answer))
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                raw, words = await self._command(client)
                commands.append(words[0].upper())
                if commands[-1] == b"WAITAOF":
                    answer.write(b"*2\r\n:1\r\n:%d\r\n" % min(self.replicas, int(words[2])))
                else:
                    redis.write(raw)
        back.cancel()
        redis.close()
        answer.close()

    async def _command(self, client: asyncio.StreamReader) -> tuple[bytes, list[bytes]]:
        raw = await client.readuntil(b"\r\n")
        words = []
        for _ in range(int(raw[1:])):
            size = await client.readuntil(b"\r\n")
            word = await client.readexactly(int(size[1:]) + 2)
            words.append(word[:-2])
            raw += size + word
        return raw, words

    async def _pass_on(self, replies: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        while chunk := await replies.read(65536):
            answer.write(chunk)
