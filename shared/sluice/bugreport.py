"""A bug report: what happened to a cell for a while, in one file that can be replayed without any server.

gzip, JSON lines. The first is the header; each that follows is a record as Kafka had it: parts of the snapshot that
the report begins with, if it does not begin with a REBUILD, then events, then decisions. The last line says how many
of each there are: without it nobody would notice that a tail was cut off.
"""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_left
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic_core import from_json

from sluice.chain import numbers_are
from sluice.kafka import Received

FORMAT: Final = "sluice-bug-report"
#: Rises when a reader of before could not make sense of a file any more.
VERSION: Final = 2
#: From this version on there is a last line that says what the file holds.
_ENDS_SINCE: Final = 2
_END: Final = "end"
NO_END: Final = (
    "an older version wrote it, without a last line that counts: whether its end is missing can't be checked"
)
Log: TypeAlias = Literal["snapshot", "event", "decision"]
_NAMES: Final[dict[Log, str]] = {
    "snapshot": "parts of a snapshot", "event": "events", "decision": "decisions and statuses"
}  # fmt: skip


class BugReportError(Exception):
    """The file is none, or this version can't read it."""

    def __init__(self, problem: str, *, remedy: str = "name a file that `sluice audit export` wrote") -> None:
        super().__init__(problem)
        self.remedy = remedy


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    cell: str
    partition: int
    since: str  # what it begins with, for people
    until: str  # where it ends
    #: Names are pseudonyms. Its decisions were then decided anew, because their sentences name names.
    pseudonyms: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How much of one log a file holds."""

    records: int = 0
    last: int = -1  # offset
    seq: int = 0  # the highest of the decisions

    def and_also(self, log: Log, received: Received) -> Held:
        seq = seq_and_time(received)[0] if log == "decision" else 0
        return Held(records=self.records + 1, last=received.offset, seq=max(self.seq, seq))

    def __str__(self) -> str:
        return (f"up to #{self.seq}" if self.seq else f"up to offset {self.last}") if self.records else "none"


def seq_and_time(decision: Received) -> tuple[int, int]:
    """0 of what can't be read."""
    with suppress(ValueError, KeyError, TypeError):
        record = from_json(decision.value or b"")
        return int(record["seq"]), int(record["timeMs"])
    return 0, 0


async def write(path: Path, header: Header, records: AsyncIterable[tuple[Log, Received]]) -> None:
    """The file is there when it is whole, and not before."""
    unfinished = path.with_name(f"{path.name}.part")
    held = dict.fromkeys(_NAMES, Held())
    try:
        with gzip.open(unfinished, "wt", compresslevel=6) as file:
            print(json.dumps({"format": FORMAT, "version": VERSION} | asdict(header)), file=file)
            async for log, received in records:
                print(json.dumps(_as_line(log, received), separators=(",", ":")), file=file)
                held[log] = held[log].and_also(log, received)
            print(
                json.dumps({"log": _END, "held": {log: asdict(each) for log, each in held.items()}}),
                file=file,
            )
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _as_line(log: Log, received: Received) -> dict[str, Any]:
    return {
        "log": log,
        "offset": received.offset,
        "key": _text(received.key),
        "headers": [[name, _text(value)] for name, value in received.headers],
        "value": _text(received.value),
    }


def _text(raw: bytes | None) -> str | None:
    """Compressed and broken bytes survive this, and text stays legible."""
    return None if raw is None else raw.decode(errors="surrogateescape")


def _raw(text: str | None) -> bytes | None:
    return None if text is None else text.encode(errors="surrogateescape")


def _damaged(path: Path, line: int, what: str) -> BugReportError:
    if line <= 1:
        return BugReportError(f"{path} is no bug report: `sluice audit export` writes them")
    remedy = "it was damaged since it was written: export it again, or ask its sender for it"
    return BugReportError(f"{path}, line {line}{what}", remedy=remedy)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """With their numbers."""
    number = 0
    try:
        with gzip.open(path, "rt") as file:
            for number, line in enumerate(file, 1):
                yield number, json.loads(line.rstrip("\n"))
    except json.JSONDecodeError as error:
        raise _damaged(path, number, f", column {error.colno}: {error.msg}") from error
    except (EOFError, ValueError, zlib.error) as error:
        raise _damaged(path, number + 1, f" can't be read: {error}") from error
    except OSError as error:
        raise BugReportError(f"{path} can't be read as a bug report: {error}") from error


