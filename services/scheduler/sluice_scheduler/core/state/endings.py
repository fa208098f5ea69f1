"""Pods that hold and say when they end, the first to end first."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator

from sluice_scheduler.core.stored.accounts import Pod


class Endings:
    """Pods that are being evicted are left out: what they hold is on its way out already."""

    __slots__ = ("_by_time", "let_in")

    def __init__(self) -> None:
        self._by_time: list[tuple[int, str]] = []
        #: Pods that were let into kept room because of when they said they end, and until when.
        self.let_in: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """When each ends, and its key."""
        return iter(self._by_time)

    def add(self, pod: Pod) -> None:
        if pod.evicting:
            return
        if pod.ends_ms:
            insort(self._by_time, (pod.ends_ms, pod.key))
        if pod.until_ms:
            self.let_in[pod.key] = pod.until_ms

    def remove(self, pod: Pod) -> None:
        if pod.evicting:
            return
        if pod.ends_ms:
            entry = (pod.ends_ms, pod.key)
            at = bisect_left(self._by_time, entry)
            assert self._by_time[at] == entry, f"{pod.key} is not among those that say when they end"
            del self._by_time[at]
        self.let_in.pop(pod.key, None)
