"""Entities ⇄ bytes."""

from __future__ import annotations

from typing import Any, Final

import orjson
from pydantic import TypeAdapter

from sluice_scheduler.core.entities import ENTITY_TYPES, Entity

_ADAPTERS: Final[dict[str, TypeAdapter[Any]]] = {entity.kind: TypeAdapter(entity) for entity in ENTITY_TYPES}


def dump(entity: Entity) -> bytes:
    return orjson.dumps(entity)


def load(key: str, value: bytes) -> Entity:
    entity: Entity = _ADAPTERS[key.partition("/")[0]].validate_json(value)
    return entity
