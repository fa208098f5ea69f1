"""The composition root: nothing else builds clients."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

import uvloop
from sluice.kafka import LogReader, LogWriter, ensure_topics
from sluice.kube import KubeClient
from sluice.settings import Settings, load
from sluice.telemetry import serve_health, setup_logging

from sluice_actuator.clock import WallClock
from sluice_actuator.kube import KubeCluster
from sluice_actuator.worker import IN_FLIGHT_MAX, Actuator


class _Stop(Exception):  # noqa: N818 - an order, no error
    """Ends the tasks."""


async def serve(settings: Settings) -> None:
    """Work until told to stop; raises what went wrong otherwise."""
    await asyncio.to_thread(ensure_topics, settings)
    client = await KubeClient.connect(connections=IN_FLIGHT_MAX)
    log = LogWriter(settings)
    inbox = LogReader(
        settings, settings.decisions_topic, group=f"{settings.topics}-actuator-{settings.cluster}"
    )
    decisions, events = (
        LogReader(settings, topic) for topic in (settings.decisions_topic, settings.events_topic)
    )
    stopping = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stopping.set)
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
                tasks.create_task(actuator.run())
                await stopping.wait()
                raise _Stop
    except* _Stop:
        pass
    finally:
        for closing in (inbox, decisions, events, log, client):
            await closing.close()


def main() -> None:
    settings = load()
    setup_logging("actuator", settings)
    try:
        uvloop.run(serve(settings))
    except BaseExceptionGroup as group:
        logging.getLogger(__name__).critical("ended by %s", group.exceptions[0], exc_info=group)
        sys.exit(1)
