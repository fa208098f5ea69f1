"""What becomes of the objects of one kind: normalised, routed, published, or set aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Literal

from sluice.events import Change, SyncEvent

from sluice_watcher import metrics
from sluice_watcher.clock import Clock
from sluice_watcher.dead_letters import DeadLetters
from sluice_watcher.kinds import Kind
from sluice_watcher.normalise import Sighting
from sluice_watcher.publisher import Publisher
from sluice_watcher.requests import Object
from sluice_watcher.routing import Router
from sluice_watcher.unmanaged import UnmanagedReport


class Intake:
    """Takes what one reflector sees. Nothing here waits, so one object's records stay together."""

    def __init__(
        self,
        kind: Kind,
        *,
        cluster: str,
        clock: Clock,
        router: Router,
        publisher: Publisher,
        unmanaged: UnmanagedReport,
        dead_letters: DeadLetters,
        sync_ids: Iterator[str],
        relist: Callable[[str], None],
    ) -> None:
        self._kind = kind
        self._cluster = cluster
        self._clock = clock
        self._router = router
        self._publisher = publisher
        self._unmanaged = unmanaged
        self._dead_letters = dead_letters
        self._sync_ids = sync_ids
        self._relist = relist
        self._told: set[str] = set()  # uids of those that something was passed over of: told once a list
        self._changes = {
            change: metrics.EVENTS.labels(kind.type, change)
            for change in ("LISTED", "ADDED", "MODIFIED", "DELETED")
        }

    def begin(self, version: int, requests: Mapping[str, int]) -> None:
        """A list as of `version` begins; `requests` are the RESYNC decisions that it answers, by cell."""
        self._sync = next(self._sync_ids)
        self._told.clear()
        self._router.begin(self._kind.type)
        self._mark("BEGIN", version, requests)

    def listed(self, listed: Object) -> None:
        self._changes["LISTED"].inc()
        self._take(listed, "ADDED", listed=True)

    def end(self, version: int, requests: Mapping[str, int]) -> None:
        self._router.end(self._kind.type)
        self._unmanaged.publish_all()  # before the mark after which decisions may be made
        self._mark("END", version, requests)
        self._relist_stale()

    def changed(self, changed: Object, change: Change) -> None:
        self._changes[change].inc()
        self._take(changed, change, listed=False)
        self._relist_stale()

    async def room(self) -> None:
        """Return when Kafka has kept up."""
        await self._publisher.room()
        await self._dead_letters.flushed()

    async def flushed(self) -> None:
        await self._publisher.flushed()

    def _take(self, taken: Object, change: Change, *, listed: bool) -> None:
        seen = Sighting(
            object=taken, change=change, cluster=self._cluster, time_ms=self._clock.now_ms(), listed=listed
        )
        try:
            event = self._kind.normalise(seen)
            cells = self._kind.cells(self._router, event, seen)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            self._dead_letters.put(self._kind.type, taken, error)
            return
        for cell in cells:
            self._publisher.put(cell, event)
        if change == "DELETED":
            self._told.discard(event.uid)
        elif cells:
            self._tell_of_unread(taken, event.uid)

    def _tell_of_unread(self, taken: Object, uid: str) -> None:
        unread = self._kind.unread(taken)
        if unread is not None and uid not in self._told:
            self._told.add(uid)
            self._dead_letters.put(self._kind.type, taken, unread)

    def _mark(self, phase: Literal["BEGIN", "END"], version: int, requests: Mapping[str, int]) -> None:
        for cell in self._router.cells:
            mark = SyncEvent(
                time_ms=self._clock.now_ms(),
                cluster=self._cluster,
                more=phase == "BEGIN",
                phase=phase,
                kind=self._kind.type,
                sync=self._sync,
                resource_version=version,
                request=requests.get(cell, 0),
            )
            self._publisher.put(cell, mark)

    def _relist_stale(self) -> None:
        for kind in sorted(self._router.take_stale()):
            self._relist(kind)
