"""The tree of queues: who stands under whom, and what is wrong with a Queue that can't stand anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, NamedTuple

from sluice.events import Amounts, QueueFacts
from sluice.quantities import QuantityError, format_amount, is_percent, parse_percent, to_base_units
from sluice.texts import NAMED, cut, few
from sluice.values import answering_cell
from sluice.vocabulary import DEFAULT_CELL

from sluice_scheduler.core.stored.entities import Queue

#: Queues stand on so many levels at the most.
LEVELS_MAX: Final = 32


@dataclass(slots=True, kw_only=True)
class QueueNode:
    """A Queue in its place. An inner queue's own pods are charged to it as to an implicit leaf."""

    name: str
    facts: QueueFacts
    parent: QueueNode | None = None
    children: list[QueueNode] = field(default_factory=list)
    problem: str = ""

    @property
    def path(self) -> list[QueueNode]:
        """This queue and those above it, the root last."""
        found: list[QueueNode] = []
        at: QueueNode | None = self
        while at is not None:
            found.append(at)
            at = at.parent
        return found

    @property
    def usable(self) -> bool:
        return not self.problem


def build_tree(
    queues: Iterable[Queue], cell: str, cells: Sequence[str], problems: Mapping[str, str]
) -> dict[str, QueueNode]:
    """Every Queue of the cell by name; those that can't be used carry a problem, and so do all below them.
    `problems` are those that are known already."""
    found = {queue.name: QueueNode(name=queue.name, facts=queue.facts) for queue in queues}
    nodes = dict(sorted(found.items()))
    ways = _ways_up(nodes)
    for node in nodes.values():
        known = problems.get(node.name, "") or node.facts.problem
        node.problem = known or _standing_problem(node, nodes, ways, cells) or _amount_problem(node)
        parent = nodes.get(node.facts.parent)
        if parent is not None and 0 < ways[node.name].levels <= LEVELS_MAX:
            node.parent = parent
            parent.children.append(node)
    _spread([node for node in nodes.values() if node.problem])
    for root in [node for node in nodes.values() if node.parent is None and node.usable]:
        _judge_guarantees(root)
    for node in nodes.values():
        node.problem = cut(node.problem)  # it goes into the account of each pod there
    tops = {name: nodes[ways[name].top] for name in nodes}
    return {
        name: node for name, node in nodes.items() if answering_cell(tops[name].facts.cell, cells) == cell
    }


class _Way(NamedTuple):
    """The way up from a queue: so many levels (0: it never comes to an end), and the queue at its end."""

    levels: int
    top: str


def _ways_up(nodes: Mapping[str, QueueNode]) -> dict[str, _Way]:
    """Each queue is passed once, however many stand below each other."""
    ways: dict[str, _Way] = {}
    for name in nodes:
        passed: dict[str, None] = {}
        at = name
        while at in nodes and at not in ways and at not in passed:
            passed[at] = None
            at = nodes[at].facts.parent
        is_circle = at in passed or (at in ways and not ways[at].levels)
        levels, top = ways.get(at, _Way(0, next(reversed(passed), "")))
        for up, each in enumerate(reversed(passed), start=1):
            ways[each] = _Way(0, each) if is_circle else _Way(levels + up, top)
    return ways


def _spread(spoilt: Iterable[QueueNode]) -> None:
    """Who stands below a queue that can't be used can't be used either, and is told of the nearest that is to blame."""
    for cause in spoilt:
        below = list(cause.children)
        while below:
            node = below.pop()
            if node.usable:
                node.problem = f"queue {cause.name}, above it, can't be used: {cause.problem}"
                below += node.children


def cell_problem(name: str, cells: Sequence[str]) -> str:
    """What is wrong with a Queue or ResourcePool that names a cell which the settings don't."""
    if (name or DEFAULT_CELL) in cells:
        return ""
    return (
        f"spec.cell: there is no cell {name or DEFAULT_CELL}: make it anew in one of {', '.join(cells)}, or "
        "add the cell to SLUICE_CELLS of every service"
    )


def _standing_problem(
    node: QueueNode, nodes: Mapping[str, QueueNode], ways: Mapping[str, _Way], cells: Sequence[str]
) -> str:
    parent = node.facts.parent
    if not parent:
        return cell_problem(node.facts.cell, cells)
    if parent not in nodes:
        return f"its parent {parent} does not exist: create it, or set spec.parent to a queue that does"
    levels = ways[node.name].levels
    if not levels:
        return "going up from it never reaches a root: set spec.parent of one queue in the circle to another"
    if levels > LEVELS_MAX:
        return (
            f"it stands on level {levels}, and queues may stand on {LEVELS_MAX} levels: set spec.parent of it, or of "
            "one above it, to a queue further up"
        )
    return ""


