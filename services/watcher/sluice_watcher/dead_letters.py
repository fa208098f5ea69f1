"""Where goes what could not be read, or not be written: its JSON, with why, for people to look at."""

from __future__ import annotations

import asyncio
import logging

import orjson
from sluice.codec import Message
from sluice.events import Event
from sluice.kafka import DEAD_LETTER_PREFIX, VALUE_BYTES_MAX
from sluice.texts import cut

from sluice_watcher import metrics
from sluice_watcher.publisher import Appender
from sluice_watcher.requests import Object

log = logging.getLogger(__name__)


class DeadLetters:
    def __init__(self, writer: Appender, *, topic: str, partition: int, cluster: str) -> None:
        self._writer = writer
        self._topic = topic
        self._partition = partition
        self._cluster = cluster
        self._waiting: asyncio.Queue[Message] = asyncio.Queue()

    async def run(self) -> None:
        while True:
            message = await self._waiting.get()
            await self._writer.append(DEAD_LETTER_PREFIX + self._topic, self._partition, [message])
            self._waiting.task_done()

    def put(self, kind: str, unreadable: Object, error: Exception) -> None:
        metadata = unreadable.get("metadata") or {}
        subject = "/".join(part for part in (kind, metadata.get("namespace"), metadata.get("name")) if part)
        self._set_aside(kind, subject, orjson.dumps(unreadable), f"{type(error).__name__}: {error}")

    def put_too_long(self, event: Event, value: bytes) -> None:
        """A record that Kafka would not take: an object may be larger than a record."""
        reason = f"its record would have {len(value)} bytes, which is more than {VALUE_BYTES_MAX}"
        self._set_aside(event.type, event.subject, value, reason)

    def _set_aside(self, kind: str, subject: str, value: bytes, reason: str) -> None:
        reason = cut(reason)
        log.error(
            "set aside %s, which could not be read (%s); everything else goes on. Its JSON is in %s",
            subject,
            reason,
            DEAD_LETTER_PREFIX + self._topic,
            extra={"object": subject},
        )
        metrics.DEAD_LETTERS.labels(kind).inc()
        about = {
            "sluice_error": reason,
            "sluice_topic": self._topic,
            "sluice_cluster": self._cluster,
            "sluice_kind": kind,
            "content-type": "application/json",
        }
        self._waiting.put_nowait(
            Message(
                key=subject.encode(),
                value=value[:VALUE_BYTES_MAX],
                headers=[(name, text.encode()) for name, text in about.items()],
            )
        )

    async def flushed(self) -> None:
        await self._waiting.join()
