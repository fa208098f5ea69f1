"""What Sluice says of itself, read as anybody may read it: `sluice audit tail --follow --json`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from sluice_local.demo.scenario import TENANTS
from sluice_local.errors import StackError

_LATEST: Final = 100
_COMMAND: Final = ("audit", "tail", "--follow", "-n", "0", "--ticks", "--json")

Line: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)
class Account:
    """What the logs have told so far."""

    reports: dict[str, Line] = field(default_factory=dict)  # the last report on each queue
    latest: deque[Line] = field(
        default_factory=lambda: deque(maxlen=_LATEST)
    )  # gates opened, accounts closed
    opened: int = 0
    latencies_ms: list[int] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # outcomes that somebody should look at
    _decided_ms: dict[int, int] = field(default_factory=dict)  # admissions that wait for their outcome

    def take(self, line: Line) -> None:
        record = line.get("record")
        if record is None:
            return
        match line["type"]:
            case "reportqueue":
                self.reports[record["name"]] = record
            case "admit" if _is_ours(record):
                self._decided_ms[line["seq"]] = record["timeMs"]
                self.latest.append(line)
            case "outcome":
                self._settle(record)
            case "pod" if _is_ours(record) and record["pod"]["phase"] in ("Succeeded", "Failed"):
                if record["change"] == "MODIFIED":
                    self.latest.append(line)

    def _settle(self, outcome: Line) -> None:
        """From the news that there is room (a decision has the time of what it follows) to the gate open."""
        decided_ms = self._decided_ms.pop(outcome["seq"], None)
        if decided_ms is None:
            return
        if outcome["result"] in ("Applied", "AlreadyApplied"):
            self.opened += 1
            self.latencies_ms.append(outcome["timeMs"] - decided_ms)
        else:
            self.refusals.append(f"decision {outcome['seq']}: {outcome['result']} {outcome['message']}")


class Audit(threading.Thread):
    """Feeds an account, under a lock that readers hold too."""

    def __init__(self, environment: Mapping[str, str], account: Account, lock: threading.Lock) -> None:
        super().__init__(name="audit", daemon=True)
        self._account = account
        self._lock = lock
        self._reads = threading.Event()
        self._process = subprocess.Popen(
            [Path(sys.executable).with_name("sluice"), *_COMMAND],
            env={**environment, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a Ctrl-C is for the demo to handle
        )

    def run(self) -> None:
        assert self._process.stdout
        for text in self._process.stdout:
            with self._lock:
                self._account.take(json.loads(text))
            self._reads.set()

    def wait_until_reading(self, within_s: float) -> None:
        """Each tick of time is a record, so the first comes within a second of the start."""
        if not self._reads.wait(within_s):
            self.stop()
            raise StackError(f"`sluice audit tail` says nothing: {self.complaint() or 'no ticks arrive'}")

    def complaint(self) -> str:
        """Why it has ended, if it has."""
        if self._process.poll() is None:
            return ""
        assert self._process.stderr
        return self._process.stderr.read().strip()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


def _is_ours(record: Line) -> bool:
    return any(record["namespace"] == tenant.namespace for tenant in TENANTS)
