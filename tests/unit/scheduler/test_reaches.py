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


def drawn(random: Random) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(dict(random.sample(LABELS, random.randrange(4))).items()))


class Both:
    """Nodes that come and go at random, beside what is known of them."""

    def __init__(self, seed: int) -> None:
        self.reaches = Reaches()
        self.nodes: dict[tuple[str, str], tuple[dict[str, str], str, Size]] = {}
        self.asked: dict[Selected, dict[str, int]] = {}  # what each was told last
        self._random = Random(seed)

    def happens(self) -> None:
        random = self._random
        cluster = random.choice("mn")
        node, selected = (cluster, str(random.randrange(8))), (cluster, drawn(random))
        [happening] = random.choices((self._edit, self._go), (2, 1))
        if random.randrange(5) < 3:
            happening(node)
        elif random.randrange(2):
            self.asked[selected] = self.shown(selected)
        else:
            self.reaches.forget(selected)
            self.asked.pop(selected, None)

    def _go(self, node: tuple[str, str]) -> None:
        if self.nodes.pop(node, None):
            self.reaches.remove(node)

    def _edit(self, node: tuple[str, str]) -> None:
        self._go(node)
        cpu = self._random.randrange(1, 5)
        self.nodes[node] = dict(drawn(self._random)), self._random.choice("pq"), (("cpu", cpu),)
        self.reaches.add(node, *self.nodes[node])

    def end(self) -> None:
        for node in list(self.nodes):
            self._go(node)
        for selected in self.asked:
            self.reaches.forget(selected)

    def shown(self, selected: Selected) -> dict[str, int]:
        """The most cpu by pool that a selected node has."""
        return {pool: sizes.largest("cpu") for pool, sizes in self.reaches.of(selected).items()}

    def true(self, selected: Selected) -> dict[str, int]:
        found: dict[str, int] = {}
        for (cluster, _), (labels, pool, size) in self.nodes.items():
            if cluster == selected[0] and set(selected[1]) <= labels.items():
                found[pool] = max(found.get(pool, 0), dict(size)["cpu"])
        return found


@pytest.mark.parametrize("seed", range(20))
def test_what_a_selector_reaches_is_what_its_nodes_are(seed: int) -> None:
    both = Both(seed)
    for _ in range(400):
        both.happens()
        changed = both.reaches.take_changed()
        for selected, before in both.asked.items():
            now = both.asked[selected] = both.shown(selected)
            assert now == both.true(selected)
            assert now == before or selected in changed
    both.end()
    assert not both.reaches.selectors
    assert not both.reaches._asked


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
