"""A bug report: what happened to a cell for a while, in one file that can be replayed without any server.

gzip, JSON lines. The first is the header; each of the others is a record as Kafka had it: parts of the snapshot that
the report begins with, if it does not begin with a REBUILD, then events, then decisions.
"""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_left
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from dataclasses import asdict, dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeAlias

from sluice.kafka import Received

FORMAT: Final = "sluice-bug-report"
#: Rises when a reader of before could not make sense of a file any more.
VERSION: Final = 1
Log: TypeAlias = Literal["snapshot", "event", "decision"]


class BugReportError(Exception):
    """The file is none, or this version can't read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    cell: str
    partition: int
    since: str  # what it begins with, for people
    until: str  # where it ends
    #: Names are pseudonyms. Its decisions were then decided anew, because their sentences name names.
    pseudonyms: bool = False


async def write(path: Path, header: Header, records: AsyncIterable[tuple[Log, Received]]) -> None:
    """The file is there when it is whole, and not before."""
    unfinished = path.with_name(f"{path.name}.part")
    try:
        with gzip.open(unfinished, "wt", compresslevel=6) as file:
            print(json.dumps({"format": FORMAT, "version": VERSION} | asdict(header)), file=file)
            async for log, received in records:
                print(json.dumps(_as_line(log, received), separators=(",", ":")), file=file)
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


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt") as file:
            for line in file:
                found = json.loads(line)
                if not isinstance(found, dict):
                    raise ValueError("a line is no object")
                yield found
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise BugReportError(
            f"{path} can't be read as a bug report, as `sluice audit export` writes them: {error}"
        ) from error


def _header(path: Path, line: dict[str, Any] | None) -> Header:
    if line is None or line.pop("format", None) != FORMAT:
        raise BugReportError(f"{path} is no bug report: `sluice audit export` writes them")
    version = line.pop("version", None)
    if not isinstance(version, int) or version > VERSION:
        raise BugReportError(
            f"{path} has version {version}, and this version of Sluice reads {VERSION}: take the one that wrote it"
        )
    return Header(**line)


class FileRecords:
    """A bug report, read as topics are; whatever partition is asked for, it is the report's."""

    def __init__(self, header: Header, records: Iterable[tuple[Log, Received]]) -> None:
        self.header = header
        self._logs: dict[Log, list[Received]] = {"snapshot": [], "event": [], "decision": []}
        for log, received in records:
            self._logs[log].append(received)

    @classmethod
    def open(cls, path: Path) -> Self:
        lines = _lines(path)
        header = _header(path, next(lines, None))
        try:
            return cls(header, ((line["log"], _received(header.partition, line)) for line in lines))
        except (KeyError, TypeError) as error:
            raise BugReportError(f"{path} holds a record without {error}") from error

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
