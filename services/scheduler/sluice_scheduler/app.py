"""The Faust shell: Kafka's assignment says which cells this worker owns; nothing but wiring."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import tempfile
from collections.abc import Callable
from typing import Any

import faust
import uvloop
from faust.types import TP
from sluice.kafka import SESSION_TIMEOUT_MS, Received, ensure_topics
from sluice.kube import KubeClient
from sluice.lifecycle import until_told_to_stop
from sluice.settings import Settings, load_for
from sluice.telemetry import serve_health, setup_logging

from sluice_scheduler.installed import installed_policies
from sluice_scheduler.kube import KubernetesLease
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.owner import CellOwner
from sluice_scheduler.ports import Incoming, Lease, Ledger
from sluice_scheduler.records import KafkaLog

log = logging.getLogger(__name__)

GROUP = "scheduler"
#: Records that wait for their owner; beyond it Faust stops fetching.
FEED_MAX = 5_000


class FaustFeed:
    """One partition's records on their way from Faust's stream to the cell's owner."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Incoming] = asyncio.Queue(FEED_MAX)

    async def put(self, event: faust.EventT[Any]) -> None:
        message = event.message
        received = Received(
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            value=message.value,
            headers=list(message.headers or ()),
        )
        await self._queue.put(Incoming(received, event.ack))

    async def take(self, most: int) -> list[Incoming]:
        batch = [await self._queue.get()]
        while len(batch) < most and not self._queue.empty():
            batch.append(self._queue.get_nowait())
        return batch


class Owners:
    """The owners of the cells that this worker was assigned."""

    def __init__(self, settings: Settings, own: Callable[..., CellOwner]) -> None:
        self._settings = settings
        self._own = own
        self._feeds: dict[int, FaustFeed] = {}
        self._tasks: dict[int, tuple[CellOwner, asyncio.Task[None]]] = {}
        self._is_told = False  # whether it has any
        #: Raises when an owner must not go on: fenced off, diverged, or broken.
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def assigned(self, partitions: set[TP]) -> None:
        for tp in sorted(partitions):
            if tp.topic == self._settings.events_topic and tp.partition in self._settings.cells.values():
                feed = FaustFeed()
                owner = self._own(cell=self._settings.cell_of(tp.partition), feed=feed)
                task = asyncio.create_task(owner.run())
                task.add_done_callback(self._ended)
                self._feeds[tp.partition] = feed
                self._tasks[tp.partition] = owner, task
        self._is_told = True

    async def revoked(self, _: set[TP]) -> None:
        tasks = [task for _, task in self._tasks.values()]
        self._feeds.clear()
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def put(self, event: faust.EventT[Any]) -> None:
        feed = self._feeds.get(event.message.partition)
        if feed is not None:
            await feed.put(event)

    def unready(self) -> str:
        if not self._is_told:
            return "no assignment from Kafka yet"
        return "; ".join(owner.missing for owner, _ in self._tasks.values() if owner.missing)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()):
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


def build(settings: Settings, folder: str) -> faust.App:
    """`folder`: Faust wants one, though nothing is kept there."""
    return faust.App(
        f"{settings.topics}-{GROUP}",
        broker=[f"kafka://{server}" for server in settings.kafka.split(",")],
        broker_credentials=_credentials(settings),
        broker_session_timeout=SESSION_TIMEOUT_MS / 1000,
        broker_heartbeat_interval=1.0,
        consumer_auto_offset_reset="earliest",
        stream_wait_empty=False,  # what was not acknowledged is read again: a rebalance need not wait for it
        topic_disable_leader=True,
        topic_allow_declare=False,
        web_enabled=False,
        autodiscover=False,
        store="memory://",
        datadir=folder,
    )


def _credentials(settings: Settings) -> faust.SASLCredentials | faust.SSLCredentials | None:
    """What `sluice.kafka` tells its clients, as Faust wants to be told."""
    tls = ssl.create_default_context(cafile=settings.kafka_tls_ca) if settings.kafka_tls_ca else None
    if settings.kafka_username:
        return faust.SASLCredentials(
            username=settings.kafka_username,
            password=settings.kafka_password,
            mechanism="PLAIN",
            ssl_context=tls,
        )
    return faust.SSLCredentials(tls) if tls else None


async def serve(settings: Settings, folder: str) -> None:
    await asyncio.to_thread(ensure_topics, settings)
    policies = installed_policies()
    if settings.policy not in policies:
        known = ", ".join(sorted(policies))
        raise SystemExit(f"SLUICE_POLICY: there is no policy {settings.policy!r}; installed are: {known}")
    kube = await KubeClient.connect()
    ledger: Ledger = RedisLedger(settings.redis)
    lease: Lease = KubernetesLease(kube)
    app = build(settings, folder)

    def own(**details: Any) -> CellOwner:
        return CellOwner(
            settings=settings,
            policies=policies,
            ledger=ledger,
            lease=lease,
            records=KafkaLog(settings),
            holder=f"{socket.gethostname()}-{os.getpid()}",
            **details,
        )

    owners = Owners(settings, own)
    app.on_partitions_assigned.connect(lambda _, assigned, **__: owners.assigned(assigned), weak=False)
    app.on_partitions_revoked.connect(lambda _, revoked, **__: owners.revoked(revoked), weak=False)

    @app.agent(app.topic(settings.events_topic, key_serializer="raw", value_serializer="raw"))  # type: ignore[untyped-decorator]
    async def feed(stream: faust.StreamT[Any]) -> None:
        try:
            async for event in stream.noack().events():
                await owners.put(event)
        except Exception as error:  # Faust would log it and go on without us
            owners.fail(error)
            raise

    async with serve_health(settings, owners.unready):
        await app.start()
        try:
            await owners.failed
        finally:
            await owners.revoked(set())
            await app.stop()
            await kube.close()


def main() -> None:
    settings = load_for("sluice-scheduler", "Decides what is admitted and what is taken back.")
    setup_logging("scheduler", settings)
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        uvloop.run(until_told_to_stop(serve(settings, folder)))
