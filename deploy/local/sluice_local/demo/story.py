"""What was decided, for people to follow: a line for what happens at once, however many pods it is about."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sluice_local.demo.scenario import Tenant

_LATEST: Final = 100
#: What goes on for so long is one line; others may come in between.
_AT_ONCE_MS: Final = 2_500
_LOOKS_BACK: Final = 4


@dataclass(slots=True, kw_only=True)
class Entry:
    time_ms: int
    until_ms: int
    tenant: Tenant
    what: str  # admitted, grown, granted, taken back, gives back, ended
    text: str
    pods: int = 0
    why: str = ""

    def __str__(self) -> str:
        counted = f"{self.pods} pod{'s' if self.pods > 1 else ''} {self.text}"
        text = counted if self.pods else self.text
        return f"{text}: {self.why}" if self.why else text


class Story:
    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=_LATEST)
        self._untold = 0

    def latest(self, length: int) -> Sequence[Entry]:
        return list(self._entries)[-length:]

    def tell(self, time_ms: int, tenant: Tenant, what: str, text: str) -> None:
        self._add(Entry(time_ms=time_ms, until_ms=time_ms, tenant=tenant, what=what, text=text))

    def count(self, time_ms: int, tenant: Tenant, what: str, text: str, why: str = "") -> None:
        """One pod more; why, of the last one."""
        entry = self._going_on(time_ms, tenant, what, text)
        entry.pods += 1
        entry.why, entry.until_ms = why, time_ms

    def replace(self, time_ms: int, tenant: Tenant, what: str, text: str) -> None:
        """How far something is that goes on; a new line if more of that tenant was told since."""
        last = next((entry for entry in reversed(self._going()) if entry.tenant is tenant), None)
        if last is None or last.what != what or time_ms - last.time_ms > _AT_ONCE_MS:
            self.tell(time_ms, tenant, what, text)
        else:
            last.text, last.until_ms = text, time_ms

    def settled(self, before_ms: int) -> list[Entry]:
        """Those that have become final since last asked, in order."""
        fresh = list(self._entries)[-self._untold :] if self._untold else []
        final: list[Entry] = []
        for entry in fresh:
            if entry.until_ms > before_ms - _AT_ONCE_MS:
                break
            final.append(entry)
        self._untold -= len(final)
        return final

    def _going(self) -> Sequence[Entry]:
        """The latest lines, as far as they are not final."""
        return list(self._entries)[-min(_LOOKS_BACK, self._untold) :] if self._untold else ()

    def _going_on(self, time_ms: int, tenant: Tenant, what: str, text: str) -> Entry:
        for entry in self._going():
            is_same = (entry.tenant, entry.what, entry.text) == (tenant, what, text)
            if is_same and time_ms - entry.time_ms <= _AT_ONCE_MS:
                return entry
        entry = Entry(time_ms=time_ms, until_ms=time_ms, tenant=tenant, what=what, text=text)
        self._add(entry)
        return entry

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._untold = min(self._untold + 1, _LATEST)
