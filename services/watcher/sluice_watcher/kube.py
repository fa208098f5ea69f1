"""The port to a cluster's API server, and its real adapter: the only module that touches `sluice.kube`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

import aiohttp
from sluice.kube import Answer, KubeClient, Unreachable

__all__ = ["Cluster", "Gone", "KubeCluster", "NotServed", "Page", "Refused", "Unreachable"]

#: A list of 500 large pods from a busy API server takes seconds, not minutes.
LIST_TIMEOUT_S: Final = 60


class Refused(Exception):  # noqa: N818 - reads as what it says
    """The API server answered, and not with what was asked for."""

    def __init__(self, status: int, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status
        self.retry_after_s = retry_after_s


class Gone(Refused):
    """410: what the server remembers begins after the resourceVersion or continue token that was given."""


class NotServed(Refused):
    """404: nobody has installed this kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of a list. All pages of one list share its resourceVersion; an empty token ends it."""

    items: list[dict[str, Any]]
    version: str
    token: str


class Cluster(Protocol):
    """What the reflector needs of an API server. Both calls raise Refused or Unreachable."""

    async def page(self, path: str, *, limit: int, token: str) -> Page:
        """The next part of a consistent list: the first for an empty token."""

    def watch(
        self, path: str, *, version: str, timeout_s: int, silence_s: float
    ) -> AsyncGenerator[list[bytes], None]:
        """Watch events after `version`, each a line of JSON, grouped as they arrived.

        Ends when the server ends it, after `timeout_s` at the latest; raises Unreachable after `silence_s`
        without a byte.
        """


class KubeCluster:
    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def page(self, path: str, *, limit: int, token: str) -> Page:
        query = {"limit": str(limit)}
        if token:
            query["continue"] = token
        answer = await self._client.request("GET", path, query=query, timeout_s=LIST_TIMEOUT_S)
        if not answer.ok:
            raise refusal(answer)
        try:
            listed = answer.json()
            metadata = listed["metadata"]
            return Page(
                items=listed["items"] or [],
                version=metadata["resourceVersion"],
                token=metadata.get("continue", ""),
            )
        except (ValueError, LookupError, TypeError) as error:
            raise Refused(answer.status, f"this is no list of objects: {answer.message}") from error

    async def watch(
        self, path: str, *, version: str, timeout_s: int, silence_s: float
    ) -> AsyncGenerator[list[bytes], None]:
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(timeout_s),
        }
        try:
            async with self._client.stream(path, query=query, silence_s=silence_s) as response:
                if response.status != 200:
                    raise refusal(Answer(response.status, await response.read()))
                async with aclosing(_lines(response.content)) as arrivals:
                    async for lines in arrivals:
                        yield lines
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Unreachable(f"watch {path}: {error or type(error).__name__}") from error


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[list[bytes], None]:
    """Whole lines, as many as have arrived. (The reader's own `readline` refuses some pods as too long.)"""
    rest = b""
    while chunk := await content.readany():
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield lines


def refusal(answer: Answer) -> Refused:
    kind = {404: NotServed, 410: Gone}.get(answer.status, Refused)
    return kind(answer.status, answer.message, answer.retry_after_s)
