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
    what: str  # admitted, grown, partly, taken back, gives back
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
        self._told = 0

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
        """How far something is that goes on."""
        entry = self._going_on(time_ms, tenant, what)
        entry.text, entry.until_ms = text, time_ms

    def settled(self, before_ms: int) -> list[Entry]:
        """Those that have become final since last asked, in order."""
        fresh = list(self._entries)[-self._told :] if self._told else []
        final: list[Entry] = []
        for entry in fresh:
            if entry.until_ms > before_ms - _AT_ONCE_MS:
                break
            final.append(entry)
        self._told -= len(final)
        return final

    def _going_on(self, time_ms: int, tenant: Tenant, what: str, text: str = "") -> Entry:
        for entry in list(self._entries)[-_LOOKS_BACK:]:
            is_same = (entry.tenant, entry.what) == (tenant, what) and (not text or entry.text == text)
            if is_same and time_ms - entry.time_ms <= _AT_ONCE_MS:
                return entry
        entry = Entry(time_ms=time_ms, until_ms=time_ms, tenant=tenant, what=what, text=text)
        self._add(entry)
        return entry

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._told = min(self._told + 1, _LATEST)
