"""What applications ask for in claims of several pods, and whether two of them ask for the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sluice_scheduler.core.fairness.amounts import add
from sluice_scheduler.core.fairness.claims import Claim, Dim, Part, Shape, cost_of, part_of
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import Promise


def parts_like(pods: Iterable[Pod]) -> tuple[Part, ...]:
    return parts_alike(Counter(map(part_of, pods)))


def parts_alike(alike: Mapping[Part, int]) -> tuple[Part, ...]:
    """So many of each, in order."""
    return tuple(each._replace(pods=count) for each, count in sorted(alike.items()))


def is_what_was_promised(wanted: Claim, promise: Promise) -> bool:
    """Whether a claim still asks for what was taken from others for it: no more, no less, nothing else."""
    parts = wanted.shape.parts
    if wanted.line != promise.queue or len(parts) != len(promise.pools):
        return False
    sums: dict[Dim, int] = {}
    for each, pool in zip(parts, promise.pools, strict=True):
        add(sums, cost_of(each.cluster, pool, each.requests, each.pods))
    return sorted((*dim, amount) for dim, amount in sums.items()) == sorted(map(tuple, promise.cost))


def asks_the_same(one: Claim, other: Claim) -> bool:
    return _asked(one) == _asked(other)


def _asked(claim: Claim) -> tuple[object, ...]:
    return claim.place, claim.created_ms, claim.line, claim.shape.parts


def gang_claim(
    key: str,
    *,
    queue: str,
    priority: int,
    created_ms: int,
    line_ms: int,
    names: tuple[str | int, ...],
    parts: tuple[Part, ...],
) -> Claim:
    return Claim(
        key=key,
        line=queue,
        priority=priority,
        created_ms=created_ms,
        line_ms=line_ms,
        names=names,
        shape=Shape(parts, -1),
        gang=True,
    )
