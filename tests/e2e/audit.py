"""What anybody can check afterwards: the two topics and the ledger. What a failed test leaves of them for
whoever looks for the cause.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path
from typing import Any

from kafka.errors import KafkaError
from redis import Redis, RedisError
from sluice.bugreport import Header, Log, write
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, UnreadableRecordError, find_header
from sluice.decisions import Admit, Decision
from sluice.events import Event, OutcomeEvent, RebuildEvent
from sluice.kafka import DEAD_LETTER_PREFIX, LogReader, Received
from sluice.settings import Settings
from sluice_local import Stack

CELL = "default"
REPORT = "bug-report.sluice"
READ_WITHIN_S = 30
DIFFERS = "what is derived differs from the accounts"
_REBUILD = EVENTS.ce_type(RebuildEvent.type)


class Audit:
    def __init__(self, stack: Stack) -> None:
        endpoints = stack.endpoints
        self.settings = Settings(
            kafka=endpoints.kafka,
            kafka_username=endpoints.kafka_username,
            kafka_password=endpoints.kafka_password,
            redis=endpoints.redis,
        )

    def records(self, topic: str) -> list[Received]:
        async def read() -> list[Received]:
            reader = LogReader(self.settings, topic)
            try:
                async with asyncio.timeout(READ_WITHIN_S):
                    return await reader.tail(0, 10**9)
            finally:
                await reader.close()

        return asyncio.run(read())

    def decisions(self) -> list[Decision]:
        """In order of seq, each once; the same seq with other bytes is the end of all trust. Statuses have
        none."""
        found: dict[int, tuple[bytes, Decision]] = {}
        for record in self.records(self.settings.decisions_topic):
            decision = DECISIONS.decode(record.headers, record.value)
            assert record.value is not None
            if not decision.seq:
                continue
            before = found.setdefault(decision.seq, (record.value, decision))
            assert before[0] == record.value, f"seq {decision.seq} was published with two contents"
        assert sorted(found) == list(range(1, len(found) + 1)), "seq has holes"
        return [found[seq][1] for seq in sorted(found)]

    def epochs(self) -> list[str]:
        headers = [record.headers for record in self.records(self.settings.decisions_topic)]
        return [find_header(each, EPOCH_HEADER) or "" for each in headers]

    def events(self) -> list[Event]:
        """Those that can be read: other tests leave records that can't."""
        events = []
        for record in self.records(self.settings.events_topic):
            with suppress(UnreadableRecordError):
                events.append(EVENTS.decode(record.headers, record.value))
        return events

    def dead_letters(self) -> list[Received]:
        return self.records(DEAD_LETTER_PREFIX + self.settings.events_topic)

    def admitted_twice(self) -> list[str]:
        """Pods with more admissions than failed outcomes of admissions allow."""
        admits = [d for d in self.decisions() if isinstance(d, Admit)]
        failed = {
            e.seq
            for e in self.events()
            if isinstance(e, OutcomeEvent) and e.result not in ("Applied", "AlreadyApplied")
        }
        counted = Counter(f"{d.namespace}/{d.name}/{d.uid}" for d in admits if d.seq not in failed)
        return [pod for pod, count in counted.items() if count > 1]

    def applications(self) -> list[dict[str, Any]]:
        """Applications' accounts in the ledger that are admitted and have not ended."""
        found = [json.loads(value) for key, value in self.ledger().items() if key.startswith(b"workload/")]
        return [each for each in found if each["admitted"] and not each["facts"]["finished"]]

    def accounts(self, *namespaces: str) -> list[dict[str, Any]]:
        """Pods' accounts in the ledger that hold something."""
        pods = [json.loads(value) for key, value in self.ledger().items() if key.startswith(b"pod/")]
        return [
            pod for pod in pods if pod["namespace"] in namespaces and pod["phase"] in ("Assumed", "Holding")
        ]

    def ledger(self) -> dict[bytes, bytes]:
        """The rows of the state as Redis has them."""
        redis = Redis.from_url(self.settings.redis, socket_timeout=READ_WITHIN_S)
        return redis.hgetall(f"sluice:{{{CELL}}}:state")  # type: ignore[return-value]

    def prove(self, stack: Stack) -> None:
        """The decisions stand in the log as they were published, and follow from the events. What schedulers derived
        agreed with the accounts whenever they looked."""
        assert differences(stack) == []
        command = [sys.executable, "-m", "sluice_console.main", "audit", "verify", "--replay"]
        environment = os.environ | stack.user_env()
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        print(run.stdout, run.stderr)
        assert run.returncode == 0, run.stdout + run.stderr

    def export(self, stack: Stack, folder: Path) -> None:
        """Everything that happened, in files: logs, topics, ledger, as far as their servers still answer. The stack
        itself is gone in a moment.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for log in stack.logs():
            shutil.copy(log, folder / f"{log.parent.name}-{log.name}")
        with suppress(KafkaError, OSError, TimeoutError):
            self.report(folder / REPORT)
        with suppress(RedisError):
            rows = {key.decode(): value.decode(errors="replace") for key, value in self.ledger().items()}
            (folder / "ledger.json").write_text(json.dumps(rows, indent=1))

    def report(self, path: Path) -> None:
        """Both topics, from the first REBUILD on, as a bug report: `sluice replay` plays it."""
        events, decisions = map(self.records, (self.settings.events_topic, self.settings.decisions_topic))
        events = (
            list(dropwhile(lambda each: find_header(each.headers, "ce_type") != _REBUILD, events)) or events
        )

        async def both() -> AsyncIterator[tuple[Log, Received]]:
            for event in events:
                yield "event", event
            for decision in decisions:
                yield "decision", decision

        header = Header(cell=CELL, partition=0, since="the first REBUILD", until="the last")
        asyncio.run(write(path, header, both()))


def differences(stack: Stack) -> list[str]:
    """What schedulers say of what they have derived."""
    logs = [log for log in stack.logs() if log.parent.name.startswith("scheduler")]
    return [line for log in logs for line in log.read_text().splitlines() if DIFFERS in line]
