"""Shares, in fixed point: what a branch has of what it has most of, and how that adds up the tree (H-DRF).

A share is an integer in units of 2^-48 of a whole. Equal fractions give equal integers, because everything is
computed with 2^-96 and rounded to the nearest unit only at the end; so ties are ties, comparisons cost
nothing, and sums over children can be kept up to date exactly (ADR 0001).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeAlias

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Dim

#: By dim: a fraction of the capacity, in units of 2^-96.
Vector: TypeAlias = dict[Dim, int]

_FINE_BITS: Final = 96
_SHARE_BITS: Final = 48
_ROUND_BITS: Final = _FINE_BITS - _SHARE_BITS
FINE_ONE: Final = 1 << _FINE_BITS
SHARE_ONE: Final = 1 << _SHARE_BITS
#: More than is lost by rounding down in a tree of any size that fits into memory, in units of 2^-96.
ROUNDING: Final = 1 << 24


def leaf_vector(usage: Mapping[Dim, int], capacity: Mapping[Dim, int]) -> Vector:
    """What is held of a pool that has nothing of it (its nodes were lost) counts as all of it."""
    vector: Vector = {}
    for dim, amount in usage.items():
        if amount > 0:
            whole = capacity.get(dim, 0)
            vector[dim] = (amount << _FINE_BITS) // whole if whole > 0 else FINE_ONE
    return vector


def dominant(vector: Vector, weight: int, saturated: Collection[Dim] = ()) -> int:
    """The largest part, by weight, of the dims that are not saturated.

    In units of 2^-96; `rounded` makes a share of it.
    """
    if not saturated:
        return max(vector.values(), default=0) // weight
    return max((part for dim, part in vector.items() if dim not in saturated), default=0) // weight


def rounded(fine: int) -> int:
    return (fine + (1 << (_ROUND_BITS - 1))) >> _ROUND_BITS


def direction(vector: Vector, fine: int) -> Vector:
    """A child's vector scaled to a share of one: its parent adds these up, and scales by the smallest."""
    if fine == 0:
        return {}
    return {dim: (part << _FINE_BITS) // fine for dim, part in vector.items()}


def inner_vector(smallest: int, scaled: Mapping[Dim, int], fixed: Mapping[Dim, int]) -> Vector:
    """Non-blocked children scaled to the smallest share among them, blocked ones as they are."""
    vector = {dim: part for dim, part in fixed.items() if part}
    if smallest:
        for dim, part in scaled.items():
            vector[dim] = vector.get(dim, 0) + ((smallest * part) >> _FINE_BITS)
    return vector


def add_up(children: Iterable[tuple[Vector, int, bool]]) -> Vector:
    """`inner_vector` of (vector, fine share, blocked) children, from nothing."""
    scaled: Vector = {}
    fixed: Vector = {}
    smallest: int | None = None
    for vector, fine, blocked in children:
        target, parts = (fixed, vector) if blocked else (scaled, direction(vector, fine))
        add(target, parts.items())
        if not blocked:
            smallest = fine if smallest is None else min(smallest, fine)
    return inner_vector(smallest or 0, scaled, fixed)


def as_decimal(share: int) -> str:
    """Four decimals, rounded to the nearest."""
    return f"{share / SHARE_ONE:.4f}"


def as_percent(share: int) -> str:
    return f"{share / SHARE_ONE:.1%}"
