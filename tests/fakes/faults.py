"""Exceptions raised on purpose, at any call inside a step; and a cell that goes through them as its owner does.

A `Fault` counts the calls of the core's functions. At the call that it was told it raises: so many times at that
call, or each time that the same function is called about the same account.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import sluice_scheduler.core
from sluice.decisions import Decision
from sluice.events import Event, SetAsideEvent
from sluice_scheduler.blame import accounts_in
from sluice_scheduler.core import State
from sluice_scheduler.quarantine import HopelessError, PoisonedError, Quarantine
from sluice_scheduler.simulator.cell import CLUSTER, SimulatedCell

_CORE: Final = str(Path(sluice_scheduler.core.__file__).parent)
#: Where something may raise each time that it comes there. Accounts themselves must be readable, and what they
#: hold must be counted: without that there is no cell.
WORK: Final = tuple(
    f"{_CORE}/{part}" for part in ("applications", "passes", "state/application.py", "state/offers.py")
)
REPORTS: Final = (f"{_CORE}/reports",)


HOPELESS_MAX: Final = 3


class InjectedError(Exception):
    pass


class Fault:
    """`at`: the number of the call. `times`: how often it raises from then on when the same function is called
    about the same account; 0: always. Then `where` says in which files."""

    def __init__(self, at: int, times: int, where: tuple[str, ...] = WORK) -> None:
        self.calls = 0
        #: The account about which it raises; empty: it does not know.
        self.about = ""
        self.raised = 0
        self._at = at
        self._times = times
        self._where = where if not times else (_CORE,)
        self._code: CodeType | None = None
        self._state: State | None = None

    @contextmanager
    def inside(self, state: State) -> Iterator[None]:
        self._state = state
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            yield
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        file = frame.f_code.co_filename
        if not file.startswith(_CORE):
            return None
        self.calls += 1
        if self._code is None and self.calls >= self._at and file.startswith(self._where):
            accounts = self._accounts(frame)
            if (accounts and frame.f_code.co_name != "<lambda>") or self._times:
                self._code, self.about = frame.f_code, (accounts or [""])[0]
        if frame.f_code is not self._code or (self._times and self.raised == self._times):
            return None
        if self.about and self.about not in self._accounts(frame):
            return None
        return self._raise

    def _accounts(self, frame: FrameType) -> list[str]:
        assert self._state is not None
        return accounts_in(self._state, frame)

    def _raise(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event != "line":
            return self._raise
        self.raised += 1
        raise InjectedError(f"{frame.f_code.co_qualname} about {self.about}")


class GuardedCell(SimulatedCell):
    """It keeps its log, and goes through exceptions as the owner of a cell does."""

    def __init__(self, *args: Any, aside: Sequence[SetAsideEvent] = (), **more: Any) -> None:
        self.fault: Fault | None = None
        self.log: list[list[Event]] = []  # in batches
        self.told: list[list[Decision]] = []
        self.aside: list[SetAsideEvent] = []
        self.hopeless = 0
        self.quarantine = Quarantine()
        for event in aside:
            self._learn(event)
        super().__init__(*args, **more)
        self._quiet = len(self.log) + 1  # until there are queues and pools to speak of

    def _learn(self, event: SetAsideEvent) -> None:
        self.aside.append(event)
        self.quarantine.learn(len(self.aside), event)

    def feed(self, events: list[Event], *, more: bool = False) -> list[Decision]:
        self.log.append(events)
        while True:
            try:
                decided = super().feed(events, more=more)
            except PoisonedError as poisoned:
                self._blame(poisoned)
                self.restart()
            else:
                self.told.append(decided)
                return decided

    def _blame(self, poisoned: PoisonedError) -> None:
        try:
            event = self.quarantine.judge(poisoned, CLUSTER)
        except HopelessError:
            self.hopeless += 1  # the owner starts over, in the hope of better times
            assert self.hopeless <= HOPELESS_MAX, poisoned
            return
        if event is not None:
            self._learn(event)

    def _step(self, offset: int, event: Event) -> list[Decision]:
        if self.fault is None or len(self.log) <= self._quiet:
            return self.quarantine.step(self.state, offset, event)
        with self.fault.inside(self.state):
            return self.quarantine.step(self.state, offset, event)
