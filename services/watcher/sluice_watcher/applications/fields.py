"""Reading an object of somebody else's: what is wrong is said with the field's path and a remedy.

CRDs check types, but not every cluster has today's CRD, and quantities and Spark's settings are texts to
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from sluice.crds.workloads import POD_COUNT_MAX
from sluice.quantities import QuantityError, to_base_units
from sluice.values import DecisionId, Resources

from sluice_watcher.requests import Object

#: Of a count in a text, leading zeros included.
_DIGITS_MAX: Final = 20


class ApplicationError(ValueError):
    """An application makes no sense; the message names the field and says what to write instead."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


class Fields:
    """A part of an object, and where it stands in it. What is absent reads as empty. `copy` has what was read
    of it so far."""

    __slots__ = ("_values", "copy", "path")

    def __init__(self, values: Object, path: str = "", copy: dict[str, Any] | None = None) -> None:
        self._values = values
        self.path = path
        self.copy: dict[str, Any] = {} if copy is None else copy

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def path_of(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def at(self, *names: str) -> Fields:
        """The object below; an empty one if it is absent."""
        here = self
        for name in names:
            values = here._typed(name, Mapping, "an object") or {}
            here = Fields(values, here.path_of(name), here.copy.setdefault(name, {}))
        return here

    def each(self, name: str) -> list[Fields]:
        """The objects of a list."""
        elements = self._typed(name, Sequence, "a list") or ()
        path = self.path_of(name)
        for index, element in enumerate(elements):
            if not isinstance(element, Mapping):
                raise ApplicationError(f"{path}[{index}]", "write an object here")
        copies = self.copy.setdefault(name, [{} for _ in elements])
        return [
            Fields(element, f"{path}[{index}]", copy)
            for index, (element, copy) in enumerate(zip(elements, copies, strict=True))
        ]

    def text(self, name: str) -> str:
        """A text, or a number as one; empty if it is absent."""
        value = self._read(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise ApplicationError(self.path_of(name), f"{value!r} is no text: put it in quotes")

    def texts(self) -> dict[str, str]:
        """All of it as texts by name."""
        return {name: self.text(name) for name in self._values}

    def flag(self, name: str) -> bool:
        self._read(name)
        return bool(self._typed(name, bool, "true or false"))

    def count(self, name: str, default: int) -> int:
        """A number of pods."""
        value = self._read(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= POD_COUNT_MAX:
            raise not_a_count(self.path_of(name), value)
        return value

    def whole(self, name: str, default: int) -> int:
        """A whole number, also one below zero."""
        value = self._read(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            raise ApplicationError(self.path_of(name), f"{value!r} is no whole number: write one")
        return value

    def amounts(self) -> Resources:
        """Quantities by resource, in base units."""
        return {name: amount(name, self.text(name), self.path_of(name)) for name in self._values}

    def _read(self, name: str) -> Any:
        value = self._values.get(name)
        if value is not None:
            self.copy[name] = value
        return value

    def _typed(self, name: str, kind: type[Any], meaning: str) -> Any:
        value = self._values.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, str)):
            raise ApplicationError(self.path_of(name), f"{value!r} makes no sense here: write {meaning}")
        return value


def amount(resource: str, text: str, path: str) -> int:
    """A quantity in its resource's base unit."""
    try:
        parsed = to_base_units(resource, text)
    except QuantityError as error:
        raise ApplicationError(path, str(error)) from error
    if parsed < 0:
        raise ApplicationError(path, f"{text!r} is less than nothing: write 0 or more")
    return parsed


def count_of(text: str, path: str) -> int:
    """A number of pods that stands in a text."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX and int(text) <= POD_COUNT_MAX):
        raise not_a_count(path, text)
    return int(text)


def decision_claimed(text: str) -> str:
    """What an object carries of a decision; empty if no actuator can have written it."""
    return text if DecisionId.parse(text) else ""


def not_a_count(path: str, value: object) -> ApplicationError:
    return ApplicationError(path, f"{value!r} is no count: write a whole number from 0 on")
