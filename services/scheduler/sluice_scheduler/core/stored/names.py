"""Names: which object is meant by one. An object that is deleted and made anew is another one of that name, and its
successor may be told of before its own end is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Final, Generic, TypeVar

from sluice_scheduler.core.stored.entities import TrackedObject

T = TypeVar("T", bound=TrackedObject)
Name = TypeVar("Name")

_AGE: Final = ("resource_version", "uid")


def latest_of_each(objects: Iterable[T]) -> list[T]:
    """Those that are meant by their names, in order of name."""
    return list({each.name: each for each in sorted(objects, key=attrgetter("name", *_AGE))}.values())


class Names(Generic[Name, T]):
    """Objects by name. The latest of a name is meant, in whichever order they were told of."""

    def __init__(self, name_of: Callable[[T], Name], objects: Iterable[T] = ()) -> None:
        self._name_of = name_of
        self._meant: dict[Name, T] = {}
        self._others: dict[Name, list[T]] = {}  # of the names that several have
        for each in objects:
            self.add(each)

    def get(self, name: Name) -> T | None:
        return self._meant.get(name)

    def add(self, new: T) -> None:
        """Adding one again changes nothing."""
        name = self._name_of(new)
        meant = self._meant.setdefault(name, new)
        others = self._others.get(name, [])
        if all(each is not new for each in (meant, *others)):
            self._others[name] = sorted([*others, meant, new], key=attrgetter(*_AGE))
            self._meant[name] = self._others[name].pop()

    def remove(self, gone: T) -> None:
        name = self._name_of(gone)
        others = self._others.get(name, [])
        if self._meant.get(name) is not gone:
            others[:] = [each for each in others if each is not gone]
        elif others:
            self._meant[name] = others.pop()
        else:
            self._meant.pop(name, None)
        if not others:
            self._others.pop(name, None)
