"""Shares in fixed point: how much a branch has of what it has most of (ADR 0001).

A share is an integer in units of 2^-48 of a whole. It is the floor of one exact fraction, so equal fractions
give equal integers and ties are ties.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_scheduler.core.fairness.claims import Kind

_SHARE_BITS: Final = 48
SHARE_ONE: Final = 1 << _SHARE_BITS
#: What is deserved comes from floating point numbers. No pod of any cluster is as small as this share.
TOLERANCE: Final = 1 << (_SHARE_BITS - 30)
#: What is deserved is counted in parts of a unit, for pods cannot be divided and what they deserve can.
FRACTION_BITS: Final = 16


def part_of_kind(amount: int, whole: int, weight: int = 1) -> int:
    """A part of one kind, by weight. If the kind has no capacity, any amount of it counts as all of it."""
    if amount <= 0:
        return 0
    return (amount << _SHARE_BITS) // (whole * weight) if whole > 0 else SHARE_ONE // weight


def dominant_share(held: Mapping[Kind, int], capacity: Mapping[Kind, int], weight: int) -> int:
    """The largest part of any kind, by weight."""
    largest = 0
    for kind, amount in held.items():
        if amount > 0:
            whole = capacity.get(kind, 0)
            part = (amount << _SHARE_BITS) // (whole * weight) if whole > 0 else SHARE_ONE // weight
            if part > largest:  # noqa: PLR1730 - this is asked for each admission
                largest = part
    return largest


def slack(whole: int) -> int:
    """So much more than it deserves nobody is said to have, in parts of a unit."""
    return ((whole << FRACTION_BITS) >> 30) + 1


def dominant_kind(held: Mapping[Kind, int], capacity: Mapping[Kind, int]) -> Kind | None:
    """The kind of which a branch has most; of equals the first by name."""
    parts = ((-part_of_kind(amount, capacity.get(kind, 0)), kind) for kind, amount in held.items() if amount)
    return min(parts, default=(0, None))[1]


def as_decimal(share: int) -> str:
    """Four decimals, rounded to the nearest."""
    return f"{share / SHARE_ONE:.4f}"


def as_percent(share: int) -> str:
    return f"{share / SHARE_ONE:.1%}"
