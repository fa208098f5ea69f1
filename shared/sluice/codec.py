"""Records ⇄ Kafka messages: CloudEvents 1.0 in Kafka's binary mode, JSON values.

The records are plain dataclasses, so that the core needs no library to read them; pydantic checks them here,
once, where they enter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, is_dataclass
from typing import Any, Final, Generic, TypeAlias, TypeVar, get_args, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel

from sluice.chain import PREVIOUS_HEADER
from sluice.decisions import DECISION_TYPES, Decision
from sluice.events import EVENT_TYPES, Event
from sluice.times import clock
from sluice.values import Epoch

RECORD_VERSION: Final = 1
EPOCH_HEADER: Final = "sluice_epoch"
Headers: TypeAlias = list[tuple[str, bytes]]

_CONFIG = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")
Record = TypeVar("Record", Event, Decision)


class UnreadableRecordError(ValueError):
    """Says what is wrong with a record, and what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What Kafka carries for one record."""

    key: bytes
    value: bytes
    headers: Headers

    def header(self, name: str) -> str | None:
        return find_header(self.headers, name)


def find_header(headers: Iterable[tuple[str, bytes]], name: str) -> str | None:
    return next((value.decode(errors="replace") for key, value in headers if key == name), None)


class Codec(Generic[Record]):
    """Encodes and decodes the records of one topic."""

    def __init__(self, family: str, types: Iterable[type[Record]]) -> None:
        self._prefix = f"dev.sluice.{family}."
        self._adapters: dict[str, TypeAdapter[Any]] = {t.type: _adapter(t) for t in types}

    def ce_type(self, record_type: str) -> str:
        return f"{self._prefix}{record_type}.v{RECORD_VERSION}"

    def schema(self, record_type: str) -> dict[str, Any]:
        return self._adapters[record_type].json_schema(by_alias=True)

    @property
    def record_types(self) -> tuple[str, ...]:
        return tuple(self._adapters)

    def value(self, record: Record) -> bytes:
        """The record's bytes: the same for equal records, whoever encodes them."""
        return self._adapters[record.type].dump_json(record, by_alias=True)

    def encode(
        self, record: Record, *, source: str, epoch: Epoch | None = None, previous: str = ""
    ) -> Message:
        """`previous`: the hash of the decision before it, if it has a place in the sequence."""
        headers = [
            ("ce_specversion", b"1.0"),
            ("ce_id", record.id.encode()),
            ("ce_type", self.ce_type(record.type).encode()),
            ("ce_source", source.encode()),
            ("ce_subject", record.subject.encode()),
            ("ce_time", clock(record.time_ms).encode()),
            ("content-type", b"application/json"),
        ]
        if epoch is not None:
            headers.append((EPOCH_HEADER, str(epoch).encode()))
        if previous:
            headers.append((PREVIOUS_HEADER, previous.encode()))
        return Message(key=record.subject.encode(), value=self.value(record), headers=headers)

    def decode(self, headers: Iterable[tuple[str, bytes]], value: bytes | None) -> Record:
        ce_type = find_header(headers, "ce_type")
        if ce_type is None:
            raise UnreadableRecordError(
                "header ce_type is missing: produce CloudEvents in Kafka's binary mode (docs/contracts)"
            )
        return self.decode_as(ce_type, value)

    def decode_as(self, ce_type: str, value: bytes | None) -> Record:
        name, _, version = ce_type.removeprefix(self._prefix).rpartition(".v")
        adapter = self._adapters.get(name)
        if adapter is None or not ce_type.startswith(self._prefix):
            raise UnreadableRecordError(
                f"unknown record type {ce_type!r}: known are {', '.join(self._adapters)}"
            )
        if version != str(RECORD_VERSION):
            raise UnreadableRecordError(
                f"record {ce_type!r} has version {version!r}, this build reads {RECORD_VERSION}: "
                "upgrade the reader before the writer"
            )
        if value is None:
            raise UnreadableRecordError(f"record {ce_type!r} has no value (tombstones have no meaning here)")
        try:
            record: Record = adapter.validate_json(value)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "value"
            raise UnreadableRecordError(f"record {ce_type!r}, field {place}: {first['msg']}") from error
        return record


def _adapter(record_type: type[Any]) -> TypeAdapter[Any]:
    """A dataclass takes its pydantic settings from an attribute; nested ones are reached the same way."""
    for cls in _dataclasses_in(record_type):
        cls.__pydantic_config__ = _CONFIG
    return TypeAdapter(record_type)


def _dataclasses_in(root: type[Any]) -> set[type[Any]]:
    found: set[type[Any]] = set()

    def visit(annotation: Any) -> None:
        if is_dataclass(annotation) and isinstance(annotation, type) and annotation not in found:
            found.add(annotation)
            for hint in get_type_hints(annotation).values():
                visit(hint)
        for argument in get_args(annotation):
            visit(argument)

    visit(root)
    return found


EVENTS: Final = Codec[Event]("event", EVENT_TYPES)
DECISIONS: Final = Codec[Decision]("decision", DECISION_TYPES)
