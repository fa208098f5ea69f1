"""Answers RESYNC decisions: the scheduler has lost its state and asks for everything again.

A request may have been written while no watcher ran, and the scheduler waits for it. So reading begins with
the last decisions before the start; to answer a request twice does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from sluice.codec import DECISIONS, UnreadableRecordError, find_header
from sluice.decisions import Resync
from sluice.kafka import LogReader, Received

log = logging.getLogger(__name__)

RESYNC_TYPE: Final = DECISIONS.ce_type(Resync.type)
POLL_S: Final = 1.0
#: While a request stands the scheduler decides nothing else about its cluster, so it is among the last.
RECENT: Final = 1000


class ResyncRequests:
    def __init__(
        self,
        reader: LogReader,
        *,
        cluster: str,
        cell_of: Mapping[int, str],
        relist: Callable[[str, int], None],
    ) -> None:
        self._reader = reader
        self._cluster = cluster
        self._cell_of = cell_of
        self._relist = relist

    async def start(self) -> None:
        """Return when requests from before the start are known and none that comes can be missed."""
        bounds = {partition: await self._reader.bounds(partition) for partition in self._cell_of}
        unread = {partition: max(first, end - RECENT) for partition, (first, end) in bounds.items()}
        await self._reader.assign(unread)
        while any(unread[partition] < end for partition, (_, end) in bounds.items()):
            for received in await self._reader.poll(POLL_S):
                self._read(received)
                unread[received.partition] = received.offset + 1

    async def run(self) -> None:
        while True:
            for received in await self._reader.poll(POLL_S):
                self._read(received)

    def _read(self, received: Received) -> None:
        if find_header(received.headers, "ce_type") != RESYNC_TYPE:
            return
        try:
            decision = DECISIONS.decode(received.headers, received.value)
        except UnreadableRecordError as error:
            log.error("a RESYNC decision at offset %d could not be read: %s", received.offset, error)
            return
        if decision.cluster == self._cluster:
            self._relist(self._cell_of[received.partition], decision.seq)
