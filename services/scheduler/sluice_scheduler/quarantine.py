"""Stepping records so that an exception stops nobody: what raised is set aside, and the record stepped again.

    step raises ──► once more, from the last commit ──► raises again: who is to blame? ──► a SetAside record
                        what was chance is gone             what, just before which offset     behind the log

Whoever reads the log afterwards, from wherever, looks for these records first and steps the same. What is to
blame is found out (blame.py) by whoever meets the exception, and by nobody else.
At one record each suspect is set aside once, and is stuck the second time; then the pass behind the record is
left out, then the record. So it comes to an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from sluice.codec import EVENTS, UnreadableRecordError, find_header
from sluice.decisions import Decision
from sluice.events import Event, SetAsideEvent
from sluice.records import Records

from sluice_scheduler.blame import blame
from sluice_scheduler.core import State, step
from sluice_scheduler.core.intake.aside import set_aside
from sluice_scheduler.core.stored.entities import PASS, RECORD

REASON_MAX: Final = 500
#: So many records of the log are looked through at a time.
PIECE: Final = 500
_SET_ASIDE: Final = EVENTS.ce_type(SetAsideEvent.type)


class PoisonedError(Exception):
    """A step raised an exception: take the state from the last commit, and step again."""

    def __init__(self, offset: int, time_ms: int, suspects: Iterable[str], error: Exception) -> None:
        super().__init__(f"{type(error).__name__}: {error}"[:REASON_MAX])
        self.offset = offset
        self.time_ms = time_ms
        self.suspects = tuple(suspects)  # who is to be set aside, first of all the first


class HopelessError(Exception):
    """A step raises though its record is passed over: the ledger itself can't be worked with."""


class Quarantine:
    """Things that are set aside, and the record of the log before which each of them is."""

    def __init__(self) -> None:
        self._before: dict[int, dict[int, SetAsideEvent]] = {}  # by offset, and by where it stands itself
        self._raised: set[int] = set()  # the records that have raised once

    def learn(self, at: int, event: SetAsideEvent) -> None:
        self._before.setdefault(event.offset, {})[at] = event

    def forget(self, *, below: int) -> None:
        """Records below this offset are committed."""
        self._before = {offset: known for offset, known in self._before.items() if offset >= below}
        self._raised = {offset for offset in self._raised if offset >= below}

    def step(self, state: State, offset: int, event: Event | None) -> list[Decision]:
        """The decisions of a record; None: it can't be read. PoisonedError if it raises; then the state must not be
        used again. After any record what is derived is there, or the owner could not go on from that record."""
        before = [each for _, each in sorted(self._before.get(offset, {}).items())]
        names = {each.what for each in before}
        try:
            if before:
                set_aside(state, before)
            if not state.derived:
                state.derive()
            # A record that sets something aside has counted just before the one that it names.
            if event is None or isinstance(event, SetAsideEvent) or f"{RECORD}{offset}" in names:
                return state.take_decisions()
            return step(state, event, passes=f"{PASS}{offset}" not in names)
        except Exception as error:
            suspects, in_pass = blame(state, error)
            free = [what for what in suspects if not state.is_stuck(what)]
            if in_pass:
                free.append(f"{PASS}{offset}")
            time_ms = event.time_ms if event else state.now_ms
            raise PoisonedError(offset, time_ms, [*free, f"{RECORD}{offset}"], error) from error

    def judge(self, poisoned: PoisonedError, cluster: str) -> SetAsideEvent | None:
        """What is to be set aside so that the record can be stepped; None: try it once more as it is."""
        offset = poisoned.offset
        known = [each.what for each in self._before.get(offset, {}).values()]
        if not known and offset not in self._raised:
            self._raised.add(offset)
            return None
        most = {what: 1 if what.startswith((PASS, RECORD)) else 2 for what in poisoned.suspects}
        what = next((what for what in poisoned.suspects if known.count(what) < most[what]), None)
        if what is None:
            raise HopelessError(f"at offset {offset}, with its record passed over: {poisoned}")
        return SetAsideEvent(
            offset=offset,
            what=what,
            reason=str(poisoned),
            time_ms=poisoned.time_ms,
            cluster=cluster,
            more=True,
        )


class LookAhead:
    """Has a quarantine learn what others have set aside before records that are stepped from here on."""

    def __init__(self, quarantine: Quarantine, log: Records, partition: int) -> None:
        self._quarantine = quarantine
        self._log = log
        self._partition = partition
        #: From where to where the log was looked through.
        self._looked = (0, 0)

    async def run(self, next_offset: int) -> None:
        first, last = self._looked
        if not first <= next_offset:
            first = last = next_offset
        _, end = await self._log.bounds(self._partition)
        at = max(last, next_offset)
        while at < end:
            piece = await self._log.events(self._partition, at, min(at + PIECE, end))
            for received in piece:
                if find_header(received.headers, "ce_type") == _SET_ASIDE:
                    with suppress(UnreadableRecordError):  # whoever steps it says so
                        event = EVENTS.decode(received.headers, received.value)
                        if isinstance(event, SetAsideEvent):
                            self._quarantine.learn(received.offset, event)
            at = min(at + PIECE, end)
        self._looked = (first, at)
