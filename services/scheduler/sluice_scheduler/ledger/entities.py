"""What a ledger stores ⇄ bytes. What is read is what was written, or it is refused: nothing is dropped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, get_args, get_type_hints

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_json

from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.core.stored.tables import ENTITY_TYPES
from sluice_scheduler.ports import SCHEMA, OutboxEntry, UnreadableLedgerError


def _dataclasses_in(annotation: Any, found: set[type[Any]]) -> None:
    if is_dataclass(annotation) and isinstance(annotation, type) and annotation not in found:
        found.add(annotation)
        for hint in get_type_hints(annotation).values():
            _dataclasses_in(hint, found)
    for argument in get_args(annotation):
        _dataclasses_in(argument, found)


def _adapter(entity_type: type[Entity]) -> TypeAdapter[Any]:
    """A dataclass takes its pydantic settings from an attribute; the codec has set those of records."""
    found: set[type[Any]] = set()
    _dataclasses_in(entity_type, found)
    for each in found:
        if "__pydantic_config__" not in each.__dict__:
            each.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(entity_type)


_ADAPTERS: Final[dict[str, TypeAdapter[Any]]] = {entity.kind: _adapter(entity) for entity in ENTITY_TYPES}


def dump(entity: Entity) -> bytes:
    try:
        return orjson.dumps(entity)
    except TypeError:  # sums of what anybody may ask for can take more than 64 bits
        return to_json(entity)


def load(key: str, value: bytes) -> Entity:
    adapter = _ADAPTERS.get(key.partition("/")[0])
    if adapter is None:
        raise UnreadableLedgerError(f"the ledger holds {key}, of a kind that this version does not know")
    try:
        entity: Entity = adapter.validate_json(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "its value"
        raise UnreadableLedgerError(
            f"the ledger holds {key} in a shape that this version does not know: {place}: {first['msg']}"
        ) from error
    if entity.key != key:
        raise UnreadableLedgerError(f"the ledger holds {entity.key} under the key {key}")
    return entity


def load_all(rows: Mapping[str, bytes]) -> list[Entity]:
    """In order of their keys."""
    return [load(key, rows[key]) for key in sorted(rows)]


def load_outbox(rows: Mapping[int, bytes]) -> list[OutboxEntry]:
    """In order of seq."""
    try:
        return [OutboxEntry.unpack(seq, rows[seq]) for seq in sorted(rows)]
    except ValueError as error:
        raise UnreadableLedgerError(f"the ledger's outbox holds what nobody wrote: {error}") from error


def check_schema(schema: int) -> None:
    if schema != SCHEMA:
        raise UnreadableLedgerError(f"the ledger has schema {schema}, and this version reads {SCHEMA}")


def shapes() -> Iterator[tuple[str, Any]]:
    """Each kind, and the JSON schema of its entities."""
    for kind, adapter in _ADAPTERS.items():
        yield kind, _without_texts(adapter.json_schema(by_alias=False))


def _without_texts(schema: Any) -> Any:
    """Titles and descriptions are no part of a shape."""
    if isinstance(schema, dict):
        return {
            name: _without_texts(each)
            for name, each in schema.items()
            if not (name in ("title", "description") and isinstance(each, str))
        }
    return [_without_texts(each) for each in schema] if isinstance(schema, list) else schema
