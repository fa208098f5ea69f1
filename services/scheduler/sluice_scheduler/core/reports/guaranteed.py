"""Guarantees that cannot all be kept: those of queues beside each other are of more than the queue above them may
hold, or those of root queues of more than there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from sluice.quantities import format_amount
from sluice.texts import few

from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Dim
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.state.state import State

#: What queues beside each other are guaranteed, by name.
_Parts: TypeAlias = list[tuple[str, int]]


def too_much_guaranteed(state: State) -> dict[str, str]:
    """What is wrong and what to do, by queue that has a part in it. A queue below another is guaranteed no more than
    that one, or says so itself; but the other's limit may be lower than what it guarantees."""
    root = state.forest.root
    found: dict[str, str] = {}
    for dims, parts in _together(root.children):
        there_is = sum(max(0, state.forest.capacity.get(dim, 0)) for dim in dims)
        if sum(amount for _, amount in parts) > there_is:
            _tell(found, parts, _more_than_there_is(state, dims, parts, there_is))
    for above in state.forest.inner:
        limits = [room.bound for room in above.rooms if room.bound not in above.guarantees]
        for dims, parts in _together(above.children) if limits else ():
            most = _most(limits, dims)
            if most is not None and sum(amount for _, amount in parts) > most:
                _tell(found, parts, _more_than_it_may_hold(state, above, dims, parts, most))
    return found


def _tell(found: dict[str, str], parts: _Parts, sentence: str) -> None:
    found |= {name: sentence for name, amount in parts if amount and name not in found}


def _together(children: Iterable[Branch]) -> Iterator[tuple[frozenset[Dim], _Parts]]:
    """What queues are guaranteed together, in those pools that a guarantee names, and in all of them."""
    guarantees = [(child.name, bound) for child in children for bound in child.guarantees]
    named = dict.fromkeys(frozenset(bound.dims) for _, bound in guarantees)
    for resource in sorted({bound.dims[0][2] for _, bound in guarantees}):
        named[frozenset[Dim]().union(*(dims for dims in named if min(dims)[2] == resource))] = None
    for dims in named:
        yield dims, [(name, bound.amount) for name, bound in guarantees if dims.issuperset(bound.dims)]


def _most(limits: Sequence[Bound], dims: frozenset[Dim]) -> int | None:
    """How much limits allow of all these together; none if they do not bound it."""
    over_all = [bound.amount for bound in limits if dims.issubset(bound.dims)]
    in_each = [[bound.amount for bound in limits if bound.dims == (dim,)] for dim in dims]
    if all(in_each):
        over_all.append(sum(map(min, in_each)))
    return min(over_all, default=None)


def _more_than_there_is(state: State, dims: frozenset[Dim], parts: _Parts, there_is: int) -> str:
    total, most = _in_all(state, dims, parts), format_amount(_resource(dims), there_is)
    return (
        f"root queues are guaranteed {total}, and there is {most}: not all of them can have it at once; lower "
        "these guarantees, or add nodes"
    )


def _more_than_it_may_hold(
    state: State, above: Branch, dims: frozenset[Dim], parts: _Parts, may_hold: int
) -> str:
    resource, total = _resource(dims), _in_all(state, dims, parts)
    return (
        f"guaranteed.{resource}: the queues below {above.name} are guaranteed {total}, and limit.{resource} of "
        f"{above.name} lets them hold {format_amount(resource, may_hold)}: lower guaranteed.{resource} of these, "
        f"or raise limit.{resource} of {above.name}"
    )


def _in_all(state: State, dims: frozenset[Dim], parts: _Parts) -> str:
    resource = _resource(dims)
    amounts: dict[str, int] = {}
    for name, amount in parts:
        amounts[name] = amounts.get(name, 0) + amount
    each = few([f"{name} {format_amount(resource, amount)}" for name, amount in amounts.items() if amount])
    pools = sorted({pool for _, pool, _ in dims})
    everywhere = {pool for _, pool, of in state.forest.capacity if of == resource}
    where = "" if set(pools) == everywhere else f" in pool{'s' * (len(pools) > 1)} {', '.join(pools)}"
    return f"{format_amount(resource, sum(amounts.values()))} {resource}{where} in all ({each})"


def _resource(dims: frozenset[Dim]) -> str:
    return min(dims)[2]
