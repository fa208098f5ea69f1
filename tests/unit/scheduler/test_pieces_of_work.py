"""What a step does, counted in calls and pieces of its budget: as much in a large cell as in a small one."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from bench.core import Bench
from one_cell import OneCell
from sluice.events import (
    ConfigEvent,
    NodeEvent,
    NodeFacts,
    PodEvent,
    PodSetFacts,
    PoolEvent,
    PoolFacts,
    UnmanagedEvent,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice_scheduler.core import step
from sluice_scheduler.core.fairness import heaps
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.fits import Fits
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.fairness.lines import Line
from sluice_scheduler.core.fairness.rooms import Bound
from sluice_scheduler.core.fairness.shapes import Shapes
from sluice_scheduler.core.fairness.spreads import Spread
from sluice_scheduler.core.passes.budget import OVERDRAFT, PIECES, Budget
from sluice_scheduler.core.passes.move import Move


def counted(patch: pytest.MonkeyPatch, owner: type, name: str) -> list[Any]:
    """Every call of a method from now on."""
    calls: list[Any] = []
    method: Callable[..., Any] = getattr(owner, name)

    def call(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return method(*given, **named)

    patch.setattr(owner, name, call)
    return calls


def pieces(patch: pytest.MonkeyPatch) -> list[int]:
    """What is spent of each step's budget."""
    spent: list[int] = []
    begin, spend = Budget.__init__, Budget.spend

    def begun(budget: Budget, *given: Any) -> None:
        spent.append(0)
        begin(budget, *given)

    def counted_in(budget: Budget, amount: int = 1) -> None:
        spent[-1] += amount
        spend(budget, amount)

    patch.setattr(Budget, "__init__", begun)
    patch.setattr(Budget, "spend", counted_in)
    return spent


