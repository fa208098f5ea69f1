"""Both logs as one: a line for each record, causes before their effects. Pure: records in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import from_json
from rich.text import Text
from sluice.codec import DECISIONS, EPOCH_HEADER, EVENTS, UnreadableRecordError, find_header
from sluice.decisions import Decision
from sluice.events import Event, OutcomeEvent, PoolEvent, QueueEvent, TickEvent
from sluice.kafka import Received

from sluice_console import wording
from sluice_console.sentences import reason_of, sentence_of

Source: TypeAlias = Literal["event", "decision"]

_COLOURS: Final[Mapping[str, str]] = {
    "admit": "green",
    "evict": "red",
    "notice": "yellow",
    "fence": "magenta",
    "resync": "magenta",
    "rebuild": "magenta",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One record. `time_ms` never falls within a log, so that sorting by it keeps each log's order."""

    source: Source
    offset: int
    time_ms: int
    type: str = ""  # the record's; empty if it can't be read
    subject: str = ""
    reason: str = ""
    sentence: str = ""
    seq: int = 0  # of the decision, or of the one that an outcome answers; 0 of a status
    record: Mapping[str, Any] | None = None
    headers: Mapping[str, str]
    error: str = ""

    @property
    def is_tick(self) -> bool:
        return self.type == TickEvent.type

    def as_json(self) -> dict[str, Any]:
        """The record as it is in the log, with where it stands."""
        shown: dict[str, Any] = {"source": self.source, "offset": self.offset, "timeMs": self.time_ms}
        if self.error:
            return shown | {"error": self.error, "headers": self.headers}
        shown |= {
            "type": self.type,
            "subject": self.subject,
            "reason": self.reason,
            "sentence": self.sentence,
        }
        if self.seq:
            shown["seq"] = self.seq
        if epoch := self.headers.get(EPOCH_HEADER):
            shown["epoch"] = epoch
        return shown | {"record": self.record}

    def as_text(self) -> Text:
        """`12:00:00.000  decision #7    admit   pod/ns/name  Fits: fits into pool default; …`

        What has no seq is named by its offset.
        """
        where = f"#{self.seq}" if self.source == "decision" and self.seq else f"@{self.offset}"
        head = Text.assemble(
            (wording.clock_time(self.time_ms), "dim"), f"  {self.source:<8} ", (f"{where:<9}", "dim")
        )
        if self.error:
            return head.append(f"unreadable: {self.error}", "red")
        head.append(f"{self.type:<15} ", _COLOURS.get(self.type, "cyan"))
        about = self.subject
        if self.type == OutcomeEvent.type:
            about = f"answers #{self.seq}" if self.seq else "answers a status"
        head.append(f"{about}  ", "bold")
        return head.append(f"{self.reason}: {self.sentence}" if self.sentence else self.reason)


class LogLines:
    """The lines of one log, in its order."""

    def __init__(self, source: Source) -> None:
        self._source: Source = source
        self._time_ms = 0
        self._rules: dict[tuple[str, str], Event] = {}  # Queues and ResourcePools as they were told of last

    def afresh(self) -> LogLines:
        return LogLines(self._source)

    def of(self, records: Iterable[Received]) -> list[Line]:
        return [self._line(received) for received in records]

    def _line(self, received: Received) -> Line:
        headers = {name: value.decode(errors="replace") for name, value in received.headers}
        try:
            record: Event | Decision
            if self._source == "event":
                record = EVENTS.decode(received.headers, received.value)
            else:
                record = DECISIONS.decode(received.headers, received.value)
        except UnreadableRecordError as error:
            self._see(_header_time_ms(received))
            return Line(
                source=self._source,
                offset=received.offset,
                time_ms=self._time_ms,
                headers=headers,
                error=str(error),
            )
        self._see(record.time_ms)
        reason, sentence = self._words(record)
        return Line(
            source=self._source,
            offset=received.offset,
            time_ms=self._time_ms,
            type=record.type,
            subject=record.subject,
            reason=reason,
            sentence=sentence,
            seq=record.seq if isinstance(record, Decision | OutcomeEvent) else 0,
            record=from_json(received.value or b""),
            headers=headers,
        )

    def _words(self, record: Event | Decision) -> tuple[str, str]:
        if isinstance(record, Decision):
            return record.reason, record.sentence
        if not isinstance(record, QueueEvent | PoolEvent):
            return reason_of(record), sentence_of(record)
        about = (record.cluster, record.subject)
        before = self._rules.pop(about, None)
        if record.change != "DELETED":
            self._rules[about] = record
        return reason_of(record), sentence_of(record, before)

    def _see(self, time_ms: int) -> None:
        """As in the core: the time of a log is the largest seen."""
        self._time_ms = max(self._time_ms, time_ms)


def merged(logs: Sequence[Sequence[Line]]) -> Iterator[Line]:
    """All logs in one order. A decision has the time of what it follows, so it stands right behind it."""
    return merge(*logs, key=lambda line: (line.time_ms, line.source == "decision"))


def _header_time_ms(received: Received) -> int:
    try:
        return int(datetime.fromisoformat(find_header(received.headers, "ce_time") or "").timestamp() * 1000)
    except ValueError:
        return 0
