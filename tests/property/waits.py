"""How long who can ever fit waits, and what guarantees and deserved amounts come to in the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from fractions import Fraction
from math import ceil
from typing import Any, Final

import pytest
from histories import Simulation
from hypothesis import strategies as st
from properties import Content, scenario_of
from rest import come_to_rest, victims_of
from sluice.decisions import AdmitWorkload
from sluice_scheduler.core import State
from sluice_scheduler.core.fairness.branch import Branch, below_common
from sluice_scheduler.core.passes.move import Move
from sluice_scheduler.core.stored.entities import Entity
from sluice_scheduler.simulator.cell import SimulatedCell

_CPU: Final = 6
_TENURE_S: Final = 10
_PATIENCE_S: Final = 4
_RUNTIME_S: Final = 3
#: Ticks come each second: of each claim one until it is noticed, and one until it is served.
_TICKS_S: Final = 2


@st.composite
def streams(draw: Any) -> Content:
    """Small claims come for ever; claims of all sizes, some of which can never fit, come among them. All end soon."""
    policy = draw(st.sampled_from(["drf", "fifo", "priority", "usage-drf"]))
    queues = [
        {
            "name": f"q{number}",
            "ordering": draw(st.sampled_from(["bestEffortFifo", "bestEffortFifo", "strictFifo"])),
            "weight": draw(st.sampled_from([1, 1, 3])),
        }
        for number in range(draw(st.integers(2, 4)))
    ]
    strict = {queue["name"] for queue in queues if queue["ordering"] == "strictFifo"}
    events: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 3))):
        queue = draw(st.sampled_from(queues))["name"]
        events.append({"at": 0, "submit": _gang(f"small-{number}", queue, 1, repeat=60, every=0.5)})
    for number in range(draw(st.integers(1, 3))):
        queue = draw(st.sampled_from(queues))["name"]
        size = draw(st.integers(2, _CPU if queue in strict else _CPU + 2))
        at = draw(st.integers(1, 4))
        events.append({"at": at, "submit": _gang(f"large-{number}", queue, size)})
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "policy": policy,
        "tenure": _TENURE_S,
        "patience": _PATIENCE_S,
        "pools": [{"name": "p", "capacity": {"cpu": str(_CPU)}}],
        "queues": [{**queue, "reclaim": {"enabled": False}} for queue in queues],
        "events": sorted(events, key=lambda event: event["at"]),
        "until": 60,
    }


def _gang(name: str, queue: str, size: int, **more: Any) -> dict[str, Any]:
    pods = [{"name": "main", "count": size, "requests": {"cpu": "1"}}]
    return {"name": name, "queue": queue, "podSets": pods, "runtime": _RUNTIME_S, **more}


def who_can_fit_is_served_in_time(content: Content) -> None:
    """ADR 11's bound: tenure + patience + n · r, with n claims that have waited for so long and pods that end within r;
    the next of the same queue counts from when that has had no more than it deserves. It counts from being the first of
    its queue. What is taken back would begin anew, so here nothing is."""
    simulation = Simulation(scenario_of(content))
    simulation.run()
    larges = [event for event in content["events"] if event["submit"]["name"].startswith("large")]
    orderings = {queue["name"]: queue["ordering"] for queue in content["queues"]}
    admitted_ms: dict[str, int] = {}
    for decision in simulation.decided:
        if isinstance(decision, AdmitWorkload):
            admitted_ms.setdefault(decision.name, decision.time_ms)
    for event in larges:
        name, size = event["submit"]["name"], event["submit"]["podSets"][0]["count"]
        if size > _CPU or orderings[event["submit"]["queue"]] == "strictFifo":
            continue
        first_ms = max([event["at"] * 1000, *_admitted_before(content, event, admitted_ms)])
        waited_s = (admitted_ms.get(name, 1 << 40) - first_ms) / 1000
        of_queue = [other for other in larges if other["submit"]["queue"] == event["submit"]["queue"]]
        bound_s = len(of_queue) * (_TENURE_S + _PATIENCE_S) + len(larges) * (_RUNTIME_S + _TICKS_S)
        bound_s += sum(_made_up_for_in_s(content, other) for other in of_queue if other is not event)
        assert waited_s <= bound_s, (name, waited_s, bound_s)


def _made_up_for_in_s(content: Content, large: dict[str, Any]) -> int:
    """After so long its queue has had no more than it deserves, which is its part by weight at the least."""
    weights = {queue["name"]: queue["weight"] for queue in content["queues"]}
    deserved = Fraction(_CPU * weights[large["submit"]["queue"]], sum(weights.values()))
    return ceil(large["submit"]["podSets"][0]["count"] / deserved) * _RUNTIME_S


def _admitted_before(content: Content, large: dict[str, Any], admitted_ms: dict[str, int]) -> Iterator[int]:
    """When the small claims came in that its queue had before it."""
    for event in content["events"]:
        small = event["submit"]
        if small["queue"] == large["submit"]["queue"] and "repeat" in small:
            for number in range(int(large["at"] / small["every"]) + 1):
                yield admitted_ms.get(f"{small['name']}-{number}", 0)


# ---- guarantees


def guarantees_are_met_at_rest(content: Content) -> None:
    """Who is covered by its own guarantee waits only if it would not fit though all went that nobody is guaranteed."""
    simulation = Simulation(scenario_of(content))
    simulation.run()
    if not come_to_rest(simulation):
        return
    state = simulation.cell.state
    for leaf in state.forest.leaves.values():
        for claim in state.forest.firsts(leaf):
            for spot in claim.shape.spots:
                if leaf.guarantees and leaf.is_covered(spot.cost):
                    assert not _could_come(state, leaf, spot.cost), claim.key


def _could_come(state: State, leaf: Branch, cost: Any) -> bool:
    free = {dim: state.forest.capacity[dim] - state.forest.root.usage.get(dim, 0) for dim, _ in cost}
    for victim in victims_of(state):
        theirs = state.forest.leaves[victim.leaf]
        guaranteed = any(branch.guarantees for branch in theirs.path)
        kept = any(each.queue and not each.queue.facts.reclaim for each in theirs.path)
        if theirs is not leaf and not guaranteed and not kept:
            for (pool, resource), amount in victim.amounts.items():
                dim = ("sim", pool, resource)
                if dim in free:
                    free[dim] += amount
    limits = [room for branch in leaf.path[:-1] for room in branch.rooms]
    return not limits and all(free[dim] >= amount for dim, amount in cost)


def what_is_deserved_is_not_taken(content: Content) -> None:
    """Between queues, guarantees aside: a queue's units go while it has more than it deserves of something in them (the
    last may straddle), or for a claim whose queue stays within what it deserves or had less than is left to it."""
    carry_out = Move.carry_out

    def watched(move: Move) -> None:
        if not move._inside and not move._covering_then():
            _check_taken(move)
        carry_out(move)

    simulation = Simulation(scenario_of(content))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Move, "carry_out", watched)
        simulation.run()


def _check_taken(move: Move) -> None:
    kind_of = move._forest.kind_of
    asked = dict(kind_of.cost(move._spot.cost))
    after = {kind: move._leaf.held.get(kind, 0) + amount for kind, amount in asked.items()}
    slack = 64
    is_within = all(amount << 16 <= move._leaf.deserved.get(k, 0) + slack for k, amount in after.items())
    held: dict[Branch, dict[Any, int]] = {}
    for unit in sorted(move.taken, key=lambda unit: sum(amount for _, amount in unit.cost)):
        sums = held.setdefault(unit.leaf, dict(unit.leaf.held))
        kinds = dict(kind_of.cost(unit.cost))
        above = any((sums.get(kind, 0) << 16) > unit.leaf.deserved.get(kind, 0) for kind in kinds)
        mine, theirs = below_common(move._leaf, unit.leaf)
        is_poorer = move._before.share(mine) < move._paper.share(theirs)
        assert above or is_within or is_poorer, (unit.leaf.name, sums, unit.leaf.deserved, move._leaf.name)
        for kind, amount in kinds.items():
            sums[kind] = sums.get(kind, 0) - amount


# ---- an older ledger


def an_older_ledger_steps_to_the_same(content: Content) -> None:
    """The ledger comes back as it was some records ago, and what lies between is read again: the same decisions."""
    feed: Callable[..., Any] = SimulatedCell.feed
    kept: list[tuple[list[Entity], list[Any]]] = []

    def rolled_back(cell: SimulatedCell, events: list[Any]) -> list[Any]:
        tables = cell.state._tables.values()
        kept.append((deepcopy([entity for table in tables for entity in table]), list(events)))
        decided = feed(cell, events)
        del kept[:-3]
        again = cell._begun_with(deepcopy(kept[0][0]))
        cell_state, cell.state = cell.state, again
        lines = [step_all(again, replayed) for _, replayed in kept]
        found = sorted((entity.key, repr(entity)) for table in again._tables.values() for entity in table)
        wanted = sorted((entity.key, repr(entity)) for table in tables for entity in table)
        cell.state = cell_state
        assert _told(lines[-1]) == _told(decided)
        assert found == wanted
        return list(decided)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", rolled_back)
        Simulation(scenario_of(content)).run()


def step_all(state: State, events: list[Any]) -> list[Any]:
    from dataclasses import replace

    from sluice_scheduler.core import step

    last = len(events) - 1
    return [each for at, event in enumerate(events) for each in step(state, replace(event, more=at < last))]


def _told(decided: list[Any]) -> list[tuple[Any, ...]]:
    return [(each.type, each.seq, getattr(each, "uid", ""), each.sentence) for each in decided]
