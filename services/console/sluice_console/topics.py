"""Both topics, read and never written, and outside every consumer group. The only module that knows Kafka."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from sluice.kafka import DEAD_LETTER_PREFIX, Received, client_options
from sluice.programs import START_OR_POINT
from sluice.settings import Settings

from sluice_console.errors import ConsoleError

_ANSWERS_WITHIN_MS: Final = 5_000
#: A log that ends in records that never arrive is given up after so many empty polls.
_EMPTY_POLLS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class Bounds:
    """The first offset that is still in a log, and the one after its last."""

    first: int
    end: int

    def last(self, count: int) -> Bounds:
        """Those of the last `count` records."""
        return Bounds(max(self.first, self.end - count), self.end)


def dead_letter_topics(settings: Settings) -> tuple[str, ...]:
    return tuple(DEAD_LETTER_PREFIX + name for name in (settings.events_topic, settings.decisions_topic))


class Topics:
    """One partition of the topics named, which must exist."""

    def __init__(self, settings: Settings, partition: int, names: tuple[str, ...]) -> None:
        logging.getLogger("kafka").setLevel(logging.CRITICAL)  # what fails is told below, once
        self._settings = settings
        self._at = {name: TopicPartition(name, partition) for name in names}
        with self._explained():
            self._consumer = KafkaConsumer(
                **client_options(settings),
                enable_auto_commit=False,
                bootstrap_timeout_ms=_ANSWERS_WITHIN_MS,
                max_poll_records=2_000,
            )
            self._expect_topics()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close(autocommit=False)

    def bounds(self) -> dict[str, Bounds]:
        partitions = list(self._at.values())
        with self._explained():
            first = self._consumer.beginning_offsets(partitions, timeout_ms=_ANSWERS_WITHIN_MS)
            end = self._consumer.end_offsets(partitions, timeout_ms=_ANSWERS_WITHIN_MS)
        return {name: Bounds(first[at], end[at]) for name, at in self._at.items()}

    def read(self, spans: Mapping[str, Bounds]) -> dict[str, list[Received]]:
        """The records of these spans; `follow` goes on right behind them."""
        found: dict[str, list[Received]] = {name: [] for name in spans}
        with self._explained():
            self._consumer.assign([self._at[name] for name in spans])
            for name, span in spans.items():
                self._consumer.seek(self._at[name], span.first)
        empty = 0
        while empty < _EMPTY_POLLS_MAX and any(not _covers(found[name], spans[name]) for name in spans):
            polled = self.poll(1.0)
            empty = 0 if polled else empty + 1
            for name, records in polled.items():
                found[name] += [record for record in records if record.offset < spans[name].end]
        with self._explained():
            for name, span in spans.items():
                self._consumer.seek(self._at[name], span.end)
        return found

    def poll(self, timeout_s: float) -> dict[str, list[Received]]:
        """Whatever has arrived in the topics that were read last, by topic."""
        with self._explained():
            batches = self._consumer.poll(timeout_ms=int(timeout_s * 1000))
        return {
            at.topic: [
                Received(
                    partition=at.partition,
                    offset=record.offset,
                    key=record.key,
                    value=record.value,
                    headers=list(record.headers),
                )
                for record in records
            ]
            for at, records in batches.items()
        }

    def _expect_topics(self) -> None:
        missing = sorted(self._at.keys() - self._consumer.topics())
        if missing:
            raise ConsoleError(
                f"Kafka at {self._settings.kafka} has no topic {' and no topic '.join(missing)}",
                remedy="Sluice's services create their topics when they start: start them (make up), "
                "or set SLUICE_TOPICS to what the topics' names begin with",
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            raise ConsoleError(
                f"Kafka at {self._settings.kafka} gives no answer, or refuses this login: {error}",
                remedy=START_OR_POINT.format(
                    variable="SLUICE_KAFKA (and SLUICE_KAFKA_USERNAME and _PASSWORD)"
                ),
            ) from error


def _covers(records: list[Received], span: Bounds) -> bool:
    return span.first >= span.end or bool(records and records[-1].offset >= span.end - 1)
