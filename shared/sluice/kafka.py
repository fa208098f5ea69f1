"""Kafka as Sluice uses it: two logs, one partition a cell, written in order and read from an offset.

Writers are asynchronous. kafka-python blocks, so each reader owns one thread, and event loops never wait for
the network.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import aiokafka.errors
from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder
from kafka import ConsumerRebalanceListener, KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from sluice.codec import Headers, Message
from sluice.settings import Settings
from sluice.texts import cut

#: What reading and writing may raise.
LogError: TypeAlias = KafkaError
T = TypeVar("T")
_log: Final = logging.getLogger(__name__)

#: After this long without an acknowledgement an append fails and its service starts over.
DELIVERY_TIMEOUT_MS: Final = 30_000
#: A request that is not answered within this time is sent again.
REQUEST_TIMEOUT_MS: Final = 20_000
CLOSE_TIMEOUT_S: Final = 1.0
#: Brokers take batches of up to 1 MiB.
BATCH_BYTES: Final = 2**19
#: A dead consumer's partitions move after this long.
SESSION_TIMEOUT_MS: Final = 6_000
#: Between two attempts to read while Kafka is away.
RETRY_S: Final = 0.5
DEAD_LETTER_PREFIX: Final = "dlq."
#: Kafka takes no record of 1 MiB, key and headers included.
VALUE_BYTES_MAX: Final = 900_000
RETENTION_MS: Final = 14 * 24 * 3_600_000


class NoTopicError(KafkaError):  # type: ignore[misc]
    """There is nothing to read."""


def client_options(settings: Settings) -> dict[str, Any]:
    options: dict[str, Any] = {"bootstrap_servers": settings.kafka.split(",")}
    tls = bool(settings.kafka_tls_ca)
    if tls:
        options["ssl_cafile"] = settings.kafka_tls_ca
    if settings.kafka_username:
        options |= {
            "security_protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": settings.kafka_password,
        }
    elif tls:
        options["security_protocol"] = "SSL"
    return options


def ensure_topics(settings: Settings) -> dict[str, str]:
    """Create what is missing of Sluice's topics; the id of each, which a topic made anew does not share."""
    names = [settings.events_topic, settings.decisions_topic]
    names += [DEAD_LETTER_PREFIX + name for name in names]
    names.append(settings.snapshots_topic)
    wanted = {
        name: {
            "num_partitions": max(settings.cells.values()) + 1,
            "replication_factor": settings.topic_replicas,
            "configs": {
                "cleanup.policy": "delete",
                "retention.ms": str(RETENTION_MS),
                # What is acknowledged outlives the loss of a broker, and one may be missing.
                "min.insync.replicas": str(max(1, settings.topic_replicas - 1)),
            },
        }
        for name in names
    }
    admin = KafkaAdminClient(**client_options(settings))
    try:
        for name in set(names) - set(admin.list_topics()):
            with suppress(TopicAlreadyExistsError):  # another service was faster
                admin.create_topics({name: wanted[name]})
        admin.wait_for_topics(names)
        return _ids(admin, names)
    finally:
        admin.close()


def topic_ids(settings: Settings) -> dict[str, str]:
    """Of both logs, as they are; nothing is created."""
    with closing(KafkaAdminClient(**client_options(settings))) as admin:
        return _ids(admin, [settings.events_topic, settings.decisions_topic])


def _ids(admin: KafkaAdminClient, names: list[str]) -> dict[str, str]:
    return {topic["name"]: str(topic["topic_id"]) for topic in admin.describe_topics(names)}


