"""What Sluice says of itself, read as anybody may read it: `sluice audit tail --follow --json`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from sluice_local.demo.scenario import CAST, Cast, Tenant
from sluice_local.demo.story import Story
from sluice_local.errors import StackError

_COMMAND: Final = ("audit", "tail", "--follow", "-n", "0", "--ticks", "--json")
#: What comes of opening the gate of a pod that its driver no longer wanted and has deleted.
_HARMLESS: Final = ("Applied", "AlreadyApplied", "Gone")
#: A pod beyond what its application was admitted with: into free room, or into what was taken back.
_GROWTH: Final = ("Fits", "Reclaimed")

Line: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Partial:
    """How far an application had grown when it wanted more than it got."""

    granted: int
    wanted: int


@dataclass(slots=True)
class Account:
    """What the logs have told so far. Counters are by tenant."""

    cast: Cast = CAST
    story: Story = field(default_factory=Story)
    reports: dict[str, Line] = field(default_factory=dict)  # the last report on each queue
    deserved: dict[str, dict[str, int]] = field(
        default_factory=dict
    )  # the least that was told of who wanted more
    admitted: dict[str, str] = field(default_factory=dict)  # applications as a whole, and with what
    opened: int = 0
    grown: Counter[str] = field(default_factory=Counter)
    partial: dict[str, Partial] = field(default_factory=dict)  # the largest gap
    reclaimed: Counter[str] = field(default_factory=Counter)
    suspended: Counter[str] = field(default_factory=Counter)  # applications taken back as a whole
    succeeded: Counter[str] = field(default_factory=Counter)
    scaled_down: Counter[str] = field(default_factory=Counter)
    passed_on: int = 0  # growth into what others gave back
    latencies_ms: list[int] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)  # outcomes that somebody should look at
    _decided_ms: dict[int, int] = field(default_factory=dict)  # admissions that wait for their outcome
    _lacking: set[str] = field(default_factory=set)  # tenants of whom it was told last that they want more
    _open: set[str] = field(default_factory=set)  # uids of pods that hold
    _evicted: set[str] = field(default_factory=set)

    def take(self, line: Line) -> None:
        record = line.get("record")
        if record is None:
            return
        if line["type"] == "outcome":
            self._settle(record)
        elif line["type"] == "reportqueue":
            self._take_report(record["name"], record)
        elif tenant := self.cast.tenant_in(record.get("namespace", "")):
            self._take_ours(tenant, line, record)

    @property
    def holding(self) -> list[str]:
        """Queues whose accounts are not empty, as Sluice last reported them."""
        return [name for name, report in self.reports.items() if any(report["usage"].values())]

    @property
    def is_settled(self) -> bool:
        """Whether nothing that was told of a tenant waits for the word that ends it."""
        return not self._lacking and not self.holding

    def _take_report(self, queue: str, report: Line) -> None:
        self.reports[queue] = report
        if report.get("pending"):
            least = self.deserved.get(queue, {})
            self.deserved[queue] = {
                key: min(amount, least.get(key, amount)) for key, amount in report["fairShare"].items()
            }

    def _take_ours(self, tenant: Tenant, line: Line, record: Line) -> None:
        time_ms, sentence = line["timeMs"], line["sentence"]
        match line["type"]:
            case "admitworkload":
                reserved = ", ".join(f"{count} {name}" for name, count in record["reserved"].items())
                self.admitted[tenant.name] = reserved
                self.story.tell(time_ms, tenant, "admitted", f"as a whole: {reserved} reserved")
            case "evictworkload":
                self.suspended[tenant.name] += 1
                self.story.tell(time_ms, tenant, "taken back", f"as a whole: {sentence}")
            case "reportworkload":
                self._report(tenant, time_ms, record)
            case "admit":
                self._decided_ms[line["seq"]] = record["timeMs"]
                self._open.add(record["uid"])
                if line["reason"] in _GROWTH:
                    self.grown[tenant.name] += 1
                    given = self.succeeded + self.scaled_down
                    self.passed_on += line["reason"] == "Fits" and any(given[each] for each in given)
                    self.story.count(time_ms, tenant, "grown", "more", sentence)
            case "evict":
                self.reclaimed[tenant.name] += 1
                self._evicted.add(record["uid"])
                text = f"of its growth{self._for_whom(sentence)}"
                self.story.count(time_ms, tenant, "taken back", text, sentence)
            case "workload" if record["change"] == "DELETED":
                self._lacks_nothing(tenant, time_ms, "ended", "its application was deleted")
            case "pod":
                self._pod(tenant, time_ms, record)

    def _report(self, tenant: Tenant, time_ms: int, record: Line) -> None:
        granted = sum(each["admitted"] for each in record["podSets"])
        wanted = sum(each["desired"] for each in record["podSets"])
        if record["phase"] == "Finished":
            self._lacks_nothing(tenant, time_ms, "ended", "its application holds and wants nothing")
            return
        if record["phase"] != "Growing" or granted >= wanted:
            self._lacks_nothing(tenant, time_ms, "granted", f"all {granted} pods that it asks for")
            return
        self._lacking.add(tenant.name)
        found, before = Partial(granted, wanted), self.partial.get(tenant.name, Partial(0, 0))
        if found.wanted - found.granted > before.wanted - before.granted:
            self.partial[tenant.name] = found
        sets = ", ".join(
            f"{each['admitted']} of {each['desired']} {each['name']}"
            for each in record["podSets"]
            if each["admitted"] < each["desired"]
        )
        why = record["why"].partition(";")[0]
        self.story.replace(time_ms, tenant, "granted", f"{sets}; {why}")

    def _lacks_nothing(self, tenant: Tenant, time_ms: int, what: str, text: str) -> None:
        """Take back in the story what was said of its lack."""
        if tenant.name in self._lacking:
            self._lacking.discard(tenant.name)
            self.story.replace(time_ms, tenant, what, text)

    def _pod(self, tenant: Tenant, time_ms: int, record: Line) -> None:
        uid, pod = record["uid"], record["pod"]
        gone = record["change"] == "DELETED"
        if uid not in self._open or not (gone or pod["phase"] in ("Succeeded", "Failed")):
            return
        self._open.discard(uid)
        if pod["phase"] == "Succeeded":
            self.succeeded[tenant.name] += 1
            self.story.count(time_ms, tenant, "gives back", "after success")
        elif uid not in self._evicted:
            self.scaled_down[tenant.name] += 1
            self.story.count(time_ms, tenant, "gives back", "no longer needed")

    def _settle(self, outcome: Line) -> None:
        """From the news that there is room (a decision has the time of what it follows) to the gate open."""
        decided_ms = self._decided_ms.pop(outcome["seq"], None)
        if decided_ms is None:
            return
        if outcome["result"] in ("Applied", "AlreadyApplied"):
            self.opened += 1
            self.latencies_ms.append(outcome["timeMs"] - decided_ms)
        elif outcome["result"] not in _HARMLESS:
            self.refusals.append(f"decision {outcome['seq']}: {outcome['result']} {outcome['message']}")

    def _for_whom(self, sentence: str) -> str:
        """Who gets what is taken back: the sentence tells first of who loses it, then of him."""
        for tenant in self.cast.tenants:
            if f", {tenant.name} has " in sentence:
                return f", for {tenant.name}"
        return ""


class Audit(threading.Thread):
    """Feeds an account, under a lock that readers hold too."""

    def __init__(self, environment: Mapping[str, str], account: Account, lock: threading.Lock) -> None:
        super().__init__(name="audit", daemon=True)
        self._account = account
        self._lock = lock
        self._reads = threading.Event()
        self._heeds = False
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
                if self._heeds:
                    self._account.take(json.loads(text))
            self._reads.set()

    def heed(self) -> None:
        """Take what comes from now on: what was before belongs to the last run."""
        with self._lock:
            self._heeds = True

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
