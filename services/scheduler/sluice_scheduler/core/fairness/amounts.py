"""Sums of amounts by key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

K = TypeVar("K")


def add(target: dict[K, int], amounts: Iterable[tuple[K, int]], sign: int = 1) -> None:
    for counted, amount in amounts:
        target[counted] = target.get(counted, 0) + sign * amount
