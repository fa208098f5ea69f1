"""Entities ⇄ bytes."""

from __future__ import annotations

from typing import Any, Final

import orjson
from pydantic import TypeAdapter
from pydantic_core import to_json

from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.core.stored.tables import ENTITY_TYPES

_ADAPTERS: Final[dict[str, TypeAdapter[Any]]] = {entity.kind: TypeAdapter(entity) for entity in ENTITY_TYPES}


def dump(entity: Entity) -> bytes:
    try:
        return orjson.dumps(entity)
    except TypeError:  # sums of what anybody may ask for can take more than 64 bits
        return to_json(entity)


def load(key: str, value: bytes) -> Entity:
    entity: Entity = _ADAPTERS[key.partition("/")[0]].validate_json(value)
    return entity
