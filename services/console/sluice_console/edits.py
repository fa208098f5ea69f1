"""What was edited in a Queue or ResourcePool: an event carries all of it, and people look for what is new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, TypeAlias

from pydantic.alias_generators import to_camel
from sluice.events import PoolFacts, QueueFacts

Facts: TypeAlias = QueueFacts | PoolFacts

#: What nobody edits; a problem is told in its own words.
_UNTOLD: Final = ("generation", "created_ms", "problem")
_NOTHING: Final = "none"


def edits(now: Facts, before: Facts | None) -> str:
    """Which fields have changed, from what to what. Of an object that is told of first: those that it sets."""
    old = _fields(type(now)() if before is None else before)
    new = _fields(now)
    changed = [name for name in dict.fromkeys([*new, *old]) if old.get(name) != new.get(name)]
    if before is None:
        told = [f"{name} {new.get(name, _NOTHING)}" for name in changed] or ["all as by default"]
    else:
        told = [f"{name} {old.get(name, _NOTHING)} → {new.get(name, _NOTHING)}" for name in changed]
    return "; ".join([*filter(None, [now.problem]), ", ".join(told or ["as before"])])


def _fields(facts: Facts) -> dict[str, str]:
    """By the names that records have; a field of a field stands behind a dot."""
    there = {to_camel(name): value for name, value in asdict(facts).items() if name not in _UNTOLD}
    return dict(_flat("", there))


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else key, each)
    elif value not in (None, "", ()):
        yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, tuple | list):
        return " ".join(map(_text, value))
    if isinstance(value, Mapping):
        return " ".join(filter(None, map(_text, value.values())))
    return str(value).lower() if isinstance(value, bool) else str(value)
