"""A cell in a fake world, and owners of it that come and go."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fakes.cell import FakeFeed, FakeLease, FakeTopics
from fakes.clock import FakeClock
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, Message, find_header
from sluice.crds.facts import queue_facts
from sluice.crds.tenancy import QueueSpec
from sluice.decisions import Admit, Decision, Fence, Resync
from sluice.events import (
    Event,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    OutcomeEvent,
    PodEvent,
    PodFacts,
    PoolEvent,
    PoolFacts,
    QueueEvent,
    RebuildEvent,
    SyncEvent,
)
from sluice.settings import Settings
from sluice_scheduler.installed import installed_policies
from sluice_scheduler.ledger.memory import MemoryLedger
from sluice_scheduler.owner import CellOwner
from sluice_scheduler.takeover import KINDS

SETTINGS = Settings(applications=())


class OwnedCell:
    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.settings = settings
        self.topics = FakeTopics(settings)
        self.ledger = MemoryLedger()
        self.lease = FakeLease()
        self.clock = FakeClock()
        self.feed = FakeFeed(self.topics, settings.events_topic)
        self._version = 0

    def owner(self, **other: Any) -> CellOwner:
        about: dict[str, Any] = {
            "cell": "default",
            "settings": self.settings,
            "policies": installed_policies(),
            "ledger": self.ledger,
            "lease": self.lease,
            "records": self.topics,
            "feed": self.feed,
            "holder": "test",
            "clock": self.clock,
        }
        return CellOwner(**{**about, **other})

    @asynccontextmanager
    async def owned(self, **other: Any) -> AsyncIterator[CellOwner]:
        """An owner at work, which then dies as if it were killed."""
        owner = self.owner(**other)
        task = asyncio.create_task(owner.run())
        try:
            yield owner
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    # ---- what it is told

    def tell(self, *events: Event) -> None:
        self.topics.tell([EVENTS.encode(event, source="test") for event in events])

    def see(self, kind: type[Any], name: str, **facts: Any) -> None:
        self._version += 1
        about: dict[str, Any] = {
            "time_ms": 1,
            "cluster": self.settings.cluster,
            "change": "ADDED",
            "resource_version": self._version,
        }
        self.tell(kind(uid=f"{kind.type}-{name}", name=name, **{**about, **facts}))

    def pods(self, first: int, end: int) -> None:
        for number in range(first, end):
            pod = PodFacts(requests={"cpu": 1}, created_ms=number, gated=True)
            self.see(PodEvent, f"pod-{number}", namespace="a", pod=pod)

    async def open(self) -> None:
        """Its first owner has rebuilt it, and there is room for whatever comes."""
        await until(lambda: any(isinstance(decision, Fence) for decision in self.decisions))
        fence = next(decision for decision in self.decisions if isinstance(decision, Fence))
        epoch = find_header(self.published[-1].headers, EPOCH_HEADER) or ""
        about: dict[str, Any] = {"time_ms": 1, "cluster": self.settings.cluster}
        self.tell(OutcomeEvent(seq=fence.seq, epoch=epoch, decision="fence", result="Applied", **about))
        await until(lambda: any(isinstance(decision, Resync) for decision in self.decisions))
        self.see(QueueEvent, "a", queue=queue_facts(QueueSpec(), generation=1, created_ms=0))
        namespaces = {"names": ["a"]}
        spec = QueueSpec.model_validate({"namespaces": namespaces})
        self.see(QueueEvent, "a", queue=queue_facts(spec, generation=1, created_ms=0))
        self.see(NamespaceEvent, "a", managed=True, queue="a", labels={})
        self.see(PoolEvent, "p", pool=PoolFacts(node_selector={"pool": "p"}))
        self.see(NodeEvent, "n", node=NodeFacts(allocatable={"cpu": 10**9}, labels={"pool": "p"}))
        resync = next(decision for decision in self.decisions if isinstance(decision, Resync))
        for kind in KINDS:
            for phase in ("BEGIN", "END"):
                sync: Any = {"phase": phase, "kind": kind, "sync": "1", "resource_version": 0}
                self.tell(SyncEvent(request=resync.seq, **sync, **about))

    # ---- what it shows

    @property
    def published(self) -> list[Message]:
        return self.topics.log.messages[self.settings.decisions_topic, 0]

    @property
    def decisions(self) -> list[Decision]:
        return [DECISIONS.decode(each.headers, each.value) for each in self.published]

    @property
    def seqs(self) -> list[int]:
        return [decision.seq for decision in self.decisions]

    @property
    def admitted(self) -> int:
        return sum(isinstance(decision, Admit) for decision in self.decisions)

    @property
    def rebuilds(self) -> list[str]:
        """Why, each time."""
        events = self.topics.log.events(self.settings.events_topic)
        return [event.reason for event in events if isinstance(event, RebuildEvent)]

    @property
    def read(self) -> int:
        """Where the ledger stands."""
        return self.ledger._cells["default"].meta.next_offset

    async def settled(self) -> None:
        """Everything is read and committed."""
        await until(lambda: self.read == len(self.topics.log.messages[self.settings.events_topic, 0]))

    # ---- what befalls it

    def backup(self) -> MemoryLedger:
        return copy.deepcopy(self.ledger)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.001)
