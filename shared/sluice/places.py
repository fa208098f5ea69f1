"""Places in a cell's log, as commands take them (argparse's `type`). Loads no client of Kafka."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class Time:
    ms: int


#: An offset of the events, or a time.
Place: TypeAlias = int | Time
#: The last REBUILD, the last snapshot, or a place.
Where: TypeAlias = Literal["rebuild", "snapshot"] | Place

FROM_HELP = (
    "rebuild (the last one), snapshot (the last one), an offset of the events, or a time such as "
    "2026-11-19T10:00:00Z; these two are reached from the last snapshot or rebuild before"
)


def where(text: str) -> Where:
    match text:
        case "rebuild" | "snapshot":
            return text
        case _:
            return _place(
                text, others="neither rebuild nor snapshot, no offset and no time: write one of these, as"
            )


def place(text: str) -> Place:
    return _place(text, others="no offset and no time: write")


def _place(text: str, *, others: str) -> Place:
    if text.isdecimal():
        return int(text)
    try:
        return Time(round(datetime.fromisoformat(text).astimezone(UTC).timestamp() * 1000))
    except (ValueError, OverflowError):
        raise ArgumentTypeError(f"{text} is {others} 7282 or 2026-11-19T10:00:00Z") from None