def _amount_problem(node: QueueNode) -> str:
    facts = node.facts
    by_place = {
        "spec.guaranteed": [facts.guaranteed, *facts.guaranteed_by_pool.values()],
        "spec.limit": [facts.limit, *facts.limit_by_pool.values()],
    }
    for place, all_amounts in by_place.items():
        for amounts in all_amounts:
            for resource, text in amounts.items():
                if wrong := why_no_amount(resource, text):
                    return f"{place}.{resource}: {wrong}"
    return ""


def why_no_amount(resource: str, text: str) -> str:
    """What is wrong with an amount as its author wrote it; empty if nothing is."""
    try:
        amount = resolve_amount(resource, text, capacity=0)
    except QuantityError as error:
        return str(error)
    return f"{text} is negative; write 0 or more" if amount < 0 else ""


def _judge_guarantees(parent: QueueNode) -> None:
    """Children's guarantees may not exceed their parent's: in general, and in each pool that somebody names. A
    queue that names no guarantee of a resource is guaranteed what its children are, and passes that on.

    What is written in one unit is compared: amounts among themselves, percentages among themselves. The
    children that ask too much can't be used; their parent, and who asks nothing, can.
    """
    children = [child for child in parent.children if child.usable]
    below = [node for child in children for node in _with_all_below(child)]
    resources = {r for node in below for amounts in _guarantees(node) for r in amounts}
    pools = {pool for node in below for pool in node.facts.guaranteed_by_pool}
    for resource in sorted(resources):
        for pool in ("", *sorted(pools)):
            _judge_guarantee(parent, children, resource, pool)
    for child in parent.children:
        _judge_guarantees(child)


def _judge_guarantee(parent: QueueNode, children: Iterable[QueueNode], resource: str, pool: str) -> None:
    own = _guarantee(parent, resource, pool) or parent.facts.guaranteed.get(resource, "")
    if not own:
        return
    asked = [(child, _asked(child, resource, pool, like=own)) for child in children]
    texts = [text for _, of_child in asked for text in of_child]
    if sum(_plain_amount(resource, text) for text in texts) <= _plain_amount(resource, own):
        return
    place = f"spec.pools.{pool}.guaranteed.{resource}" if pool else f"spec.guaranteed.{resource}"
    problem = (
        f"{place}: the queues below {parent.name} are guaranteed {_added_up(resource, texts)}, more than its own "
        f"{own}: lower theirs, or raise {parent.name}'s"
    )
    for child, of_child in asked:
        if child.usable and of_child:
            child.problem = problem
            _spread([child])


def _added_up(resource: str, texts: Sequence[str]) -> str:
    """As they are written; of many the first few, and what all come to: each of these queues says so."""
    shown = few(texts, " + ")
    if len(texts) <= NAMED:
        return shown
    amount = sum(_plain_amount(resource, text) for text in texts)
    in_all = f"{float(100 * amount):g}%" if is_percent(texts[0]) else format_amount(resource, int(amount))
    return f"{shown} ({in_all} in all)"


def _asked(node: QueueNode, resource: str, pool: str, *, like: str) -> list[str]:
    """What a queue is guaranteed of a resource, in the unit of another guarantee: what it names, or else what
    those below it do."""
    if any(resource in amounts for amounts in _guarantees(node)):
        text = _guarantee(node, resource, pool)
        counts = text and is_percent(text) == is_percent(like) and _plain_amount(resource, text) > 0
        return [text] if counts else []
    usable = (child for child in node.children if child.usable)
    return [text for child in usable for text in _asked(child, resource, pool, like=like)]


def _with_all_below(node: QueueNode) -> list[QueueNode]:
    return [node, *(below for child in node.children if child.usable for below in _with_all_below(child))]


def _guarantees(node: QueueNode) -> list[Amounts]:
    return [node.facts.guaranteed, *node.facts.guaranteed_by_pool.values()]


def _guarantee(node: QueueNode, resource: str, pool: str) -> str:
    """As written for one pool, where a general percentage holds too; without a pool, in general."""
    general = node.facts.guaranteed.get(resource, "")
    if not pool:
        return general
    return node.facts.guaranteed_by_pool.get(pool, {}).get(resource, general if is_percent(general) else "")


def _plain_amount(resource: str, text: str) -> Fraction:
    return parse_percent(text) if is_percent(text) else Fraction(to_base_units(resource, text))


def resolve_amount(resource: str, text: str, *, capacity: int) -> int:
    """An amount as its author wrote it, in base units; a percentage is of `capacity`, rounded down."""
    if is_percent(text):
        return int(parse_percent(text) * capacity)
    return to_base_units(resource, text)
