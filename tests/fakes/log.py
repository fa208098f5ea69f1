"""A Kafka for writers: partitions that remember, and hold back or refuse acknowledgements on demand."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from kafka.errors import MessageSizeTooLargeError
from sluice.codec import EVENTS, Message
from sluice.events import Event

#: What a broker takes, as it comes.
MESSAGE_BYTES_MAX = 1_048_588


class FakeLog:
    def __init__(self) -> None:
        self.messages: defaultdict[tuple[str, int], list[Message]] = defaultdict(list)
        self.appends: list[int] = []  # how many messages each brought
        self.failure: Exception | None = None
        self._answers = asyncio.Event()
        self._answers.set()

    def hold(self) -> None:
        """Acknowledge nothing until released."""
        self._answers.clear()

    def release(self) -> None:
        self._answers.set()

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        self.appends.append(len(messages))
        await self._answers.wait()
        if self.failure:
            raise self.failure
        for message in messages:
            headers = sum(len(name) + len(value) for name, value in message.headers)
            if len(message.key) + len(message.value) + headers > MESSAGE_BYTES_MAX:
                raise MessageSizeTooLargeError(message.key)
        self.messages[topic, partition] += messages
        await asyncio.sleep(0)
        return len(self.messages[topic, partition]) - 1

    def events(self, topic: str, partition: int = 0) -> list[Event]:
        return [EVENTS.decode(each.headers, each.value) for each in self.messages[topic, partition]]
