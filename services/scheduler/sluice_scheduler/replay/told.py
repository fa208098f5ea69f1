"""What a replay tells: in lines for people, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json, to_json
from sluice.codec import DECISIONS, EVENTS, UnreadableRecordError
from sluice.events import ObjectEvent
from sluice.kafka import Received
from sluice.times import clock

from sluice_scheduler.core import CORE_VERSION, State
from sluice_scheduler.core.stored.entities import Entity, Queue, QueueEntity, Report, TrackedObject
from sluice_scheduler.core.stored.tables import ENTITY_TYPES
from sluice_scheduler.explain import as_json as answers_as_json
from sluice_scheduler.explain import as_text, look_up
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.replay.run import Comparison, Difference

_OF_A_QUEUE = tuple(each for each in ENTITY_TYPES if issubclass(each, QueueEntity))


def summary(found: Comparison, *, whole: bool) -> str:
    """`whole`: the log lacks nothing, so what is identical is all of it."""
    parts = [
        f"identical: {found.same:,} decisions of {found.records:,} records, from {found.player.beginning}"
        if found.difference is None and whole
        else f"{found.same:,} decisions of {found.records:,} records are identical, from {found.player.beginning}",
        f"lived in {found.lived_s:,.0f} s, replayed in {found.cpu_s:.2f} s",
    ]
    if found.gone:
        parts.append(f"{found.gone:,} decisions before are no longer in the log")
    if found.unpublished:
        parts.append(
            f"{found.unpublished:,} behind its end are not {'published yet' if whole else 'in the file'}"
        )
    return "; ".join(parts)


def summary_as_json(found: Comparison, lacks: Sequence[str]) -> dict[str, Any]:
    return {
        "identical": found.difference is None and not lacks,
        "lacks": list(lacks),
        "beginning": str(found.player.beginning),
        "nextOffset": found.offset + 1,
        "records": found.records,
        "decisions": found.same,
        "gone": found.gone,
        "unpublished": found.unpublished,
        "livedSeconds": found.lived_s,
        "cpuSeconds": found.cpu_s,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A difference with its record, both decisions, and what the core knew of them before and behind it."""

    difference: Difference
    record: Received
    before: State
    behind: State

    @property
    def remark(self) -> str:
        """Empty if the log was written by this core, as far as it says."""
        written = self.before.config.core_version if self.before.begun else CORE_VERSION
        if written == CORE_VERSION:
            return ""
        return f"the log was written by version {written} of the core, and this is {CORE_VERSION}"

    def as_json(self) -> dict[str, Any]:
        one = self.difference
        return {
            "seq": one.seq,
            "what": one.what,
            "remark": self.remark,
            "offset": one.offset,
            "record": _legible(self.record.value),
            "logged": _legible(one.logged),
            "replayed": _legible(None if one.replayed is None else DECISIONS.value(one.replayed)),
            "before": self._rows(self.before),
            "behind": self._rows(self.behind),
        }

    def as_text(self) -> Iterator[str]:
        shown = self.as_json()
        yield f"{shown['what']}, behind the record at offset {shown['offset']}"
        if self.remark:
            yield self.remark
        for name in ("record", "logged", "replayed"):
            yield f"{name + ':':<10}{_line(shown[name]) if shown[name] is not None else '-'}"
        for name in ("before", "behind"):
            yield f"what the core knew {name} it:"
            yield from (f"  {key}  {_line(row)}" for key, row in shown[name].items())

    def _rows(self, state: State) -> dict[str, Any]:
        return {entity.key: from_json(dump(entity)) for entity in self._concerned(state)}

    def _concerned(self, state: State) -> Iterator[Entity]:
        """What the record and both decisions are about, and their queues."""
        logged = self.difference.logged
        about = [from_json(logged)] if logged else []
        if self.difference.replayed is not None:
            about.append(from_json(DECISIONS.value(self.difference.replayed)))
        if (event := _object(self.record)) is not None:
            about.append({"uid": event.uid})
        uids = {each.get("uid") for each in about} - {None}
        queues = {each.get("queue") for each in about}
        for entity in _all(state):
            if isinstance(entity, TrackedObject) and (
                entity.uid in uids or (isinstance(entity, Queue) and entity.name in queues)
            ):
                yield entity
        yield from state.cells


def _object(received: Received) -> ObjectEvent | None:
    try:
        event = EVENTS.decode(received.headers, received.value)
    except UnreadableRecordError:
        return None
    return event if isinstance(event, ObjectEvent) else None


def _all(state: State) -> Iterable[Entity]:
    return (entity for key in state.all_keys() if (entity := state.entity(key)) is not None)


def _legible(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return from_json(value)
    except ValueError:
        return value.decode(errors="replace")


def _line(shown: Any) -> str:
    return to_json(shown).decode()


# ---- what the core knew at a moment


def known_of(state: State, name: str) -> dict[str, Any] | None:
    """Of a queue, or of NAMESPACE/NAME; None if it knew nothing of it."""
    told = look_up(state, name) if state.begun else None
    if told is None:
        return None
    keys = list(told.answers)
    if told.waiting is not None:
        keys = [entity.key for entity in state.queues if entity.name == name]
        keys += [f"{kind.kind}/{name}" for kind in _OF_A_QUEUE]
        keys.append(f"{Report.kind}/{Queue.kind}/{name}")
    rows = {key: from_json(dump(entity)) for key in keys if (entity := state.entity(key)) is not None}
    shown = answers_as_json(state.config.cell, told)
    return shown | {"timeMs": state.now_ms, "state": rows}


def known_as_text(state: State, name: str) -> Iterator[str]:
    known = known_of(state, name)
    if known is None:
        yield f"the core knew nothing of {name}"
        return
    yield f"what the core knew of {name} at {clock(known['timeMs'])}:"
    yield from (f"  {key}  {_line(row)}" for key, row in known["state"].items())
    told = look_up(state, name)
    if told is not None:
        yield from as_text(told)
