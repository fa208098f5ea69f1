"""What must hold of the core on every history: each property takes the content of a scenario and plays it.

The same properties are asked of random histories (test_core.py), by the soak (soak.py), and of the histories
that once failed (tests/regressions).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, TypeAlias

import pytest
from fakes.batches import one_by_one
from histories import FlakySimulation, Simulation
from reference.potential import Holding, Potential, rank
from reference.reference import Reference
from sluice.decisions import Report, ReportWorkload
from sluice.events import ObjectEvent, TickEvent
from sluice_scheduler.core import State, repeat_statuses_since
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.passes.move import Move
from sluice_scheduler.core.passes.potential import came_of
from sluice_scheduler.core.reports import report, shown
from sluice_scheduler.core.reports.explain import why
from sluice_scheduler.core.state.members import priority_of, workload_of
from sluice_scheduler.core.state.units import Unit, in_order_of_protection
from sluice_scheduler.core.stored.accounts import Workload
from sluice_scheduler.simulator.cell import CLUSTER, SimulatedCell, outcome
from sluice_scheduler.simulator.scenario import Scenario

Content: TypeAlias = dict[str, Any]


def worlds(content: Content) -> type[Simulation]:
    """In some histories not all that is decided can be done."""
    return FlakySimulation if content.get("flaky") else Simulation


def scenario_of(content: Content) -> Scenario:
    return Scenario.model_validate(
        {name: value for name, value in content.items() if name not in ("flaky", "fault")}
    )


def simulation_of(content: Content, **more: Any) -> Simulation:
    return worlds(content)(scenario_of(content), **more)


# ---- after each step


def check_books(cell: SimulatedCell) -> None:
    """Conservation, capacity and limits: what is held is what accounts say, and is never above a bound,
    unless the bound was lowered: then what is over is on its way out, or could not be evicted just now."""
    state = cell.state
    reference = Reference(state)
    forest = state.forest
    for name, leaf in reference.leaves.items():
        branch = forest.leaves[name]
        held = {key: amount for key, amount in leaf.usage.items() if amount}
        assert {dim[1:]: amount for dim, amount in branch.usage.items()} == held
        assert sorted(claim.key for claim in branch.line) == sorted(claim.key for claim in leaf.claims)
    undone = state.cell.unfinished or state.pass_due
    if undone or any(pod.holds and pod.retry_ms for pod in state.pods):
        return
    for node in {id(node): node for leaf in reference.leaves.values() for node in leaf.path}.values():
        for keys, most in reference.bounds(node, "limit"):
            kept = sum(node.kept.get(key, 0) for key in keys)
            assert sum(node.usage.get(key, 0) for key in keys) <= max(most, kept)


def check_derived(cell: SimulatedCell) -> None:
    """What is kept up to date is what comes of the entities alone."""
    state = cell.state
    tables = state._tables.values()
    anew = State(state.policies, deepcopy([entity for table in tables for entity in table]))
    state.forest.settle()
    for what in DERIVED:
        found, wanted = what(state), what(anew)
        assert found == wanted, (what.__name__, *differences(found, wanted))


def check_answers(cell: SimulatedCell) -> None:
    """What a status says and what `sluice explain` says are one answer."""
    tables = cell.state._tables.values()
    state = State(cell.state.policies, deepcopy([entity for table in tables for entity in table]))
    repeat_statuses_since(state, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shown, "WAITING_TOLD_MAX", len(state.workloads))
        shown.show(state)
    for told in state.take_decisions():
        if not isinstance(told, ReportWorkload):
            continue
        answer = why(state, f"{Workload.kind}/{told.cluster}/{told.uid}")
        reasons = {each.type: each.reason for each in told.conditions}
        assert (told.position, told.eta_ms) == (answer.position, answer.eta_ms), (told, answer)
        assert told.why in answer.sentence, (told, answer)
        assert reasons["Granted"] == (answer.reason if told.why else "AsExpected"), (told, answer)
        assert bool(told.why) is (answer.reason not in ("Admitted", "Ended")), (told, answer)


def differences(found: Any, wanted: Any) -> list[object]:
    if not isinstance(found, dict):
        return [found, wanted]
    keys = sorted({*found, *wanted}, key=str)
    return [(key, found.get(key), wanted.get(key)) for key in keys if found.get(key) != wanted.get(key)]


def branches(state: State) -> dict[str, Branch]:
    return {f"{branch.name}{'/' * branch.is_implicit}": branch for branch in state.forest.all_branches()}


def amounts(state: State) -> object:
    return {
        name: (
            branch.usage,
            {dim: amount for dim, amount in branch.leaving.items() if amount},
            branch.held,
            branch.deserved,
            branch.share,
            {group: wanted for group, wanted in branch.wants.items() if any(wanted)},
        )
        for name, branch in branches(state).items()
    }


def rooms(state: State) -> object:
    """Of what there is: a bound on what there was may stand until the capacity changes again."""
    both = {**branches(state), "": state.forest.root}
    there = {dim for dim, amount in state.forest.capacity.items() if amount}
    return {
        name: sorted(
            (sorted(there.intersection(room.bound.dims)), room.bound.amount, room.left, room.kept)
            for room in branch.rooms
            if not there.isdisjoint(room.bound.dims)
        )
        for name, branch in both.items()
    }


def lines(state: State) -> object:
    return {
        claim.key: (claim.line, claim.place, claim.shape.parts, claim.gang)
        for claim in state.forest.claims.values()
    }


def spots(state: State) -> object:
    return {
        shape.parts: ([spot.pools for spot in shape.spots], shape.scattered, shape.wants)
        for shape in state.forest.shapes.values()
    }


def pressure(state: State) -> object:
    return {dim: amount for dim, amount in state.forest.pressure.items() if amount}


def units(state: State) -> object:
    return {
        queue: (each.growth, each.gangs) for queue, each in state.units.items() if each.growth or each.gangs
    }


def indexes(state: State) -> object:
    return (
        state.assumed,
        state.evicting,
        {queue: keys for queue, keys in state.holders.items() if keys},
        {key: sorted(alike) for key, alike in state.promised.items()},
        state.retries,
        {key: until_ms for key, until_ms in state.pauses.items() if key in state.workloads},
        state.bypassed,
        state.misdirected,
        list(state.endings),
        state.endings.let_in,
        {leaf.name: [claim.key for claim in leaf.line.brief] for leaf in state.forest.leaves.values()},
    )


DERIVED: Final = (amounts, rooms, lines, spots, pressure, units, indexes)


# ---- properties


def books_agree(content: Content) -> None:
    simulation_of(content, after_feed=check_books).run()


def state_is_derived(content: Content) -> None:
    simulation_of(content, after_feed=check_derived).run()


def statuses_and_explain_agree(content: Content) -> None:
    simulation_of(content, after_feed=check_answers).run()


def choices_are_the_references(content: Content) -> None:
    if content["policy"] != "drf":
        return
    fast_next = Forest.next

    def compared(forest: Forest) -> tuple[Branch, Claim, Spot] | None:
        found = fast_next(forest)
        chosen = (found[1].key, found[2].pools) if found is not None else None
        assert chosen == Reference(simulation.cell.state).next_claim()
        return found

    simulation = simulation_of(content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Forest, "next", compared)
        simulation.run()


def nothing_is_decided_without_news(content: Content) -> None:
    simulation = Simulation(scenario_of(content))
    simulation.run()
    assert [simulation.cell.more_rounds() for _ in range(5)] == [[]] * 5


def time_alone_changes_nothing_where_the_past_counts(content: Content) -> None:
    """Use in the past decays and turns change, but who doesn't fit does not fit on his turn either."""
    long = {"tenure": "1000h", "patience": "1000h", "until": 30}
    simulation = Simulation(scenario_of({**content, **long}), policy="usage-drf")
    simulation.run()
    cell = simulation.cell
    for _ in range(5):
        tick = TickEvent(time_ms=cell.state.cell.time_ms + 60_000, cluster=CLUSTER)
        cell.state.pass_due = True
        told = cell.feed([tick])
        assert all(isinstance(each, Report) for each in told), told


