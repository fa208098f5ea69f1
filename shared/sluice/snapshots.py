"""Snapshots of what a ledger held, in parts that Kafka takes (docs/adr/0013).

Rows of later parts stand in the place of earlier ones. What all parts together hold stood in the ledger at the place
that the last one names; without a last one they are no snapshot. What a row means is the scheduler's business.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Final, Self

from pydantic_core import from_json, to_json

from sluice.codec import Message, find_header
from sluice.kafka import Received

_TYPE: Final = "dev.sluice.snapshot.part.v1"
_HEADER: Final = "sluice_snapshot"
_FAST: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a ledger stood, and in which schema its rows are."""

    next_offset: int
    next_seq: int
    time_ms: int
    schema: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    cell: str
    snapshot: str  # tells it from all others of the cell
    number: int
    rows: Mapping[str, bytes | None]  # None: it is gone
    standing: Standing | None = None  # of the last part
    topics: str = ""  # the id of those that it is a part of: offsets and decisions of others are counted anew

    def message(self) -> Message:
        about = {
            "cell": self.cell,
            "snapshot": self.snapshot,
            "number": self.number,
            "topics": self.topics,
        }
        standing = asdict(self.standing) if self.standing else None
        headers = [
            ("ce_specversion", b"1.0"),
            ("ce_id", f"{self.cell}/{self.snapshot}/{self.number}".encode()),
            ("ce_type", _TYPE.encode()),
            ("ce_source", f"sluice/scheduler/{self.cell}".encode()),
            (_HEADER, to_json(about | {"standing": standing})),
        ]
        rows = [[key, None if row is None else row.decode()] for key, row in self.rows.items()]
        return Message(key=self.cell.encode(), value=zlib.compress(to_json(rows), _FAST), headers=headers)

    @classmethod
    def read(cls, received: Received, *, rows: bool = True) -> Self | None:
        """None for what is no part of a snapshot. Without `rows` they are left out, which is quick."""
        about = find_header(received.headers, _HEADER)
        if about is None or find_header(received.headers, "ce_type") != _TYPE:
            return None
        fields = from_json(about)
        standing = fields.pop("standing")
        found = from_json(zlib.decompress(received.value or b"")) if rows else []
        return cls(
            **fields,
            rows={key: None if row is None else row.encode() for key, row in found},
            standing=Standing(**standing) if standing else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    standing: Standing
    parts: tuple[Received, ...]  # in order

    def rows(self) -> dict[str, bytes]:
        rows: dict[str, bytes] = {}
        for received in self.parts:
            part = Part.read(received)
            assert part is not None, "it was one when it was found"
            for key, row in part.rows.items():
                if row is None:
                    rows.pop(key, None)
                else:
                    rows[key] = row
        return rows


class Gathering:
    """Finds whole snapshots of a cell among records that are read backwards, the newest first. `topics`: those of
    others are none, unless it is empty."""

    def __init__(self, cell: str, topics: str = "") -> None:
        self._cell = cell
        self._topics = topics
        self._last: Part | None = None
        self._parts: list[Received] = []

    def take(self, received: Received) -> Snapshot | None:
        """The snapshot that begins with this record, if it is whole."""
        part = Part.read(received, rows=False)
        if part is None or part.cell != self._cell or self._topics not in ("", part.topics):
            return None
        if self._last is None or part.snapshot != self._last.snapshot:
            if part.standing is None:
                return None
            self._last, self._parts = part, []
        self._parts.append(received)
        standing = self._last.standing
        if part.number or standing is None or len(self._parts) != self._last.number + 1:
            return None
        return Snapshot(standing=standing, parts=tuple(reversed(self._parts)))