@pytest.mark.parametrize("parts", [20, 200])
def test_a_gang_of_many_parts_in_two_pools_is_placed_in_few_tries(
    parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 1: nothing is made of each combination."""
    cell = OneCell()
    for name in ("east", "west"):
        labels = {"pool": name}
        cell.tell(PoolEvent, name, pool=PoolFacts(node_selector=labels))
        cell.tell(NodeEvent, name, node=NodeFacts(allocatable={"cpu": 10**6}, labels=labels))
    cell.queue("a")
    cell.namespace("a")
    selectors = [{"pool": "east"}, {"pool": "west"}] + [{}] * parts
    sets = [
        PodSetFacts(
            name=f"s{n}", count=1, min_count=1, requests={"cpu": 1000 + n}, node_selector=dict(selector)
        )
        for n, selector in enumerate(selectors)
    ]
    tries = counted(monkeypatch, Shapes, "spot")
    cell.tell(WorkloadEvent, "w", namespace="a", workload=WorkloadFacts(pod_sets=tuple(sets), created_ms=0))
    cell.tick()
    assert [workload.admitted for workload in cell.state.workloads] == [True]
    assert len(tries) < 20


def tiered(pools: int, *, cpu: int) -> OneCell:
    """Pools of two tiers, so many of each. A gang of two parts goes to one of either."""
    cell = OneCell()
    cell.queue("a")
    cell.namespace("a")
    for tier in ("head", "worker"):
        for number in range(pools):
            name = f"{tier}{number:02}"
            cell.tell(PoolEvent, name, pool=PoolFacts(node_selector={"pool": name}))
            labels = {"pool": name, "tier": tier}
            cell.tell(NodeEvent, name, node=NodeFacts(allocatable={"cpu": cpu}, labels=labels))
    return cell


def gang_of_tiers(cell: OneCell, parts: int = 1) -> None:
    """So many parts in each tier, of different sizes."""
    sets = [
        PodSetFacts(
            name=f"{tier}{n}",
            count=1,
            min_count=1,
            requests={"cpu": 1000 + n},
            node_selector={"tier": tier},
        )
        for tier in ("head", "worker")
        for n in range(parts)
    ]
    cell.tell(WorkloadEvent, "w", namespace="a", workload=WorkloadFacts(pod_sets=tuple(sets), created_ms=0))


def test_the_only_spread_over_many_pools_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room is in the last pool of each tier alone: what is looked at is each pool, not each pair of pools. That is
    done first with all that there is, for what could never fit is no demand."""
    cell = tiered(40, cpu=2000)
    for tier in ("head", "worker"):
        for number in range(39):
            where = {"pool": f"{tier}{number:02}"}
            cell.pod(f"busy-{tier}{number}", "a", cpu=2000, node_selector=where)
    looks = counted(monkeypatch, Spread, "_is_open")
    gang_of_tiers(cell)
    assert [workload.pools for workload in cell.state.workloads] == [
        {"head0": "head39", "worker0": "worker39"}
    ]
    assert len(looks) < 5 * 80


def test_a_gang_that_no_spread_fits_is_tried_so_often_and_again_when_anything_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of its parts fits into each pool, and in each pool is room for one of them; there are too many."""
    cell = tiered(6, cpu=1500)
    looks = counted(monkeypatch, Spread, "_is_open")
    gang_of_tiers(cell, parts=7)
    assert len(looks) < 3000
    assert [workload.admitted for workload in cell.state.workloads] == [False]
    for tier in ("head", "worker"):
        labels = {"pool": f"{tier}05", "tier": tier}
        cell.tell(NodeEvent, f"{tier}05", node=NodeFacts(allocatable={"cpu": 2500}, labels=labels))
    assert [workload.admitted for workload in cell.state.workloads] == [True]


def configured(bench: Bench, **settings: Any) -> None:
    config = replace(bench.state.config, **settings)
    step(bench.state, ConfigEvent(config=config, **bench._at()))


def taken_back(pods: int, patch: pytest.MonkeyPatch) -> list[int]:
    """Half of what one queue holds is another's."""
    bench = Bench(2)
    configured(bench, reclaim_after_ms=0)
    bench.capacity(1_000 * pods)
    for name, queue in (("mine", "q0000"), ("theirs", "q0001")):
        for event in bench.pods(pods):
            facts = replace(event.pod, requests={"cpu": 1000})
            step(
                bench.state,
                replace(
                    event, namespace=queue, uid=f"{name}-{event.uid}", name=f"{name}-{event.name}", pod=facts
                ),
            )
        bench.tick(1000)
        while bench.state.cell.unfinished:
            bench.tick()
    with patch.context() as inside:
        spent = pieces(inside)
        for _ in range(pods):
            bench.tick(1000)
            if not bench.state.cell.unfinished:
                break
    del spent
    return [len([pod for pod in bench.state.pods if pod.evicting])]


def test_taking_back_is_linear_and_no_step_passes_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 5."""
    totals = []
    for pods in (200, 400):
        with monkeypatch.context() as inside:
            spent = pieces(inside)
            assert taken_back(pods, monkeypatch) == [pods // 2]
        assert max(spent) <= PIECES + OVERDRAFT
        totals.append(sum(spent))
    assert totals[1] < 2.5 * totals[0]


def looked_at(shapes: int, patch: pytest.MonkeyPatch, *, strict: bool) -> tuple[int, int]:
    """How many pods are taken back, and how often the first of a shape is asked for meanwhile: the claimant's queue has
    so many shapes in line, and so has one whose claims are too large to be let in."""
    bench = Bench(3)
    configured(bench, reclaim_after_ms=0)
    holder, claimant, other = bench.queues
    ordering = "strictFifo" if strict else "bestEffortFifo"
    for name in (claimant, other):
        bench.queue(name, "", ordering=ordering)
    bench.submit(60, requests=lambda _: {"cpu": 1000}, queues=[holder])
    bench.capacity(60_000)
    bench.submit(shapes, requests=lambda n: {"cpu": 1000 - n}, queues=[claimant], series=1)
    bench.submit(shapes, requests=lambda n: {"cpu": 60_000 - n}, queues=[other], series=2)
    with patch.context() as inside:
        looked = counted(inside, Line, "first_of")
        for _ in range(3):
            bench.tick(1000)
            bench.go_on()
    return len([pod for pod in bench.state.pods if pod.evicting]), len(looked)


@pytest.mark.parametrize("strict", [False, True])
def test_of_many_shapes_in_line_only_the_first_are_looked_at(
    strict: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody walks a line, neither the claimant's nor a bystander's, for each pod that is taken back."""
    few = looked_at(100, monkeypatch, strict=strict)
    many = looked_at(800, monkeypatch, strict=strict)
    assert min(few[0], many[0]) >= 20
    assert many[1] < 2 * few[1] + 8 * 800


def test_few_of_many_sizes_are_compared_for_each_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody walks a queue because each of its pods asks for something else."""
    compared = []
    for pods in (200, 1_000):
        bench = Bench(2)
        configured(bench, reclaim_after_ms=0)
        victim, claimant = bench.queues
        bench.submit(pods, requests=lambda n: {"cpu": 1000 + n}, queues=[victim])
        bench.capacity(sum(1000 + n for n in range(pods)))
        bench.submit(20, requests=lambda _: {"cpu": 5_000}, queues=[claimant], series=1)
        with monkeypatch.context() as inside:
            parts = counted(inside, Bound, "part")
            for _ in range(3):
                bench.tick(1000)
                bench.go_on()
            compared.append(len(parts))
        assert len([pod for pod in bench.state.pods if pod.evicting]) >= 20
    assert compared[1] < 1.3 * compared[0]


def test_queues_that_give_nothing_are_not_looked_at_for_each_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose reclaim is off, and who has run for too short a time: they are far above what they deserve."""
    asked = []
    for closed in (40, 400):
        bench = Bench(closed + 2)
        configured(bench, reclaim_after_ms=0)
        rich, poor, *others = bench.queues
        bench.queue(rich, "", weight=closed)
        bench.queue(poor, "", weight=2 * closed)
        for number, name in enumerate(others):
            apart = {"reclaim": False} if number % 2 else {"minimum_run_ms": 10**9}
            bench.queue(name, "", **apart)
        bench.submit(closed, requests=lambda _: {"cpu": 20_000}, queues=others)
        bench.submit(40, requests=lambda _: {"cpu": 1000}, queues=[rich], series=1)
        bench.capacity(20_000 * closed + 40_000)
        bench.submit(20, requests=lambda _: {"cpu": 1000}, queues=[poor], series=2)
        with monkeypatch.context() as inside:
            calls = counted(inside, Move, "_may_take_from")
            bench.tick(1000)
            bench.go_on()
            asked.append(len(calls))
        evicted = [pod.queue for pod in bench.state.pods if pod.evicting]
        assert evicted == [rich] * len(evicted)
        assert len(evicted) >= 10
    assert asked[1] <= asked[0] + 8


@pytest.mark.parametrize("cpu", [10_000, 39_300])
def test_shedding_goes_on_with_the_next_records(cpu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all of a budget is spent in vain on a rest that is smaller than any pod."""
    monkeypatch.setattr(Budget.__init__, "__defaults__", (40,))
    bench = Bench(40)
    bench.capacity(40_000)
    for event in bench.pods(80):
        step(bench.state, replace(event, pod=replace(event.pod, requests={"cpu": 500})))
    bench.tick(1000)
    bench.go_on()
    assert bench.state.forest.root.usage[("bench", "all", "cpu")] == 40_000
    bench.see(NodeEvent, "node", node=NodeFacts(allocatable={"cpu": cpu}))
    for _ in range(80):
        if not bench.state.cell.unfinished:
            break
        bench.tick()
    held = bench.state.forest.root.usage[("bench", "all", "cpu")]
    assert (bool(bench.state.cell.unfinished), cpu - 500 < held <= cpu) == (False, True), held


def reachable(bench: Bench) -> int:
    seen: set[int] = set()
    found: list[Any] = [bench.state]
    while found:
        each = found.pop()
        if id(each) not in seen and not isinstance(each, type | type(gc)):
            seen.add(id(each))
            found += [other for other in gc.get_referents(each) if gc.is_tracked(other)]
    return len(seen)


def test_pods_that_came_and_went_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 15: counted by all objects that the state still holds."""
    monkeypatch.setattr(heaps, "_STALE_MAX", 2)  # heaps are made anew now and then
    bench = Bench(3)
    bench.capacity(4_000)
    sizes = []
    for number in range(3):
        for event in bench.pods(300):
            lived = replace(event, uid=f"{number}-{event.uid}", more=False)
            step(bench.state, lived)
            facts = replace(lived.pod, gated=False, phase="Succeeded")
            bench.see(PodEvent, lived.name, uid=lived.uid, namespace=lived.namespace, pod=facts)
            gone = replace(
                lived, change="DELETED", resource_version=bench._version + 1, pod=facts, time_ms=bench.now_ms
            )
            bench._version += 1
            step(bench.state, gone)
            bench.state.take_changes()
        bench.tick(4 * 3_600_000)
        bench.tick(1000)
        bench.state.take_changes()
        gc.collect()
        sizes.append(reachable(bench))
    assert not list(bench.state.pods)
    assert sizes[2] - sizes[1] < 100, sizes


def test_capacity_that_is_lost_is_no_new_ground() -> None:
    """Finding 18: who lost pods pushes nobody out because a node shrank."""
    bench = Bench(1)
    bench.capacity(8_000)
    before = bench.state.cell.grounds
    for cpu in (5, 6):
        step(
            bench.state,
            UnmanagedEvent(pool="all", pods=1, requests={"cpu": cpu}, time_ms=bench.now_ms, cluster="bench"),
        )
    bench.capacity(7_000)
    assert bench.state.cell.grounds == before
    bench.capacity(9_000)
    assert bench.state.cell.grounds == before + 1


def full(queues: int) -> Bench:
    bench = Bench(queues)
    bench.capacity(10_000 * queues)
    for event in bench.pods(4 * queues):
        step(bench.state, event)
    bench.tick(1000)
    bench.capacity(sum(pod.facts.requests["cpu"] for pod in bench.state.pods))
    for event in bench.pods(400):
        waiting = replace(event, namespace=bench.queues[int(event.uid[:8]) % 10], uid=f"w-{event.uid}")
        step(bench.state, replace(waiting, name=f"w-{event.name}"))
    for _ in range(3):
        bench.tick(1000)
    return bench


@pytest.mark.parametrize(
    ("owner", "name"), [(Branch, "measure"), (Fits, "open_spot"), (Forest, "_take_turn")]
)
def test_a_pod_that_ends_costs_the_same_among_many_queues(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Finding 19: nothing walks all queues because one pod ended; ten of them wait."""
    calls = []
    for queues in (30, 300):
        bench = full(queues)
        first, held = [pod for pod in bench.state.pods if pod.holds][20:22]
        bench.finish(first)
        with monkeypatch.context() as inside:
            made = counted(inside, owner, name)
            bench.finish(held)
            calls.append(len(made))
    assert calls[1] <= calls[0] + 8


@pytest.mark.parametrize("fan_out", [0, 10])
def test_who_does_not_fit_is_not_looked_at_again_because_one_pod_ended(
    fan_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every queue waits, with pods of four sizes, and one has reached its limit with the smallest."""
    bench = Bench(100, fan_out=fan_out)
    bench.queue("q0001", "p0000" if fan_out else "", limit={"cpu": "1"})
    for event in bench.pods(2_000):
        step(bench.state, event)
    for event in bench.pods(5, requests=lambda _: {"cpu": 100}, queues=["q0001"], series=1):
        step(bench.state, event)
    bench.capacity(500_000)
    bench.tick(1000)
    assert len([leaf for leaf in bench.state.forest.leaves.values() if len(leaf.line)]) == 100
    held = [pod for pod in bench.state.pods if pod.holds and pod.queue != "q0001"][:20]
    tried = counted(monkeypatch, Fits, "open_spot")
    for pod in held:
        bench.finish(pod)
    assert len([pod for pod in bench.state.pods if pod.holds]) >= 380
    assert len(tried) < 8 * len(held)


def test_a_turn_is_taken_without_looking_at_each_of_many_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are served as before: by place, and the deserved first."""
    bench = Bench(2)
    bench.capacity(10)
    bench.submit(400, requests=lambda number: {"cpu": 1000 + number})
    bench.tick(1000)
    looked = counted(monkeypatch, Forest, "_class_of_shape")
    found = bench.capacity(500_000)
    assert [decision.uid[:8] for decision in found] == [f"{number:08}" for number in range(400)]  # type: ignore[attr-defined]
    assert len(looked) < 16 * 400


def test_a_search_that_found_nobody_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 19: with many claimants and no victim a tick tries once, and not again until something changes."""
    bench = full(50)
    configured(bench, reclaim_after_ms=0)
    for _ in range(30):
        bench.tick(1000)
    tried = counted(monkeypatch, Move, "find")
    bench.tick(0)
    bench.tick(0)
    assert tried == []


def test_one_of_many_shapes_that_arrives_tries_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 19: others that do not fit are asleep."""
    bench = Bench(1)
    bench.capacity(10)
    for number, event in enumerate(bench.pods(400)):
        step(bench.state, replace(event, pod=replace(event.pod, requests={"cpu": 1000 + number})))
    bench.tick(1000)
    tried = counted(monkeypatch, Fits, "open_spot")
    [event] = bench.pods(1)
    step(bench.state, replace(event, uid="one", name="one", more=False))
    assert len(tried) <= 3


def test_a_nodes_change_places_those_anew_that_it_concerns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Finding 19: a node that shrinks by one changes nothing for selectors that it does not match."""
    bench = Bench(1)
    for number in range(50):
        facts = NodeFacts(allocatable={"cpu": 8000}, labels={"zone": f"z{number}"})
        bench.see(NodeEvent, f"n{number}", node=facts, more=True)
    for number, event in enumerate(bench.pods(50)):
        selector = {"zone": f"z{number}"}
        step(
            bench.state,
            replace(event, pod=replace(event.pod, requests={"cpu": 9000}, node_selector=selector)),
        )
    bench.tick(1000)
    placed = counted(monkeypatch, Shapes, "_place_anew")
    bench.see(NodeEvent, "n0", node=NodeFacts(allocatable={"cpu": 9500}, labels={"zone": "z0"}))
    bench.tick(1000)
    assert len(placed) <= 2
