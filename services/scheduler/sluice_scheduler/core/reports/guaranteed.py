"""Guarantees that cannot all be kept: those of root queues together are of more than there is."""

from __future__ import annotations

from collections.abc import Iterator

from sluice.quantities import format_amount

from sluice_scheduler.core.fairness.claims import Dim
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.reports.named import few
from sluice_scheduler.core.state.state import State


def too_much_guaranteed(state: State) -> dict[str, str]:
    """What is wrong and what to do, by root queue that has a part in it. A queue below another is guaranteed no more
    than that one, or says so itself."""
    guarantees = [(root.name, bound) for root in state.forest.root.children for bound in root.guarantees]
    found: dict[str, str] = {}
    for dims in _together(guarantees):
        parts = [(name, bound.amount) for name, bound in guarantees if dims.issuperset(bound.dims)]
        there_is = sum(max(0, state.forest.capacity.get(dim, 0)) for dim in dims)
        if sum(amount for _, amount in parts) > there_is:
            sentence = _sentence(state, dims, parts, there_is)
            found |= {name: sentence for name, amount in parts if amount and name not in found}
    return found


def _together(guarantees: list[tuple[str, Bound]]) -> Iterator[frozenset[Dim]]:
    """Of which pools guarantees are compared with what these have: of those that a guarantee names, and of all."""
    named = dict.fromkeys(frozenset(bound.dims) for _, bound in guarantees)
    resources = sorted({bound.dims[0][2] for _, bound in guarantees})
    yield from named
    for resource in resources:
        whole = frozenset[Dim]().union(*(dims for dims in named if min(dims)[2] == resource))
        if whole not in named:
            yield whole


def _sentence(state: State, dims: frozenset[Dim], parts: list[tuple[str, int]], there_is: int) -> str:
    resource = min(dims)[2]
    amounts: dict[str, int] = {}
    for name, amount in parts:
        amounts[name] = amounts.get(name, 0) + amount
    each = few([f"{name} {format_amount(resource, amount)}" for name, amount in amounts.items() if amount])
    pools = sorted({pool for _, pool, _ in dims})
    everywhere = {pool for _, pool, of in state.forest.capacity if of == resource}
    where = "" if set(pools) == everywhere else f" in pool{'s' * (len(pools) > 1)} {', '.join(pools)}"
    total, most = (format_amount(resource, amount) for amount in (sum(amounts.values()), there_is))
    return (
        f"root queues are guaranteed {total} {resource}{where} in all ({each}), and there is {most}: not all of "
        "them can have it at once; lower these guarantees, or add nodes"
    )
