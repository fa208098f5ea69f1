"""The composition root: nothing else builds clients."""

from __future__ import annotations

import asyncio

import uvloop
from sluice.kafka import LogReader, LogWriter, ensure_topics
from sluice.kube import KubeClient
from sluice.lifecycle import until_told_to_stop
from sluice.settings import Settings, load
from sluice.telemetry import serve_health, setup_logging

from sluice_actuator.clock import WallClock
from sluice_actuator.kube import KubeCluster
from sluice_actuator.worker import IN_FLIGHT_MAX, Actuator


async def run(settings: Settings) -> None:
    await asyncio.to_thread(ensure_topics, settings)
    client = await KubeClient.connect(connections=IN_FLIGHT_MAX)
    log = LogWriter(settings)
    inbox = LogReader(
        settings, settings.decisions_topic, group=f"{settings.topics}-actuator-{settings.cluster}"
    )
    decisions = LogReader(settings, settings.decisions_topic)
    events = LogReader(settings, settings.events_topic)
    try:
        async with asyncio.TaskGroup() as tasks:
            actuator = Actuator(
                tasks,
                settings=settings,
                cluster=KubeCluster(client),
                inbox=inbox,
                decisions=decisions,
                events=events,
                log=log,
                clock=WallClock(),
            )
            async with serve_health(settings, lambda: actuator.unready):
                await actuator.run()
    finally:
        for closing in (inbox, decisions, events, log, client):
            await closing.close()


def main() -> None:
    settings = load()
    setup_logging("actuator", settings)
    uvloop.run(until_told_to_stop(run(settings)))