def takeover_decides_the_same(content: Content) -> None:
    """Statuses aside: it looks through all of them, and may tell one a tick earlier."""
    calm = simulation_of(content).run()
    crashing = simulation_of(content, after_feed=SimulatedCell.restart).run()
    assert crashing.lines == calm.lines


def batches_leave_no_trace(content: Content) -> None:
    whole, apart = Simulation(scenario_of(content)), Simulation(scenario_of(content))
    whole.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", one_by_one)
        apart.run()
    assert apart.decided == whole.decided


def repetition_leaves_no_trace(content: Content) -> None:
    calm = Simulation(scenario_of(content)).run()
    feed, rng = SimulatedCell.feed, random.Random(0)

    def stuttering(cell: SimulatedCell, events: list[Any]) -> list[Any]:
        decided = feed(cell, events)
        seen = [event for event in events if isinstance(event, ObjectEvent)]
        return decided + (feed(cell, [rng.choice(seen)]) if seen else [])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", stuttering)
        assert Simulation(scenario_of(content)).run().lines == calm.lines


def statuses_leave_no_trace(content: Content) -> None:
    """Nothing is decided by them, be they told late, again, or of what nobody finds any more."""
    silent, talking = simulation_of(content), simulation_of(content)
    silent.run()
    feed, rng = SimulatedCell.feed, random.Random(0)
    answers: list[Any] = []

    def talk(cell: SimulatedCell, events: list[Any]) -> list[Any]:
        cell.state.tells = True
        if rng.random() < 0.2:
            repeat_statuses_since(cell.state, 0)
        decided = feed(cell, [*answers, *events])
        gone = [each for each in decided if isinstance(each, Report) and rng.random() < 0.2]
        answers[:] = [replace(outcome(each, 0), result="Gone", uid=each.uid) for each in gone]
        return [each for each in decided if each.seq]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", talk)
        patch.setattr(report, "TOLD_MAX", 1)
        patch.setattr(shown, "WAITING_TOLD_MAX", 1)
        talking.run()
    assert talking.decided == silent.decided