def _header(path: Path, line: Any) -> tuple[int, Header]:
    """The version of the format, and what it says itself."""
    if not isinstance(line, dict) or line.pop("format", None) != FORMAT:
        raise BugReportError(f"{path} is no bug report: `sluice audit export` writes them")
    version = line.pop("version", None)
    if not isinstance(version, int) or version > VERSION:
        raise BugReportError(
            f"{path} has version {version}, and this version of Sluice reads {VERSION}",
            remedy="take the version of Sluice that wrote it, or a later one",
        )
    try:
        return version, Header(**line)
    except TypeError as error:
        raise _damaged(path, 1, str(error)) from error


class FileRecords:
    """A bug report, read as topics are; whatever partition is asked for, it is the report's."""

    def __init__(self, header: Header, records: Iterable[tuple[Log, Received]]) -> None:
        self.header = header
        #: Whether the file says what it should hold, and what it lacks of that, in sentences.
        self.tells_its_end = True
        self.lacks: tuple[str, ...] = ()
        self._logs: dict[Log, list[Received]] = {log: [] for log in _NAMES}
        for log, received in records:
            self._logs[log].append(received)

    @classmethod
    def open(cls, path: Path) -> Self:
        lines = _lines(path)
        _, first = next(lines, (0, None))
        version, header = _header(path, first)
        ends: list[dict[Log, Held]] = []
        found = cls(header, _records(path, header.partition, lines, ends))
        found.tells_its_end = version >= _ENDS_SINCE
        if found.tells_its_end:
            found.lacks = tuple(found._lacking(ends[0]) if ends else [found._cut_off()])
        return found

    def _cut_off(self) -> str:
        decided, seen = self._held("decision"), self._held("event")
        if decided.records:
            return (
                f"the file was cut off: it ends with decisions {decided}, and at least its last line is missing, "
                "which says how many decisions there are"
            )
        ends = f"the event at offset {seen.last}" if seen.records else "what stands before all events"
        return (
            f"the file was cut off: it ends with {ends}, and was written up to {self.header.until}; all decisions are "
            "missing"
        )

    def _lacking(self, end: dict[Log, Held]) -> Iterator[str]:
        for log, written in end.items():
            held = self._held(log)
            if held == written:
                continue
            missing = written.records - held.records
            if held.seq < written.seq:
                what = f"{numbers_are(held.seq + 1, written.seq)} missing"
            else:
                what = f"{missing} missing" if missing > 0 else "it was changed"
            yield (
                f"the file was written with {written.records} {_NAMES[log]}, {written}, and holds {held.records}, "
                f"{held}: {what}"
            )

    def _held(self, log: Log) -> Held:
        held = Held()
        for received in self._logs[log]:
            held = held.and_also(log, received)
        return held

    async def topic_id(self) -> str:
        return ""

    async def bounds(self, partition: int) -> tuple[int, int]:
        return _bounds(self._logs["event"])

    async def decision_bounds(self, partition: int) -> tuple[int, int]:
        return _bounds(self._logs["decision"])

    async def events(self, partition: int, first: int, end: int) -> list[Received]:
        return _between(self._logs["event"], first, end)

    async def decisions(self, partition: int, first: int, end: int) -> list[Received]:
        return _between(self._logs["decision"], first, end)

    async def decisions_tail(self, partition: int, count: int) -> list[Received]:
        return self._logs["decision"][-count:]

    async def snapshots(self, partition: int) -> AsyncIterator[Received]:
        for received in reversed(self._logs["snapshot"]):
            yield received

    async def close(self) -> None:
        """Nothing to close."""


def _records(
    path: Path, partition: int, lines: Iterable[tuple[int, Any]], ends: list[dict[Log, Held]]
) -> Iterator[tuple[Log, Received]]:
    """What the last line says is added to `ends`; nothing follows it."""
    for number, line in lines:
        try:
            if ends:
                raise ValueError("it stands behind the one that says what the file holds")
            if line["log"] == _END:
                ends.append({log: Held(**line["held"][log]) for log in _NAMES})
            elif line["log"] in _NAMES:
                yield line["log"], _received(partition, line)
            else:
                raise ValueError(f"there is no log {line['log']!r}")
        except KeyError as error:
            raise _damaged(path, number, f": the record has no {error}") from error
        except (AttributeError, TypeError, ValueError) as error:
            raise _damaged(path, number, f": it is no record: {error}") from error


def _received(partition: int, line: dict[str, Any]) -> Received:
    return Received(
        partition=partition,
        offset=line["offset"],
        key=_raw(line["key"]),
        value=_raw(line["value"]),
        headers=[(name, _raw(value) or b"") for name, value in line["headers"]],
    )


def _bounds(records: list[Received]) -> tuple[int, int]:
    return (records[0].offset, records[-1].offset + 1) if records else (0, 0)


def _between(records: list[Received], first: int, end: int) -> list[Received]:
    at = [bisect_left(records, offset, key=attrgetter("offset")) for offset in (first, end)]
    return records[at[0] : at[1]]