class LogWriter:
    """Appends in order; returns when Kafka has acknowledged. Idempotent within this writer's life.

    Whole batches are handed to the client, so an append is one request: beside kafka-python, which was
    measured too, a tenth of the CPU time a record and a quarter of the time until the acknowledgement.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._producer: AIOKafkaProducer | None = None
        self._starting = asyncio.Lock()

    async def append(self, topic: str, partition: int, messages: Sequence[Message]) -> int:
        """The offset of the last of `messages`; KafkaError if Kafka did not take them all."""
        try:
            async with asyncio.timeout(DELIVERY_TIMEOUT_MS / 1000):
                producer = await self._started()
                offset = -1
                for batch in _batches(producer, messages):
                    appended = await (await producer.send_batch(batch, topic, partition=partition))
                    offset = appended.offset + batch.record_count() - 1
                return offset
        except (aiokafka.errors.KafkaError, TimeoutError) as error:
            await self.close()  # it may be past mending, or still trying: the next append has a new producer
            raise KafkaError(f"append to {topic}[{partition}]: {error!r}") from error

    async def _started(self) -> AIOKafkaProducer:
        async with self._starting:
            if self._producer is None:
                producer = AIOKafkaProducer(
                    **_asynchronous(client_options(self._settings)),
                    acks="all",
                    enable_idempotence=True,
                    max_batch_size=BATCH_BYTES,
                    request_timeout_ms=REQUEST_TIMEOUT_MS,
                )
                try:
                    await producer.start()
                except BaseException:
                    await producer.stop()
                    raise
                self._producer = producer
        return self._producer

    async def close(self) -> None:
        """What Kafka has not taken by now is dropped, and does not come late."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        try:
            async with asyncio.timeout(
                CLOSE_TIMEOUT_S
            ):  # `wait_for` may lose a cancellation, up to Python 3.11
                await producer.stop()
        except TimeoutError:  # it would go on trying
            sender = producer._sender.sender_task
            while not sender.done():  # each time ends one thing that it waits for
                sender.cancel()
                await asyncio.sleep(0)
            await producer.client.close()


def _asynchronous(options: dict[str, Any]) -> dict[str, Any]:
    """kafka-python's options as aiokafka calls them."""
    ca_file = options.pop("ssl_cafile", None)
    return options | ({"ssl_context": ssl.create_default_context(cafile=ca_file)} if ca_file else {})


def _batches(producer: AIOKafkaProducer, messages: Sequence[Message]) -> Iterator[BatchBuilder]:
    """As few as hold all, in order. A batch is written whole or not at all."""
    batch = producer.create_batch()
    for message in messages:
        if not _fits(batch, message):
            yield batch
            batch = producer.create_batch()
            _fits(batch, message)  # the first always does
    yield batch


def _fits(batch: BatchBuilder, message: Message) -> bool:
    added = batch.append(timestamp=None, key=message.key, value=message.value, headers=message.headers)
    return added is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A record as Kafka delivered it, not decoded yet."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers


@dataclass(frozen=True, slots=True)
class Position:
    """Where a group goes on, and what it noted about that."""

    offset: int
    note: str = ""


class _Assignment(ConsumerRebalanceListener):  # type: ignore[misc]
    """What the group has given to this member. Written by the reader's thread, read by anybody."""

    def __init__(self) -> None:
        self.partitions: dict[int, int] = {}
        self._count = 0

    @property
    def joined(self) -> bool:
        return self._count > 0

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._count += 1
        self.partitions |= {at.partition: self._count for at in assigned}

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        gone = {at.partition for at in revoked}
        self.partitions = {p: count for p, count in self.partitions.items() if p not in gone}