def only_a_lowered_bound_is_passed(content: Content) -> None:
    """Of what is held nothing is too much unless capacity or a limit fell: not though applications change their minds,
    lose pods, or can't be given what was decided."""
    simulation = simulation_of({**content, "events": [e for e in content["events"] if not _lowers(e)]})
    simulation.run()
    shed = [each for each in simulation.decided if getattr(each, "reason", "") == "Overcommitted"]
    assert not shed, shed


def _lowers(happening: dict[str, Any]) -> bool:
    return "setPool" in happening or "setQueue" in happening


def nobody_pending_fits(content: Content) -> None:
    def check(cell: SimulatedCell) -> None:
        assert cell.state.cell.unfinished or Reference(cell.state).next_claim() is None

    simulation_of(content, after_feed=check).run()


def reclaims_raise_the_potential(content: Content) -> None:
    """And a claim takes the place among its queue's units for which the move was judged."""
    carry_out = Move.carry_out
    judged_as: dict[str, tuple[bool, int]] = {}

    def judged(move: Move) -> None:
        judge(simulation.cell.state, move)
        judged_as[move._claim.key] = came_of(simulation.cell.state, move._claim, move._spot.cost).rank
        carry_out(move)

    def check(cell: SimulatedCell) -> None:
        for unit in all_units(cell.state) if judged_as else ():
            for key in keys_of(unit) & judged_as.keys():
                assert judged_as.pop(key) == (unit.growth, -unit.priority), key

    simulation = Simulation(scenario_of(content), after_feed=check)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Move, "carry_out", judged)
        simulation.run()


def judge(state: State, move: Move) -> str:
    """What kind of move it was, judged from the accounts by the slow and obvious potential."""
    claim, spot, taken = move._claim, move._spot, move.taken
    inside = move._inside
    for unit in taken:
        facts = unit.leaf.queue.facts
        assert state.now_ms - unit.since_ms >= facts.minimum_run_ms
        assert facts.reclaim or inside
    if inside:  # the queue's priorities, highest first, rise: who comes is above all who go
        assert all(unit.leaf is move._leaf and unit.priority < claim.priority for unit in taken)
        return "preemption"
    if not taken:
        return "no victim"
    reference = Reference(state)
    keyed = [(holding_of(state, unit, number), keys_of(unit)) for number, unit in enumerate(all_units(state))]
    gone = {key for unit in taken for key in keys_of(unit)}
    promised = [
        Holding(
            promise.queue,
            {(pool, resource): amount for _, pool, resource, amount in promise.cost},
            0,
            (*rank(state, promise.claim, priority_of(state, promise.claim)), 1 << 39),
            state.now_ms,
            1 << 39,
        )
        for promise in state.promises
    ]
    let_in = move._let_in()
    for leaf, _, cost in let_in:
        move._paper.move(leaf, cost, -1)
    came = [(move._leaf, claim, spot.cost), *let_in]
    added = [
        Holding(
            leaf.name,
            {dim[1:]: amount for dim, amount in cost},
            each.shape.pods,
            (*rank(state, each.key, each.priority), (1 << 40) + number),
            state.now_ms,
            (1 << 40) + number,
        )
        for number, (leaf, each, cost) in enumerate(came)
    ]
    potential = Potential(reference, [*(holding for holding, _ in keyed), *promised])
    lost = [holding for holding, keys in keyed if not gone.isdisjoint(keys)]
    before, after = potential.value(), potential.value(lost, added)
    assert before.rises_to(after), (before, after)
    if not any(branch.is_covered(spot.cost) for branch in move._leaf.path):
        for unit in taken:
            assert not robs_poorer(
                reference, potential, move._leaf.name, unit.leaf.name, lost=lost, came=added[:1]
            )
    return "fairer"


