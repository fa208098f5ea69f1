"""Amounts and times as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from sluice.quantities import CPU
from sluice.values import POD_SLOTS

_BINARY: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
#: An amount from which bytes are meant: no other resource comes in such numbers.
_LARGE: Final = 2**20


def amount(resource: str, value: int) -> str:
    """Rounded to what can be told apart at a glance; `--json` has every digit."""
    if resource == CPU:
        return _rounded(value / 1000)
    if value >= _LARGE:
        for unit, size in _BINARY:
            if value >= size:
                return _rounded(value / size) + unit
    return str(value)


def amounts(values: Mapping[str, int], *, every: bool = False) -> str:
    """`cpu 3, memory 6Gi`; with the pool or supply where there are several. Pods' slots are left out unless `every`."""
    pools = {pool for pool, _ in map(split, values)}
    words = []
    for key, value in values.items():
        pool, resource = split(key)
        if value and (every or resource != POD_SLOTS):
            place = f"{pool}/" if pool and len(pools) > 1 else ""
            words.append(f"{place}{resource} {amount(resource, value)}")
    return ", ".join(words) or "-"


def split(key: str) -> tuple[str, str]:
    """`pool/resource`; a resource may have a slash of its own, but a domain before it has a dot."""
    pool, slash, resource = key.partition("/")
    if not slash or "." in pool:
        return "", key
    return pool, resource


def clock_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]


def date_time(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def age(duration_ms: int) -> str:
    """One unit is enough to see whether something is wrong."""
    seconds = max(0, duration_ms) / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _rounded(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
