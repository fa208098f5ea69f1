"""The tree of queues: who stands under whom, and what is wrong with a Queue that can't stand anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from sluice.events import Amounts, QueueFacts
from sluice.quantities import QuantityError, is_percent, parse_percent, to_base_units
from sluice.values import answering_cell
from sluice.vocabulary import DEFAULT_CELL

from sluice_scheduler.core.stored.entities import Queue


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
    nodes = {queue.name: QueueNode(name=queue.name, facts=queue.facts) for queue in queues}
    for node in nodes.values():
        known = problems.get(node.name, "") or node.facts.problem
        node.problem = known or _standing_problem(node, nodes, cells) or _amount_problem(node)
    for name in sorted(nodes):
        node = nodes[name]
        parent = nodes.get(node.facts.parent)
        if parent is not None and not _runs_in_circle(node, nodes):
            node.parent = parent
            parent.children.append(node)
    for node in nodes.values():
        above = next((other for other in node.path[1:] if other.problem), None)
        if not node.problem and above is not None:
            node.problem = f"queue {above.name}, above it, can't be used: {above.problem}"
    for root in [node for node in nodes.values() if node.parent is None and node.usable]:
        _judge_guarantees(root)
    return {
        name: node for name, node in nodes.items() if answering_cell(node.path[-1].facts.cell, cells) == cell
    }


def cell_problem(name: str, cells: Sequence[str]) -> str:
    """What is wrong with a Queue or ResourcePool that names a cell which the settings don't."""
    if (name or DEFAULT_CELL) in cells:
        return ""
    return (
        f"spec.cell: there is no cell {name or DEFAULT_CELL}: make it anew in one of {', '.join(cells)}, or "
        "add the cell to SLUICE_CELLS of every service"
    )


def _standing_problem(node: QueueNode, nodes: Mapping[str, QueueNode], cells: Sequence[str]) -> str:
    parent = node.facts.parent
    if not parent:
        return cell_problem(node.facts.cell, cells)
    if parent not in nodes:
        return f"its parent {parent} does not exist: create it, or set spec.parent to a queue that does"
    if _runs_in_circle(node, nodes):
        return "going up from it never reaches a root: set spec.parent of one queue in the circle to another"
    return ""


def _runs_in_circle(node: QueueNode, nodes: Mapping[str, QueueNode]) -> bool:
    """Whether going up from this queue never reaches a root."""
    seen: set[str] = set()
    at: QueueNode | None = node
    while at is not None:
        if at.name in seen:
            return True
        seen.add(at.name)
        at = nodes.get(at.facts.parent)
    return False


def _amount_problem(node: QueueNode) -> str:
    facts = node.facts
    by_place = {
        "spec.guaranteed": [facts.guaranteed, *facts.guaranteed_by_pool.values()],
        "spec.limit": [facts.limit, *facts.limit_by_pool.values()],
    }
    for place, all_amounts in by_place.items():
        for amounts in all_amounts:
            for resource, text in amounts.items():
                try:
                    amount = resolve_amount(resource, text, capacity=0)
                except QuantityError as error:
                    return f"{place}.{resource}: {error}"
                if amount < 0:
                    return f"{place}.{resource}: {text} is negative; write 0 or more"
    return ""


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
        f"{place}: the queues below {parent.name} are guaranteed {' + '.join(texts)}, more than its own "
        f"{own}: lower theirs, or raise {parent.name}'s"
    )
    for child, of_child in asked:
        if child.usable and of_child:
            _spoil(child, problem)


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


def _spoil(node: QueueNode, problem: str) -> None:
    node.problem = problem
    for child in node.children:
        if child.usable:
            _spoil(child, f"queue {node.name}, above it, can't be used: {problem}")


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
