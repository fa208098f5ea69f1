"""Keeps up with one kind of a cluster's objects: list, watch, and list again when the watch can't go on.

Simple semantics: list everything, then watch from the list's resourceVersion; when anything goes wrong,
wait and start over. It differs from that in three ways, which lose nothing:

* A watch that ended, broke off or fell silent is resumed from the last event or bookmark seen.
* Lists come in pages, each passed on before the next is asked for, so memory holds one page.
* A list may be asked for at any time; the watch that it interrupts is behind it in everything.

The server has forgotten where we were (410) in three places: in a list whose continue token is too old, in
the answer to a watch, and in an ERROR event inside one. All three lead to a new list.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from random import Random
from typing import Any, Final, Protocol

import orjson
from sluice.events import Change
from sluice.texts import cut

from sluice_watcher import metrics
from sluice_watcher.backoff import Backoff
from sluice_watcher.kube import Cluster, Gone, NotServed, Page, Refused, Unreachable

log = logging.getLogger(__name__)

PAGE_SIZE: Final = 500
#: Servers end a watch after a random time in this range, so that watches don't all come back at once.
WATCH_SECONDS: Final = (240, 360)
#: A server sends a bookmark a minute, and the first within two: longer silence is a connection that only we
#: believe in. It is shorter than the watch itself, so that what a half-open socket hides is not hidden long.
SILENCE_S: Final = 150.0
#: As of this version a kind is absent that nobody has installed: no object can be newer.
ABSENT_VERSION: Final = 2**63 - 1
#: Between two looks whether such a kind has been installed since.
ABSENT_PAUSE_S: Final = 10.0
#: Answers to a watch that say nothing about where it may go on.
BUSY: Final = (429, 502, 503)


class Observer(Protocol):
    """What is told of all that is seen, in order."""

    def begin(self, version: int, requests: Mapping[str, int]) -> None: ...
    def listed(self, listed: dict[str, Any]) -> None: ...
    def end(self, version: int, requests: Mapping[str, int]) -> None: ...
    def changed(self, changed: dict[str, Any], change: Change) -> None: ...

    async def room(self) -> None:
        """Wait until more can be taken."""

    async def flushed(self) -> None:
        """Wait until all that was taken is safe."""


class Reflector:
    def __init__(
        self,
        kind: str,
        path: str,
        *,
        optional: bool = False,
        cluster: Cluster,
        observer: Observer,
        random: Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._kind = kind
        self._path = path
        self._optional = optional
        self._cluster = cluster
        self._observer = observer
        self._random = random
        self._sleep = sleep
        self._backoff = Backoff(random)
        self._version = ""
        self._reason: str | None = "start"  # why to list; None: there is no need
        self._absent = False  # it has been told that nobody has installed this kind
        self._requests: dict[str, int] = {}  # cell → the RESYNC decision to be answered
        self._interruptible: asyncio.Timeout | None = None
        self._complaint = ""
        self._heard_at = time.monotonic()
        metrics.WATCH_AGE.labels(kind).set_function(lambda: time.monotonic() - self._heard_at)
        #: Set once the first list is complete and acknowledged.
        self.synced = asyncio.Event()

    def relist(self, reason: str, *, cell: str = "", request: int = 0) -> None:
        """List again: now if watching, afterwards if a list is under way."""
        self._reason = reason
        if cell:
            self._requests[cell] = request
        if self._interruptible is not None:
            self._interruptible.reschedule(0)  # long past: ends it at once
            self._interruptible = None

    async def run(self) -> None:
        while True:
            try:
                await self._list()
                await self._until_asked(self._follow())
            except NotServed as error:
                if self._optional and (self._requests or not self._absent):
                    await self._tell_absent(error)
                self._reason = self._reason or _label(error)
                await self._until_asked(self._pause(error, ABSENT_PAUSE_S if self._absent else 0))
            except (Refused, Unreachable) as error:
                self._reason = self._reason or _label(error)
                await self._pause(error)

    async def _list(self) -> None:
        metrics.RELISTS.labels(self._kind, self._reason).inc()
        self._reason, requests = None, dict(self._requests)
        page = await self._page("")
        version = page.version
        self._observer.begin(int(version), requests)
        while True:
            for listed in page.items:
                self._observer.listed(listed)
            await self._observer.room()
            if not page.token:
                break
            page = await self._page(page.token)
        self._observer.end(int(version), requests)
        await self._observer.flushed()
        self._version = version
        self._answered(requests)
        self._absent = False

    async def _tell_absent(self, error: NotServed) -> None:
        """Nobody has installed this kind: there is nothing of it, and nobody need wait for it. Should it be
        installed later, the list that then goes through finds what there is."""
        if not self._absent:
            log.info("%s: not installed; looking again every %.0f s", self._path, ABSENT_PAUSE_S)
            self._complaint = str(error)
        requests = dict(self._requests)
        self._observer.begin(ABSENT_VERSION, requests)
        self._observer.end(ABSENT_VERSION, requests)
        await self._observer.flushed()
        self._answered(requests)
        self._absent = True

    def _answered(self, requests: dict[str, int]) -> None:
        self._requests = dict(self._requests.items() - requests.items())
        self.synced.set()

    async def _page(self, token: str) -> Page:
        page = await self._cluster.page(self._path, limit=PAGE_SIZE, token=token)
        self._hear()
        return page

    async def _follow(self) -> None:
        """Watch for as long as the server can go on from where we are and nobody asks for a list."""
        while self._reason is None:
            await self._watch_once()

    async def _until_asked(self, activity: Awaitable[None]) -> None:
        """Go on with something until it ends or somebody asks for a list."""
        try:
            async with asyncio.timeout(None) as self._interruptible:
                await activity
        except TimeoutError:
            pass  # relist() asked
        finally:
            self._interruptible = None

    async def _watch_once(self) -> None:
        try:
            await self._watch()
        except Unreachable as error:
            await self._pause(error)
        except Refused as error:
            if error.status not in BUSY:
                raise
            await self._pause(error)

    async def _watch(self) -> None:
        lines_seen = 0
        stream = self._cluster.watch(
            self._path,
            version=self._version,
            timeout_s=self._random.randint(*WATCH_SECONDS),
            silence_s=SILENCE_S,
        )
        async with aclosing(stream):
            async for lines in stream:
                for line in lines:
                    self._take(line)
                self._hear()
                lines_seen += len(lines)
                await self._observer.room()
        if not lines_seen:
            raise Unreachable("the watch ended before it said anything")

    def _take(self, line: bytes) -> None:
        try:
            event = orjson.loads(line)
            change, changed = event["type"], event["object"]
        except (ValueError, LookupError, TypeError) as error:
            raise Refused(200, f"this is no watch event: {cut(repr(line), 100)}") from error
        if change == "ERROR":
            status = changed.get("code", 500)
            raise (Gone if status == 410 else Refused)(status, changed.get("message", ""))
        if change != "BOOKMARK":
            self._observer.changed(changed, change)
        self._version = changed["metadata"]["resourceVersion"]

    def _hear(self) -> None:
        self._heard_at = time.monotonic()
        self._backoff.reset()
        if self._complaint:
            log.info("%s: the API server answers again", self._path)
            self._complaint = ""

    async def _pause(self, error: Refused | Unreachable, at_least_s: float = 0) -> None:
        metrics.ERRORS.labels(self._kind, _label(error)).inc()
        if str(error) != self._complaint:  # a long outage is told once
            self._complaint = str(error)
            log.warning("%s: %s; trying again until it works", self._path, error)
        await self._sleep(self._backoff.delay_s(getattr(error, "retry_after_s", None) or at_least_s))


def _label(error: Refused | Unreachable) -> str:
    match error:
        case Gone():
            return "gone"
        case NotServed():
            return "not served"
        case Refused():
            return f"status {error.status}"
        case Unreachable():
            return "unreachable"