def robs_poorer(
    reference: Reference,
    potential: Potential,
    mine: str,
    theirs: str,
    *,
    lost: list[Holding],
    came: list[Holding],
) -> bool:
    """Whether the claimant's branch has afterwards as much as the victim's had, though it deserves less or the
    victim's did not have more than it deserves."""
    path = reference.leaves[mine].path
    above = {id(node) for node in path}
    victim = next(node for node in reference.leaves[theirs].path if id(node.parent) in above)
    claimant = next(node for node in path if node.parent is victim.parent)
    if potential.share(claimant, lost, came) < potential.share(victim):
        return False
    kinds = reference.kinds(came[0].amounts)
    is_owed = all(potential.surplus(claimant, kind, lost, came) <= reference.slack(kind) for kind in kinds)
    has_more = any(potential.surplus(victim, kind) > reference.slack(kind) for kind in kinds)
    return not (is_owed and has_more)


def all_units(state: State) -> list[Unit]:
    found = []
    for leaf in state.forest.leaves.values():
        for unit in in_order_of_protection(state, leaf):
            found.append(without_growth(unit) if unit.is_whole else unit)
    return found


def without_growth(whole: Unit) -> Unit:
    assert whole.application is not None
    grown = {key for book in whole.application.books.values() for key in book.units}
    sums = dict(whole.cost)
    for pod in whole.pods:
        if pod.key in grown:
            for resource, amount in pod.facts.requests.items():
                if amount:
                    sums[(pod.cluster, pod.pool, resource)] -= amount
    pods = [pod for pod in whole.pods if pod.key not in grown]
    cost = tuple((dim, amount) for dim, amount in sums.items() if amount)
    return Unit(whole.leaf, pods, cost, whole.priority, whole.admitted_ms, whole.application, growth=False)


def holding_of(state: State, unit: Unit, number: int) -> Holding:
    amounts = {dim[1:]: amount for dim, amount in unit.cost}
    order = (unit.growth, -unit.priority, number)
    return Holding(unit.leaf.name, amounts, len(unit.pods), order, *unit.age(), unit.since_ms)


def keys_of(unit: Unit) -> set[str]:
    keys = {pod.key for pod in unit.pods}
    if unit.is_whole and unit.application is not None:
        keys.add(unit.application.claim_key)
    return keys


def who_lost_pods_pushes_nobody(content: Content) -> None:
    """Told from the scenario and the evictions alone: since it lost pods no pool and no queue was edited, so
    a workload takes nothing from anybody, but for what a guarantee covers, or after a tenure."""
    scenario = scenario_of(content)
    edits = [event.at for event in scenario.events if event.set_queue or event.set_pool]
    lost_ms: dict[str, int] = {}
    carry_out = Move.carry_out

    def watched(move: Move) -> None:
        state = simulation.cell.state
        now_ms = state.cell.time_ms
        claimant = workload_of(state, move._claim.key)
        if claimant is not None and claimant.key in lost_ms and not move._inside:
            since_ms = lost_ms[claimant.key]
            edited = any(since_ms < at <= now_ms for at in edits)
            covered = any(branch.is_covered(move._spot.cost) for branch in move._leaf.path)
            assert edited or covered or now_ms - since_ms >= scenario.tenure
        for unit in move.taken:
            for pod in unit.pods:
                victim = workload_of(state, pod.key)
                if victim is not None:
                    lost_ms[victim.key] = now_ms
        carry_out(move)

    simulation = Simulation(scenario)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Move, "carry_out", watched)
        simulation.run()


PROPERTIES: Final[tuple[Callable[[Content], None], ...]] = (
    books_agree,
    state_is_derived,
    statuses_and_explain_agree,
    choices_are_the_references,
    nobody_pending_fits,
    nothing_is_decided_without_news,
    takeover_decides_the_same,
    batches_leave_no_trace,
    statuses_leave_no_trace,
    repetition_leaves_no_trace,
    time_alone_changes_nothing_where_the_past_counts,
    reclaims_raise_the_potential,
    who_lost_pods_pushes_nobody,
)
