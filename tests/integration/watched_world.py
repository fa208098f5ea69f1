"""A real API server, a real Kafka, and one watcher process between them, for tests of the watcher."""

from __future__ import annotations

import asyncio
import re
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from sluice.codec import DECISIONS, EVENTS
from sluice.decisions import Resync
from sluice.events import Event, ObjectEvent, PodEvent, SyncEvent
from sluice.kafka import LogReader, LogWriter, ensure_topics
from sluice.kube import KubeClient, Unreachable
from sluice.settings import Settings
from sluice_local import Stack, Status

Json = dict[str, Any]
WATCHER = "watcher"
POLL_S = 0.2


@dataclass
class Accounts:
    """What the log says there is, folded as the scheduler's core folds it: uid → resourceVersion."""

    objects: dict[str, int] = field(default_factory=dict)
    _sync: str = ""
    _seen: set[str] = field(default_factory=set)

    def fold(self, kind: str, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, SyncEvent) and event.kind == kind:
                self._mark(event)
            elif isinstance(event, ObjectEvent) and event.type == kind:
                self._change(event)

    def _mark(self, mark: SyncEvent) -> None:
        if mark.phase == "BEGIN":
            self._sync, self._seen = mark.sync, set()
        elif mark.sync == self._sync:
            gone = {u for u, v in self.objects.items() if u not in self._seen and v <= mark.resource_version}
            self.objects = {uid: version for uid, version in self.objects.items() if uid not in gone}

    def _change(self, event: ObjectEvent) -> None:
        self._seen.add(event.uid)
        if event.resource_version > self.objects.get(event.uid, 0):
            self.objects[event.uid] = event.resource_version
        if event.change == "DELETED":
            self.objects.pop(event.uid, None)


class World:
    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        endpoints = stack.endpoints
        self.settings = Settings(
            kafka=endpoints.kafka,
            kafka_username=endpoints.kafka_username,
            kafka_password=endpoints.kafka_password,
        )
        self._reader: LogReader | None = None
        self._events: list[Event] = []

    # ---- the cluster

    async def __aenter__(self) -> World:
        self.client = await KubeClient.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.close()
        if self._reader is not None:
            await self._reader.close()

    async def call(self, method: str, path: str, body: Json | None = None) -> Json:
        """Tried again while the server is away; what it has then already done is fine."""
        content = orjson.dumps(body) if body is not None else None
        content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        while True:
            try:
                answer = await self.client.request(method, path, body=content, content_type=content_type)
            except Unreachable:
                await asyncio.sleep(POLL_S)
                continue
            if answer.ok or (method, answer.status) in (("POST", 409), ("DELETE", 404)):
                return answer.json()
            assert answer.status in (403, 429, 500, 503, 504), answer.message  # 403: RBAC is not loaded yet
            await asyncio.sleep(POLL_S)

    async def bound_namespace(self, name: str) -> None:
        labels = {"sluice.dev/managed": "true", "sluice.dev/queue": "watched"}
        await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        account = {"metadata": {"name": "default"}}  # its controller does not run here
        await self.call("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)

    async def create_pods(self, namespace: str, names: Iterable[str]) -> None:
        await in_parallel(self.call("POST", pods_path(namespace), pod(name)) for name in names)

    async def delete_pods(self, namespace: str, names: Iterable[str]) -> None:
        now = {"gracePeriodSeconds": 0}
        await in_parallel(self.call("DELETE", f"{pods_path(namespace)}/{name}", now) for name in names)

    async def label_pods(self, namespace: str, names: Iterable[str], **labels: str) -> None:
        patch = {"metadata": {"labels": labels}}
        await in_parallel(self.call("PATCH", f"{pods_path(namespace)}/{name}", patch) for name in names)

    async def pods(self, namespace: str) -> dict[str, int]:
        listed = await self.call("GET", pods_path(namespace))
        return {each["metadata"]["uid"]: int(each["metadata"]["resourceVersion"]) for each in listed["items"]}

    # ---- the log

    async def events(self) -> list[Event]:
        """All of the log; what was read before is not read again."""
        if self._reader is None:
            ensure_topics(self.settings)
            self._reader = LogReader(self.settings, self.settings.events_topic)
            await self._reader.assign({0: 0})
        _, end = await self._reader.bounds(0)
        while len(self._events) < end:
            records = await self._reader.poll(POLL_S)
            self._events += [EVENTS.decode(record.headers, record.value) for record in records]
        return self._events

    async def pods_by_the_log(self, namespace: str) -> dict[str, int]:
        events = [
            event
            for event in await self.events()
            if not isinstance(event, PodEvent) or event.namespace == namespace
        ]
        accounts = Accounts()
        accounts.fold("pod", events)
        return accounts.objects

    async def agreement(self, namespace: str) -> dict[str, int]:
        """Wait until the log says of a namespace's pods just what the API server says."""
        while True:
            there, logged = await self.pods(namespace), await self.pods_by_the_log(namespace)
            if there == logged:
                return there
            await asyncio.sleep(POLL_S)

    async def ask_for_everything(self, seq: int) -> None:
        resync = Resync(
            seq=seq, cell="default", cluster="local", time_ms=0, reason="Rebuild", sentence="as a test asks"
        )
        writer = LogWriter(self.settings)
        await writer.append(self.settings.decisions_topic, 0, [DECISIONS.encode(resync, source="test")])
        await writer.close()

    async def answer(self, seq: int, kinds: set[str]) -> None:
        """Wait until lists of these kinds have ended in answer to a request."""
        while True:
            marks = await self.marks(*kinds)
            if kinds == {mark.kind for mark in marks if (mark.phase, mark.request) == ("END", seq)}:
                return
            await asyncio.sleep(POLL_S)

    async def marks(self, *kinds: str, last: int = 0) -> list[SyncEvent]:
        marks = [e for e in await self.events() if isinstance(e, SyncEvent) and e.kind in kinds]
        return marks[-last:]

    # ---- the watcher

    def start_watcher(self) -> None:
        self.stack.start(WATCHER)

    def kill_watcher(self) -> None:
        self.stack.kill(WATCHER)

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples with these labels."""
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        with urllib.request.urlopen(f"http://{self._status().address}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        samples = (re.fullmatch(rf"{name}(?:{{(.*)}})? (\S+)", line) for line in lines)
        return sum(float(m[2]) for m in samples if m and wanted <= set((m[1] or "").split(",")))

    @property
    def pid(self) -> int | None:
        return self._status().pid

    def peak_memory_bytes(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return 1024 * int(status.partition("VmHWM:")[2].split()[0])

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / 100

    def mean_lag_ms(self) -> float:
        lag = "sluice_watcher_lag_seconds"
        return 1000 * self.metric(f"{lag}_sum") / self.metric(f"{lag}_count")

    def _status(self) -> Status:
        return next(status for status in self.stack.status() if status.name == WATCHER)


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(name: str) -> Json:
    container = {
        "name": "main",
        "image": "none",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


async def in_parallel(calls: Iterable[Any], width: int = 32) -> None:
    todo = iter(calls)

    async def work() -> None:
        for call in todo:
            await call

    async with asyncio.TaskGroup() as workers:
        for _ in range(width):
            workers.create_task(work())
