"""CPU seconds and peak memory of processes, and what the API server was asked, over a window."""

from __future__ import annotations

import os
import re
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
REQUESTS = re.compile(r"^apiserver_request_total\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)


def cpu_seconds(pid: int) -> float:
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_S


def peak_memory_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


def reset_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


class Window:
    def __init__(self, pids: dict[str, int]) -> None:
        self._pids = pids
        for pid in pids.values():
            reset_peak(pid)
        self._before = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def read(self) -> dict[str, tuple[float, float]]:
        """Process → (CPU seconds, peak MB)."""
        return {
            name: (cpu_seconds(pid) - self._before[name], peak_memory_mb(pid))
            for name, pid in self._pids.items()
        }


def requests_by_kind(metrics: str) -> dict[str, int]:
    """`VERB resource/subresource` → requests so far, from the API server's own metrics; watches left out."""
    found: dict[str, int] = {}
    for match in REQUESTS.finditer(metrics):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"]))
        if labels["verb"] == "WATCH":
            continue
        kind = f"{labels['verb']} {labels['resource']}" + (f"/{s}" if (s := labels["subresource"]) else "")
        found[kind] = found.get(kind, 0) + int(float(match["count"]))
    return found
