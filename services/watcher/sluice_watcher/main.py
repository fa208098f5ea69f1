"""The composition root: what the watcher is made of, and how its parts are wired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final

import uvloop
from sluice.applications import listed_as
from sluice.crds.facts import label_requirements
from sluice.kafka import LogReader, LogWriter
from sluice.kube import KubeClient
from sluice.lifecycle import Health, serve, until_told_to_stop
from sluice.settings import Settings, load_for
from sluice.telemetry import setup_logging
from sluice.topics import topics_id, while_topics_last

from sluice_watcher import metrics
from sluice_watcher.clock import Clock
from sluice_watcher.dead_letters import DeadLetters
from sluice_watcher.intake import Intake
from sluice_watcher.kinds import Kind, watched_kinds
from sluice_watcher.kube import Cluster, KubeCluster
from sluice_watcher.publisher import Appender, Publisher
from sluice_watcher.reflector import Reflector
from sluice_watcher.resync import ResyncRequests
from sluice_watcher.routing import Router
from sluice_watcher.ticker import Ticker
from sluice_watcher.unmanaged import UnmanagedReport

log = logging.getLogger(__name__)

#: A request to list everything again is rare and never urgent; decisions come by the hundred.
RESYNC_DELAY_MS: Final = 250
#: An append that takes longer makes the watcher unready.
STALLED_S: Final = 5


class Watcher:
    """One cluster's watcher, on given ports."""

    def __init__(
        self,
        settings: Settings,
        *,
        cluster: Cluster,
        writer: Appender,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        cells = tuple(settings.cells)
        clock, random = clock or Clock(), random or Random()
        router = Router(
            cells,
            ("pod", *map(listed_as, settings.applications)),
            label_requirements(settings.pod_selector),
        )
        self._dead_letters = DeadLetters(
            writer,
            topic=settings.events_topic,
            partition=settings.cells[cells[0]],
            cluster=settings.cluster,
        )
        self._publisher = _publisher(settings, writer, clock, self._dead_letters)
        unmanaged = UnmanagedReport(
            router.unmanaged_by_pool, cluster=settings.cluster, clock=clock, publisher=self._publisher
        )
        self._ticker = Ticker(
            cluster=settings.cluster, cells=cells, clock=clock, publisher=self._publisher, unmanaged=unmanaged
        )
        intake = partial(
            Intake,
            cluster=settings.cluster,
            clock=clock,
            router=router,
            publisher=self._publisher,
            unmanaged=unmanaged,
            dead_letters=self._dead_letters,
            sync_ids=_sync_ids(clock.now_ms()),
            relist=self._relist_stale,
        )
        self._reflectors = {
            kind.type: _reflector(kind, cluster, intake(kind), random) for kind in _kinds(settings, router)
        }
        metrics.UNACKNOWLEDGED.set_function(lambda: self._publisher.unacknowledged)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._publisher.run())
            tasks.create_task(self._dead_letters.run())
            tasks.create_task(self._ticker.run())
            for reflector in self._reflectors.values():
                tasks.create_task(reflector.run())
                await reflector.synced.wait()  # the next may be routed by what this one saw
            log.info("every kind is listed and acknowledged; watching")

    def relist_all(self, cell: str, request: int) -> None:
        """Answer a RESYNC decision."""
        log.info("listing everything again, as the scheduler asks", extra={"cell": cell, "seq": request})
        for reflector in self._reflectors.values():
            reflector.relist("resync", cell=cell, request=request)

    def unready(self) -> str:
        missing = [kind for kind, reflector in self._reflectors.items() if not reflector.synced.is_set()]
        if missing:
            return f"not listed and acknowledged yet: {', '.join(missing)}"
        stalled_s = self._publisher.stalled_ms / 1000
        return f"Kafka has acknowledged nothing for {stalled_s:.0f} s" if stalled_s > STALLED_S else ""

    def _relist_stale(self, kind: str) -> None:
        self._reflectors[kind].relist("route changed")


def _publisher(settings: Settings, writer: Appender, clock: Clock, dead_letters: DeadLetters) -> Publisher:
    return Publisher(
        writer,
        topic=settings.events_topic,
        partitions=settings.cells,
        source=f"sluice/watcher/{settings.cluster}",
        clock=clock,
        set_aside=dead_letters.put_too_long,
    )


def _kinds(settings: Settings, router: Router) -> tuple[Kind, ...]:
    return watched_kinds(
        settings.managed_selector, settings.applications, settings.application_selector, router.overheads
    )


def _reflector(kind: Kind, cluster: Cluster, intake: Intake, random: Random) -> Reflector:
    return Reflector(
        kind.type,
        kind.path,
        optional=kind.optional,
        cluster=cluster,
        observer=intake,
        random=random,
    )


def _sync_ids(started_ms: int) -> Iterator[str]:
    """Unique among all watchers of a cluster: no two start in the same millisecond."""
    return (f"{started_ms}-{number}" for number in count(1))


async def watch(settings: Settings, health: Health) -> None:
    ask_for_topics = partial(topics_id, settings)
    topics = await ask_for_topics()
    async with AsyncExitStack() as closing:
        client = await KubeClient.connect()
        closing.push_async_callback(client.close)
        writer = LogWriter(settings)
        closing.push_async_callback(writer.close)
        requests = LogReader(settings, settings.decisions_topic, delay_ms=RESYNC_DELAY_MS)
        closing.push_async_callback(requests.close)
        watcher = Watcher(settings, cluster=KubeCluster(client), writer=writer)
        health.unready = watcher.unready
        resyncs = ResyncRequests(
            requests,
            cluster=settings.cluster,
            cell_of={partition: cell for cell, partition in settings.cells.items()},
            relist=watcher.relist_all,
        )
        await watch_on(watcher, resyncs, while_topics_last(topics, ask_for_topics))


async def watch_on(watcher: Watcher, resyncs: ResyncRequests, lasting: Coroutine[Any, Any, None]) -> None:
    """As long as the topics last: the requests that are read first may be those of topics that are no more, and never
    come."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(lasting)
        await resyncs.start()
        tasks.create_task(resyncs.run())
        tasks.create_task(watcher.run())


def main() -> None:
    settings = load_for("sluice-watcher", "Writes what happens in one cluster into the log of events.")
    setup_logging("watcher", settings)
    uvloop.run(until_told_to_stop(serve(settings, watch)))
