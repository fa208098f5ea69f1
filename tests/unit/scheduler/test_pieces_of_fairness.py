"""What is worked out of demand, nodes and shapes, counted in looks and sums: in proportion to what changes."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from bench.core import Bench
from sluice.events import NodeEvent, NodeFacts
from sluice_scheduler.core.fairness import filling, sizes
from sluice_scheduler.core.fairness.crowding import Flow
from sluice_scheduler.core.fairness.filling import Sibling, fill
from sluice_scheduler.core.fairness.shapes import Shapes
from sluice_scheduler.core.fairness.sizes import Size, Sizes, size_of
from test_pieces_of_work import counted


def test_many_groups_of_demand_are_filled_at_a_cost_in_proportion_to_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each stops at a level of its own."""
    cpu, totals = ("", "cpu"), []
    module: Any = filling
    for count in (100, 200):
        flows = [Flow([{cpu: 1.0 + number}], 1.0 / (1 + number), 0.0) for number in range(count)]
        with monkeypatch.context() as inside:
            sums = counted(inside, module, "add_times")
            sibling = Sibling(1, flows)
            fill([sibling], {cpu: 1e9}, {cpu: 10**9}, {})
        assert sibling.use[cpu] == pytest.approx(sum(1.0 + number for number in range(count)))
        totals.append(len(sums))
    assert totals[1] <= 2.1 * totals[0]


def of_slightly_different_nodes(bench: Bench, count: int) -> None:
    for number in range(count):
        tell_of_node(bench, f"n{number}", memory=2**38 + 4096 * number)


def tell_of_node(bench: Bench, name: str, *, memory: int, cpu: int = 64_000) -> None:
    bench.see(NodeEvent, name, node=NodeFacts(allocatable={"cpu": cpu, "memory": memory}))


def test_a_node_touches_those_shapes_alone_whose_places_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(1)
    of_slightly_different_nodes(bench, 50)
    bench.submit(50, requests=lambda number: {"cpu": 65_000 + number, "memory": 2**30})
    bench.tick(1000)
    placed = counted(monkeypatch, Shapes, "_place_anew")
    tell_of_node(bench, "new", memory=2**38 - 4096)
    tell_of_node(bench, "new", memory=2**38 - 8192)
    tell_of_node(bench, "n0", memory=2**39)
    assert placed == []
    tell_of_node(bench, "n1", memory=2**38, cpu=65_000)
    assert [shape.parts[0].requests[0] for _, shape in placed] == [("cpu", 65_000)]


def test_an_arrival_looks_at_few_of_many_sizes_of_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(1)
    of_slightly_different_nodes(bench, 200)
    bench.submit(1)
    bench.tick(1000)
    module: Any = sizes
    looked = counted(monkeypatch, module, "_holds")
    bench.submit(1, requests=lambda _: {"cpu": 65_000, "memory": 2**30}, series=1)
    assert len(looked) == 1


def test_what_a_few_sizes_say_all_of_them_say() -> None:
    """They come and go in any order."""
    chance = Random(7)
    found, there = Sizes(), Counter[Size]()
    for _ in range(2_000):
        size = size_of(
            {name: chance.randrange(5) for name in ("cpu", "gpu", "memory")[: chance.randint(1, 3)]}
        )
        asked = size_of({name: chance.randrange(5) for name in ("cpu", "gpu")})
        if there and chance.random() < 0.5:
            gone = chance.choice(sorted(there.elements()))
            there -= Counter([gone])
            found.remove(gone)
        else:
            there[size] += 1
            found.add(size)
        assert found.hold(asked) == any(
            all(dict(each).get(resource, 0) >= amount for resource, amount in asked) for each in there
        )
        assert found.largest("gpu") == max((dict(each).get("gpu", 0) for each in there), default=0)
