"""Which nodes a selector selects is known by classes of nodes: just as if each selector looked at each node."""

from __future__ import annotations

from random import Random

import pytest
from one_cell import OneCell
from sluice.events import NodeEvent, NodeFacts, PoolEvent, PoolFacts
from sluice_scheduler.core.fairness.reaches import Reaches, Selected
from sluice_scheduler.core.fairness.sizes import Size, Sizes
from test_pieces_of_work import counted

LABELS = [(key, value) for key in "abcd" for value in "xy"]


class Nodes:
    def __init__(self) -> None:
        self.there: dict[tuple[str, str], tuple[dict[str, str], str, Size]] = {}

    def largest(self, selected: Selected) -> dict[str, int]:
        """The most cpu by pool that a selected node has."""
        found: dict[str, int] = {}
        for (cluster, _), (labels, pool, size) in self.there.items():
            if cluster == selected[0] and set(selected[1]) <= labels.items():
                found[pool] = max(found.get(pool, 0), dict(size)["cpu"])
        return found


def drawn(random: Random) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(dict(random.sample(LABELS, random.randrange(4))).items()))


@pytest.mark.parametrize("seed", range(20))
def test_what_a_selector_reaches_is_what_its_nodes_are(seed: int) -> None:
    random, nodes, reaches = Random(seed), Nodes(), Reaches()
    asked: dict[Selected, dict[str, int]] = {}
    for step in range(400):
        key = (random.choice("mn"), str(random.randrange(8)))
        selected = (key[0], drawn(random))
        match random.randrange(5):
            case 0 | 1:
                if nodes.there.pop(key, None):
                    reaches.remove(key)
                labels, pool = dict(drawn(random)), random.choice("pq")
                nodes.there[key] = labels, pool, (("cpu", random.randrange(1, 5)),)
                reaches.add(key, *nodes.there[key])
            case 2:
                if nodes.there.pop(key, None):
                    reaches.remove(key)
            case 3:
                reaches.of(selected)
                asked[selected] = {}
            case 4:
                reaches.forget(selected)
                asked.pop(selected, None)
        changed = reaches.take_changed()
        for each, before in asked.items():
            shown = {pool: sizes.largest("cpu") for pool, sizes in reaches.of(each).items()}
            assert shown == nodes.largest(each), f"step {step}"
            assert shown == before or not before or each in changed, f"step {step}"
            asked[each] = shown
    for each in asked:
        reaches.forget(each)
    for key in nodes.there:
        reaches.remove(key)
    assert not reaches.selectors
    assert not reaches._asked


def pods_by_any_selector(cell: OneCell, count: int) -> None:
    for number in range(count):
        selector = {f"l{bit}": "x" for bit in range(8) if number >> bit & 1}
        cell.pod(f"p{number}", "a", cpu=9000, node_selector=selector)


def node(cell: OneCell, cpu: int) -> None:
    labels = {"pool": "p", **{f"l{bit}": "x" for bit in range(8)}}
    cell.tell(NodeEvent, "n", node=NodeFacts(allocatable={"cpu": cpu}, labels=labels))


def test_a_nodes_change_is_counted_once_for_all_selectors_that_select_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tenant names as many as there are sets of labels."""
    looks: list[list[int]] = []
    for count in (8, 250):
        cell = OneCell()
        cell.tell(PoolEvent, "p", pool=PoolFacts(node_selector={"pool": "p"}))
        node(cell, 4000)
        cell.queue("a")
        cell.namespace("a")
        pods_by_any_selector(cell, count)
        with monkeypatch.context() as inside:
            looked = counted(inside, Sizes, "add"), counted(inside, Sizes, "remove")
            node(cell, 3000)
            looks.append([len(calls) for calls in looked])
    assert looks[0] == looks[1]
    assert sum(looks[0])
