"""The Faust shell: Kafka's assignment says which cells this worker owns; nothing but wiring."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import tempfile
from functools import partial
from typing import Any

import faust
import uvloop
from faust.types import TP, Message
from sluice.kafka import SESSION_TIMEOUT_MS
from sluice.kube import KubeClient
from sluice.lifecycle import reasons, until_told_to_stop
from sluice.settings import Settings, load_for
from sluice.telemetry import serve_health, setup_logging
from sluice.topics import topics_id, while_topics_last

from sluice_scheduler.feed import FEED_MAX, FaustFeed, Own, Owners
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.kube import KubernetesLease
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.owner import CellOwner
from sluice_scheduler.ports import FencedError, Lease, Ledger
from sluice_scheduler.records import KafkaLog

__all__ = ["FEED_MAX", "FaustFeed", "Owners", "build", "connect", "main", "serve"]

log = logging.getLogger(__name__)

GROUP = "scheduler"


class PartitionFlow:
    """A partition as Faust's consumer fetches it."""

    def __init__(self, app: faust.App, tp: TP) -> None:
        self._app = app
        self._tp = tp

    def hold(self) -> None:
        self._app.consumer.on_buffer_full(self._tp)

    def go_on(self) -> None:
        self._app.consumer.on_buffer_drop(self._tp)

    def acknowledge(self, first: int, end: int) -> None:
        """Faust commits up to the first offset that it was not told of, so it is told of each."""
        nothing: dict[str, Any] = dict.fromkeys(("headers", "key", "value", "checksum"))
        for offset in range(first, end):
            self._app.consumer.ack(Message(*self._tp, offset, timestamp=0.0, timestamp_type=0, **nothing))


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


def connect(app: faust.App, settings: Settings, own: Own) -> Owners:
    """Tell the owners what Kafka assigns to this worker, and hand them its records."""
    owners = Owners(settings, own, lambda partition: PartitionFlow(app, TP(settings.events_topic, partition)))
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

    return owners


async def serve(settings: Settings, folder: str) -> None:
    ask_for_topics = partial(topics_id, settings)
    topics = await ask_for_topics()
    policies = installed_policies()
    if settings.policy not in policies:
        known = ", ".join(sorted(policies))
        raise SystemExit(f"SLUICE_POLICY: there is no policy {settings.policy!r}; installed are: {known}")
    kube = await KubeClient.connect()
    ledger: Ledger = RedisLedger(settings.redis, replicas=settings.redis_replicas)
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
            topics=topics,
            **details,
        )

    owners = connect(app, settings, own)
    lasting = asyncio.create_task(while_topics_last(topics, ask_for_topics))
    lasting.add_done_callback(owners.ended)
    async with serve_health(settings, owners.unready):
        await app.start()
        try:
            await owners.failed
        finally:
            lasting.cancel()
            await owners.revoked(set())
            await app.stop()
            await kube.close()


def main() -> None:
    settings = load_for("sluice-scheduler", "Decides what is admitted and what is taken back.")
    setup_logging("scheduler", settings)
    fenced_off = ""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        try:
            uvloop.run(until_told_to_stop(serve(settings, folder)))
        except* FencedError as errors:
            fenced_off = reasons(errors)
    if fenced_off:  # no fault, and nothing to look into
        log.warning("%s: another scheduler has taken it over, and this one ends", fenced_off)
        raise SystemExit(1)
