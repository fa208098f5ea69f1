"""Where objects go that could not be read: their JSON, with why, for people to look at."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import orjson
from sluice.codec import Message
from sluice.kafka import DEAD_LETTER_PREFIX

from sluice_watcher import metrics
from sluice_watcher.publisher import Appender
from sluice_watcher.requests import Object

log = logging.getLogger(__name__)

#: Kafka takes no message of 1 MiB, Kubernetes stores larger objects. What is longer is cut here.
VALUE_BYTES_MAX: Final = 900_000


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
        reason = f"{type(error).__name__}: {error}"
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
                value=orjson.dumps(unreadable)[:VALUE_BYTES_MAX],
                headers=[(name, text.encode()) for name, text in about.items()],
            )
        )

    async def flushed(self) -> None:
        await self._waiting.join()
