"""A cluster for the watcher to watch: collections of objects with one history, and faults on demand.

It passes tests/contract/test_cluster_port.py, as the real adapter does.
"""

from __future__ import annotations

import asyncio
import copy
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import orjson
from sluice_watcher.kube import Gone, NotServed, Page, Unreachable

Json = dict[str, Any]
#: What a connection may bring: a line, its clean end (None), or what breaks it.
Arrival = bytes | Exception | None


@dataclass(frozen=True)
class _Change:
    version: int
    path: str
    line: bytes


class FakeCluster:
    def __init__(self, *paths: str) -> None:
        #: What the next calls meet, in order; None: one that goes well.
        self.page_faults: deque[Exception | None] = deque()
        self.watch_faults: deque[Exception | None] = deque()
        #: What was asked for: the path of each list, the path and version of each watch.
        self.lists: list[str] = []
        self.watches: list[tuple[str, str]] = []
        self._collections: dict[str, dict[tuple[str, str], Json]] = {path: {} for path in paths}
        self._version = 100
        self._history: list[_Change] = []
        self._forgotten = 0
        self._pages: dict[str, tuple[str, list[Json]]] = {}  # by continue token: version and rest of a list
        self._open: list[tuple[str, asyncio.Queue[Arrival]]] = []
        self._half_open: list[asyncio.Queue[Arrival]] = []

    # ------------------------------------------------------------------------------ what happens to objects

    def serve(self, path: str) -> None:
        """Install a kind."""
        self._collections[path] = {}

    def withdraw(self, path: str) -> None:
        """Uninstall a kind."""
        del self._collections[path]

    def put(self, path: str, name: str, namespace: str = "", **parts: Any) -> Json:
        """Create an object, or change it."""
        known = self._collections[path].get((namespace, name))
        body: Json = copy.deepcopy(parts)
        body["metadata"] = {
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
            **body.get("metadata", {}),
            "name": name,
            **({"namespace": namespace} if namespace else {}),
            "uid": known["metadata"]["uid"] if known else f"uid-of-{name}-{self._version}",
        }
        self._collections[path][namespace, name] = body
        self._happened(path, "MODIFIED" if known else "ADDED", body)
        return body

    def delete(self, path: str, name: str, namespace: str = "") -> None:
        self._happened(path, "DELETED", self._collections[path].pop((namespace, name)))

    def bookmark(self, path: str) -> None:
        self._happened(path, "BOOKMARK", {"metadata": {}})

    def collection(self, path: str) -> dict[tuple[str, str], Json]:
        """What there is, by namespace and name."""
        return self._collections[path]

    # ---------------------------------------------------------------------------------------------- trouble

    def forget(self) -> None:
        """Compact: watches and continue tokens from before now are too old."""
        self._forgotten = self._version
        self._history.clear()
        self._pages.clear()

    def say_error(self, path: str, status: int) -> None:
        """An ERROR event to whoever watches."""
        error = {"kind": "Status", "code": status, "message": "as the test wants it"}
        self._arrive(path, orjson.dumps({"type": "ERROR", "object": error}))

    def say(self, path: str, line: bytes) -> None:
        self._arrive(path, line)

    def break_off(self, path: str, how: Exception | None = None) -> None:
        """End the watches of a path: cleanly, as a server does in time, or with an error."""
        self._arrive(path, how)

    def cut(self, path: str) -> None:
        """Leave connections half-open: nothing arrives on them any more, and nobody is told."""
        self._half_open += [arrivals for watched, arrivals in self._open if watched == path]

    def patience_ends(self) -> None:
        """What a client's silence time-out does to connections that were cut."""
        for arrivals in self._half_open:
            arrivals.put_nowait(Unreachable("silence"))
        self._half_open.clear()

    # --------------------------------------------------------------------------------------------- the port

    async def page(self, path: str, *, limit: int, token: str) -> Page:
        if not token:
            self.lists.append(path)
        await asyncio.sleep(0)
        if self.page_faults and (fault := self.page_faults.popleft()):
            raise fault
        if path not in self._collections:
            raise NotServed(404, "the server could not find the requested resource")
        if not token:
            version, left = str(self._version), copy.deepcopy(list(self._collections[path].values()))
        elif token in self._pages:
            version, left = self._pages[token]
        else:
            raise Gone(410, "the provided continue parameter is too old")
        following = f"{version}:{len(left) - limit}" if len(left) > limit else ""
        if following:
            self._pages[following] = version, left[limit:]
        return Page(items=left[:limit], version=version, token=following)

    async def watch(
        self, path: str, *, version: str, timeout_s: int, silence_s: float
    ) -> AsyncGenerator[list[bytes], None]:
        self.watches.append((path, version))
        await asyncio.sleep(0)
        if self.watch_faults and (fault := self.watch_faults.popleft()):
            raise fault
        if path not in self._collections:
            raise NotServed(404, "the server could not find the requested resource")
        if int(version) < self._forgotten:
            raise Gone(410, "too old resource version")
        arrivals: asyncio.Queue[Arrival] = asyncio.Queue()
        for change in self._history:
            if change.path == path and change.version > int(version):
                arrivals.put_nowait(change.line)
        opened = (path, arrivals)
        self._open.append(opened)
        try:
            async with aclosing(_arriving(arrivals, timeout_s, silence_s)) as lines:
                async for line in lines:
                    yield [line]
        finally:
            self._open.remove(opened)

    # ------------------------------------------------------------------------------------------------------

    def _happened(self, path: str, change: str, body: Json) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        line = orjson.dumps({"type": change, "object": body})
        self._history.append(_Change(self._version, path, line))
        self._arrive(path, line)

    def _arrive(self, path: str, arrival: Arrival) -> None:
        for watched, arrivals in self._open:
            if watched == path and arrivals not in self._half_open:
                arrivals.put_nowait(arrival)


async def _arriving(
    arrivals: asyncio.Queue[Arrival], timeout_s: float, silence_s: float
) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while True:
        try:
            async with asyncio.timeout(min(silence_s, deadline - loop.time())):
                arrival = await arrivals.get()
        except TimeoutError:
            if loop.time() < deadline:
                raise Unreachable("silence") from None
            return
        if isinstance(arrival, Exception):
            raise arrival
        if arrival is None:
            return
        yield arrival
