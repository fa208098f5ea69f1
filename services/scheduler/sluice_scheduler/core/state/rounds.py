"""Places that move with the rounds: what bounds a search is not cut off where it was cut off before (ADR 0011)."""

from __future__ import annotations

from typing import Final

#: Times this, numbers that follow each other lie far apart.
_STIR: Final = 2_654_435_761


def place_of(number: int, places: int) -> int:
    """Where the round of this number begins, of so many places; the first one at the first of them."""
    return (number * _STIR >> 16) % places if places else 0
