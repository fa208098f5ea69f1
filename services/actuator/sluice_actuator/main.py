"""The composition root: nothing else builds clients."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import partial

import uvloop
from sluice.kafka import LogReader, LogWriter
from sluice.kube import KubeClient
from sluice.lifecycle import Health, serve, until_told_to_stop
from sluice.settings import Settings, load_for
from sluice.telemetry import setup_logging
from sluice.topics import topics_id, while_topics_last

from sluice_actuator.clock import WallClock
from sluice_actuator.kube import KubeCluster
from sluice_actuator.worker import IN_FLIGHT_MAX, Actuator


async def act(settings: Settings, health: Health) -> None:
    ask_for_topics = partial(topics_id, settings)
    topics = await ask_for_topics()
    async with AsyncExitStack() as closing:
        client = await KubeClient.connect(connections=IN_FLIGHT_MAX)
        closing.push_async_callback(client.close)
        log = LogWriter(settings)
        closing.push_async_callback(log.close)
        group = f"{settings.topics}-actuator-{settings.cluster}"
        inbox = LogReader(settings, settings.decisions_topic, group=group)
        closing.push_async_callback(inbox.close)
        decisions = LogReader(settings, settings.decisions_topic)
        closing.push_async_callback(decisions.close)
        events = LogReader(settings, settings.events_topic)
        closing.push_async_callback(events.close)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(while_topics_last(topics, ask_for_topics))
            actuator = Actuator(
                tasks,
                settings=settings,
                cluster=KubeCluster(client),
                inbox=inbox,
                decisions=decisions,
                events=events,
                log=log,
                clock=WallClock(),
                topics=topics,
            )
            health.unready = lambda: actuator.unready
            await actuator.run()


def main() -> None:
    settings = load_for("sluice-actuator", "Carries out what the scheduler decides about one cluster.")
    setup_logging("actuator", settings)
    uvloop.run(until_told_to_stop(serve(settings, act)))
