"""Guarantees and limits as their authors wrote them → bounds on what is counted.

A quantity is a sum over the cell's pools; a percentage holds in each pool, of what that pool has now. What is
keyed by a pool holds there: a quantity beside the general one, a percentage in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluice.events import Amounts, QueueFacts
from sluice.quantities import format_amount, is_percent
from sluice.values import POD_SLOTS

from sluice_scheduler.core.fairness.claims import Dim, Kind, KindOf
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.fairness.tree import resolve_amount, why_no_amount


def limits_of(
    name: str, facts: QueueFacts, capacity: Mapping[Dim, int], guarantees: Iterable[Bound]
) -> list[Bound]:
    bounds = _bounds(f"{name}'s limit", facts.limit, facts.limit_by_pool, capacity)
    if facts.oversubscription == "never":
        bounds += guarantees
        promised = {dim for bound in bounds for dim in bound.dims}
        bounds += [
            Bound((dim,), 0, f"{name}'s guarantee (it may not oversubscribe) of {dim[2]} in pool {dim[1]}")
            for dim in sorted(capacity)
            if dim not in promised and dim[2] != POD_SLOTS
        ]
    return bounds


def guarantees_of(name: str, facts: QueueFacts, capacity: Mapping[Dim, int]) -> list[Bound]:
    return _bounds(f"{name}'s guarantee", facts.guaranteed, facts.guaranteed_by_pool, capacity)


def passed_on(name: str, facts: QueueFacts, below: Iterable[Bound]) -> list[Bound]:
    """What an inner queue guarantees without naming it: of each resource the sum of what its children do. Where
    these hold in the same pools, they are one bound."""
    named = {r for amounts in (facts.guaranteed, *facts.guaranteed_by_pool.values()) for r in amounts}
    found: list[tuple[set[Dim], int]] = []
    for bound in below:
        if bound.dims[0][2] in named:
            continue
        dims, amount = set(bound.dims), bound.amount
        for other in [each for each in found if each[0] & dims]:
            found.remove(other)
            dims, amount = dims | other[0], amount + other[1]
        found.append((dims, amount))
    return [
        Bound(tuple(sorted(dims)), amount, _passed_on(name, min(dims)[2], amount)) for dims, amount in found
    ]


def _passed_on(name: str, resource: str, amount: int) -> str:
    return f"{name}'s guarantee, the sum of those below it, of {format_amount(resource, amount)} {resource}"


def summed(bounds: Iterable[Bound], kind_of: KindOf) -> dict[Kind, int]:
    """Guarantees by kind. Guarantees in several pools add up, and may be used in each of their supplies."""
    sums: dict[Kind, int] = {}
    for bound in bounds:
        for kind in {kind_of(dim) for dim in bound.dims}:
            sums[kind] = sums.get(kind, 0) + bound.amount
    return sums


def tightest(bounds: Iterable[Bound], dims: Mapping[Kind, set[Dim]], kind_of: KindOf) -> dict[Kind, int]:
    """Limits by kind: the lowest limit on all pools of the kind together, or the sum of the limits on each of them."""
    found: dict[Kind, int] = {}
    in_pools: dict[Kind, dict[Dim, int]] = {}
    for bound in bounds:
        for kind in {kind_of(dim) for dim in bound.dims}:
            if dims[kind] <= set(bound.dims):
                found[kind] = min(found.get(kind, bound.amount), bound.amount)
            elif len(bound.dims) == 1:
                (dim,) = bound.dims
                in_pool = in_pools.setdefault(kind, {})
                in_pool[dim] = min(in_pool.get(dim, bound.amount), bound.amount)
    for kind, in_pool in in_pools.items():
        if dims[kind] <= set(in_pool):
            total = sum(in_pool.values())
            found[kind] = min(found.get(kind, total), total)
    return found


def _bounds(
    what: str, general: Amounts, by_pool: Mapping[str, Amounts], capacity: Mapping[Dim, int]
) -> list[Bound]:
    pools = sorted({pool for _, pool, _ in capacity})
    found: list[Bound] = []
    for resource, text in _readable(general):
        if not is_percent(text):
            dims = _dims(capacity, pools, resource)
            found.append(_bound(what, resource, text, dims=dims, capacity=capacity))
            continue
        for pool in pools:
            replaced = by_pool.get(pool, {}).get(resource, "")
            if not is_percent(replaced):
                dims = _dims(capacity, [pool], resource)
                found.append(_bound(what, resource, text, dims=dims, capacity=capacity, pool=pool))
    for pool, amounts in sorted(by_pool.items()):
        for resource, text in _readable(amounts):
            dims = _dims(capacity, [pool], resource)
            found.append(_bound(what, resource, text, dims=dims, capacity=capacity, pool=pool))
    return [bound for bound in found if bound.dims]


def _readable(amounts: Amounts) -> list[tuple[str, str]]:
    """A queue with another amount can't be used, and says so; what runs in it goes on as if that were not there."""
    return [
        (resource, text) for resource, text in sorted(amounts.items()) if not why_no_amount(resource, text)
    ]


def _dims(capacity: Mapping[Dim, int], pools: Iterable[str], resource: str) -> tuple[Dim, ...]:
    wanted = set(pools)
    return tuple(sorted(dim for dim in capacity if dim[1] in wanted and dim[2] == resource))


def _bound(
    what: str, resource: str, text: str, *, dims: tuple[Dim, ...], capacity: Mapping[Dim, int], pool: str = ""
) -> Bound:
    amount = resolve_amount(resource, text, capacity=sum(max(0, capacity[dim]) for dim in dims))
    where = f" in pool {pool}" if pool else ""
    return Bound(dims, amount, f"{what} of {format_amount(resource, amount)} {resource}{where}")
