"""The services as processes: each begun, killed and begun again as a supervisor would.

They are wired as their `main` modules do it, with the simulated servers in the place of clients.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from random import Random
from types import SimpleNamespace
from typing import Any, Final

from faust.types import TP
from kafka.errors import KafkaError
from simulation.system.api import ApiServer, Faults, SimulatedClient, SimulatedCluster
from simulation.system.kafka import Broker, SimulatedReader, SimulatedWriter
from simulation.system.loop import Process, VirtualLoop
from simulation.system.network import LostError, Network
from simulation.system.redis import RedisServer, SimulatedLedger
from sluice.lifecycle import begin_anew
from sluice.settings import Settings
from sluice.topics import while_topics_last
from sluice_actuator.kube import KubeCluster
from sluice_actuator.worker import Actuator
from sluice_scheduler.feed import Owners
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.kube import KubernetesLease
from sluice_scheduler.owner import CellOwner
from sluice_scheduler.records import KafkaLog
from sluice_watcher.clock import Clock as WatcherClock
from sluice_watcher.main import Watcher, watch_on
from sluice_watcher.resync import ResyncRequests

POLL_S: Final = 0.5
#: Between the end of a service and its next life.
RESTART_S: Final = 2.0
#: The group is told of acknowledged offsets so often.
ACKNOWLEDGE_S: Final = 2.8
_POLICIES: Final = installed_policies()


@dataclass
class Servers:
    """All that services talk to."""

    loop: VirtualLoop
    network: Network
    api: ApiServer
    faults: Faults
    broker: Broker
    redis: RedisServer
    settings: Settings

    def client(self) -> SimulatedClient:
        return SimulatedClient(self.api, self.network, self.faults)

    async def topics(self) -> str:
        """Make those that are missing; the id of both logs."""
        try:
            return await self.network.ask("kafka", self.broker.topics_id)
        except LostError as error:
            raise KafkaError(str(error)) from error


class HostClock:
    """A host's clock: it may jump, and what is monotonic doesn't."""

    def __init__(self, loop: VirtualLoop, begins_ms: int) -> None:
        self.ahead_ms = 0
        self._loop = loop
        self._begins_ms = begins_ms

    def now_ms(self) -> int:
        return self._begins_ms + self.ahead_ms + int(self._loop.time() * 1000)

    def wall_s(self) -> float:
        return self.now_ms() / 1000

    def monotonic_s(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


Serve = Callable[[Servers, HostClock, Random], Coroutine[Any, Any, None]]


class Supervisor:
    """Keeps one service alive, one life after another."""

    def __init__(self, servers: Servers, name: str, serve: Serve, rng: Random) -> None:
        self.name = name
        self.clock = HostClock(servers.loop, servers.api.begins_ms)
        self.process: Process | None = None
        #: How its lives have ended, but for those that were ended from outside.
        self.deaths: list[BaseException] = []
        self._servers, self._serve, self._rng = servers, serve, rng
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    def start(self) -> None:
        if self._is_over:
            return
        process = self.process = Process(self._servers.loop, self.name)
        self._task = process.spawn(self._serve(self._servers, self.clock, Random(self._rng.random())))
        self._task.add_done_callback(partial(self._ended, process))

    def kill(self, down_s: float = RESTART_S) -> None:
        if self.process is not None and self.process.alive:
            self.process.kill()
            self._start_after(down_s)

    def end(self) -> None:
        """Nobody begins it again."""
        self._is_over = True
        if self.process is not None:
            self.process.kill()

    def cancel(self) -> None:
        """As SIGTERM does."""
        if self._task is not None and self.process is not None and self.process.alive:
            self._task.cancel()

    def stop(self, for_s: float) -> None:
        if self.process is not None and self.process.alive:
            self.process.stop()
            self._servers.loop.call_later(for_s, self.process.go_on)

    def _ended(self, process: Process, task: asyncio.Task[None]) -> None:
        if process is not self.process or not process.alive:
            return
        process.kill()
        if not task.cancelled() and (error := task.exception()) is not None:
            self.deaths.append(error)
        self._start_after(RESTART_S)

    def _start_after(self, down_s: float) -> None:
        self._servers.loop.call_later(down_s, self.start)


# ---- what each of them is made of


async def watch(servers: Servers, clock: HostClock, rng: Random) -> None:
    await begin_anew(partial(_watch, servers, clock, rng), lambda _: None)


async def _watch(servers: Servers, clock: HostClock, rng: Random) -> None:
    settings, broker = servers.settings, servers.broker
    topics = await servers.topics()
    watcher = Watcher(
        settings,
        cluster=SimulatedCluster(servers.client()),
        writer=SimulatedWriter(broker),
        clock=WatcherClock(clock.wall_s),
        random=rng,
    )
    resyncs = ResyncRequests(
        SimulatedReader(broker, settings.decisions_topic),
        cluster=settings.cluster,
        cell_of={partition: cell for cell, partition in settings.cells.items()},
        relist=watcher.relist_all,
    )
    await watch_on(watcher, resyncs, while_topics_last(topics, servers.topics))


async def act(servers: Servers, clock: HostClock, rng: Random) -> None:
    await begin_anew(partial(_act, servers, clock, rng), lambda _: None)


async def _act(servers: Servers, clock: HostClock, rng: Random) -> None:
    settings, broker = servers.settings, servers.broker
    topics = await servers.topics()
    async with AsyncExitStack() as closing:
        group = f"{settings.topics}-actuator-{settings.cluster}"
        inbox = SimulatedReader(broker, settings.decisions_topic, group=group)
        closing.push_async_callback(inbox.close)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(while_topics_last(topics, servers.topics))
            actuator = Actuator(
                tasks,
                settings=settings,
                cluster=KubeCluster(servers.client()),
                inbox=inbox,
                decisions=SimulatedReader(broker, settings.decisions_topic),
                events=SimulatedReader(broker, settings.events_topic),
                log=SimulatedWriter(broker),
                clock=clock,
                topics=topics,
                random=rng,
            )
            await actuator.run()


class SimulatedLog(KafkaLog):
    """The topics of an owner: the real pieces, read and written by simulated clients."""

    def __init__(self, servers: Servers) -> None:
        super().__init__(servers.settings)
        self._servers = servers
        self._writer = SimulatedWriter(servers.broker)
        self._snapshot_writer = SimulatedWriter(servers.broker)

    async def topic_id(self) -> str:
        return await self._servers.topics()

    def _read(self, topic: str) -> SimulatedReader:
        return SimulatedReader(self._servers.broker, topic)


async def schedule(servers: Servers, clock: HostClock, rng: Random) -> None:
    """What Faust does for the scheduler: it hands out partitions and their records, and commits what is done."""
    settings = servers.settings
    topics = await servers.topics()

    def own(**details: Any) -> CellOwner:
        return CellOwner(
            settings=settings,
            policies=_POLICIES,
            ledger=SimulatedLedger(servers.redis, servers.network),
            lease=KubernetesLease(servers.client()),
            records=SimulatedLog(servers),
            holder="simulated",
            clock=clock,
            topics=topics,
            **details,
        )

    owners = Owners(settings, own)
    stream = Stream(servers, owners)
    work = [asyncio.create_task(each) for each in (stream.run(), while_topics_last(topics, servers.topics))]
    for task in work:
        task.add_done_callback(owners.ended)
    try:
        await owners.failed
    finally:
        for task in work:
            task.cancel()
        await owners.revoked(set())
        await stream.reader.close()


class Stream:
    """Faust's one stream of records."""

    def __init__(self, servers: Servers, owners: Owners) -> None:
        self._topic = servers.settings.events_topic
        self._loop = servers.loop
        self._owners = owners
        self.reader = SimulatedReader(
            servers.broker,
            self._topic,
            group=f"{servers.settings.topics}-scheduler",
            revoked=partial(owners.revoked, set()),
        )

    async def run(self) -> None:
        assigned: dict[int, int] = {}
        while True:
            received = await self.reader.poll(POLL_S)
            if self.reader.assigned != assigned:
                assigned = dict(self.reader.assigned)
                await self._owners.assigned({TP(self._topic, partition) for partition in assigned})
            for each in received:
                await self._owners.put(self._event(each))

    def _event(self, received: Any) -> Any:
        message = SimpleNamespace(
            partition=received.partition,
            offset=received.offset,
            key=received.key,
            value=received.value,
            headers=received.headers,
        )
        return SimpleNamespace(message=message, ack=lambda: None)