class LogReader:
    """Reads one topic: chosen partitions from chosen offsets, or what a consumer group gives it."""

    def __init__(
        self, settings: Settings, topic: str, *, group: str | None = None, delay_ms: int = 0
    ) -> None:
        """`delay_ms`: what arrives may be told of so much later, for the sake of fewer requests."""
        self._topic = topic
        self._assignment = _Assignment()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"read-{topic}")
        self._consumer = KafkaConsumer(
            **client_options(settings),
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            max_poll_records=1000,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=1000,
            **({"fetch_min_bytes": 2**20, "fetch_max_wait_ms": delay_ms} if delay_ms else {}),
        )
        if group is not None:
            self._consumer.subscribe([topic], listener=self._assignment)

    @property
    def assigned(self) -> Mapping[int, int]:
        """The partitions that the group leaves to this reader now, and by which of its hand-outs."""
        return self._assignment.partitions

    @property
    def joined(self) -> bool:
        """Whether the group has taken this reader in, be it with no partition yet, as one who stands by."""
        return self._assignment.joined

    async def _in_thread(self, call: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    async def assign(self, offsets: Mapping[int, int]) -> None:
        """Read these partitions, each from its offset."""

        def run() -> None:
            self._consumer.assign([self._at(partition) for partition in offsets])
            for partition, offset in offsets.items():
                self._consumer.seek(self._at(partition), offset)

        await self._in_thread(run)

    async def poll(self, timeout_s: float) -> list[Received]:
        """Whatever has arrived, waiting at most `timeout_s` for the first record.

        While Kafka is away nothing has: the client now waits for it, now passes on what its connections said.
        """

        return await self._in_thread(self._poll, timeout_s)

    async def stand_by(self, timeout_s: float) -> list[Received]:
        """Stay a member of the group and read nothing of what it has given to this reader. What it hands out meanwhile
        may be read all the same."""

        def run() -> list[Received]:
            self._consumer.pause(*self._consumer.assignment())
            try:
                return self._poll(timeout_s)
            finally:
                self._consumer.resume(*self._consumer.paused())

        return await self._in_thread(run)

    def _poll(self, timeout_s: float) -> list[Received]:
        try:
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        except KafkaError as error:
            if not error.retriable:
                raise
            _log.warning("nothing was read of %s, to be tried again: %s", self._topic, error)
            time.sleep(min(timeout_s, RETRY_S))
            return []
        return [
            Received(
                partition=record.partition,
                offset=record.offset,
                key=record.key,
                value=record.value,
                headers=list(record.headers),
            )
            for records in batches.values()
            for record in records
        ]

    async def commit(self, positions: Mapping[int, Position]) -> bool:
        """Tell the group where to go on: a hint, for all that Sluice does can be done twice. False when the group
        did not take it, as while it hands its partitions out anew."""
        metadata = {
            self._at(partition): OffsetAndMetadata(position.offset, position.note, -1)
            for partition, position in positions.items()
        }
        try:
            await self._in_thread(self._consumer.commit, metadata)
        except KafkaError as error:
            _log.warning("offsets not committed, to be tried again: %s", error)
            return False
        return True

    async def committed(self, partition: int) -> Position | None:
        """Where the group goes on; None when it never said."""
        found = await self._in_thread(self._consumer.committed, self._at(partition), True)
        return None if found is None else Position(found.offset, found.metadata)

    async def begin_anew(self, partition: int) -> None:
        """Read a partition that the group has given to this reader from its first record on."""
        await self._in_thread(self._consumer.seek_to_beginning, self._at(partition))

    async def expect(self) -> None:
        """NoTopicError if there is no such topic: whatever is asked about it would wait for an answer."""
        if self._topic not in await self._in_thread(self._consumer.topics):
            raise NoTopicError(
                f"Kafka has no topic {self._topic}: Sluice's services create theirs when they start; or set "
                "SLUICE_TOPICS to what the topics' names begin with"
            )

    async def bounds(self, partition: int) -> tuple[int, int]:
        """The first offset still in the log, and the one after its last."""

        def run() -> tuple[int, int]:
            at = self._at(partition)
            return self._consumer.beginning_offsets([at])[at], self._consumer.end_offsets([at])[at]

        return await self._in_thread(run)

    async def between(self, partition: int, start: int, end: int) -> AsyncIterator[Received]:
        """The records from `start` up to and without `end`, as far as they are not gone before they are read, with an
        assignment of this reader's own."""
        if start < end:
            await self.assign({partition: start})
        while start < end:
            found = await self.poll(1.0)
            for received in found:
                if received.offset < end:
                    yield received
                start = received.offset + 1
            if not found:
                first, last = await self.bounds(partition)
                start, end = max(start, first), min(end, last)

    async def tail(self, partition: int, count: int) -> list[Received]:
        """The last `count` records, read with an assignment of this reader's own."""
        first, end = await self.bounds(partition)
        return [received async for received in self.between(partition, max(first, end - count), end)]

    async def close(self) -> None:
        await self._in_thread(self._consumer.close)
        self._thread.shutdown(wait=False)

    def _at(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topic, partition)


def dead_letter(received: Received, *, topic: str, error: str) -> Message:
    """The original bytes and headers, with why and whence they were set aside. What is too long is cut."""
    about = {
        "sluice_error": cut(error),
        "sluice_topic": topic,
        "sluice_partition": str(received.partition),
        "sluice_offset": str(received.offset),
    }
    headers = [*received.headers, *((name, text.encode()) for name, text in about.items())]
    return Message(key=received.key or b"", value=(received.value or b"")[:VALUE_BYTES_MAX], headers=headers)
