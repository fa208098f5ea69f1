"""What must hold of the core on random histories: trees, pools, gangs, growth, reclaim, node loss, edits.

Hypothesis prints the falsifying example and its seed (`@reproduce_failure`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from fakes.batches import one_by_one
from histories import SETTINGS, FlakySimulation, Simulation, comebacks, contents, scenarios
from hypothesis import given, note, settings
from hypothesis import strategies as st
from reference.reference import Reference
from sluice.decisions import Report
from sluice.events import ObjectEvent, TickEvent
from sluice_scheduler.core.fairness.branch import Branch
from sluice_scheduler.core.fairness.claims import Claim, Spot
from sluice_scheduler.core.fairness.forest import Forest
from sluice_scheduler.core.passes.reclaim import Move
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.simulator.cell import CLUSTER, SimulatedCell
from sluice_scheduler.simulator.scenario import Scenario

POLICIES: Final = ("drf", "usage-drf", "fifo", "priority")
World: TypeAlias = type[Simulation]
WORLDS: Final = st.sampled_from([Simulation, FlakySimulation])


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
    if any(pod.holds and pod.retry_ms for pod in state.pods):
        return
    for node in {id(node): node for leaf in reference.leaves.values() for node in leaf.path}.values():
        for keys, most in reference.bounds(node, "limit"):
            assert sum(node.usage.get(key, 0) for key in keys) <= most


@SETTINGS
@given(WORLDS, scenarios(policies=POLICIES))
def test_books_agree_with_accounts_and_hold_no_more_than_there_is(world: World, scenario: Scenario) -> None:
    world(scenario, after_feed=check_books).run()


@SETTINGS
@given(WORLDS, scenarios())
def test_every_choice_is_the_references(world: World, scenario: Scenario) -> None:
    fast_next = Forest.next

    def compared(forest: Forest) -> tuple[Branch, Claim, Spot] | None:
        found = fast_next(forest)
        chosen = (found[1].key, found[2].pools) if found is not None else None
        assert chosen == Reference(simulation.cell.state).next_claim()
        return found

    simulation = world(scenario)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Forest, "next", compared)
        simulation.run()


@SETTINGS
@given(scenarios(policies=POLICIES))
def test_nothing_is_decided_without_news(scenario: Scenario) -> None:
    simulation = Simulation(scenario)
    simulation.run()
    assert [simulation.cell.more_rounds() for _ in range(5)] == [[]] * 5


@SETTINGS
@given(scenarios())
def test_time_alone_changes_nothing_under_a_policy_that_looks_back(scenario: Scenario) -> None:
    """Use in the past decays and turns change, but who doesn't fit does not fit on his turn either."""
    simulation = Simulation(scenario, policy="usage-drf")
    simulation.run()
    cell = simulation.cell
    for _ in range(5):
        tick = TickEvent(time_ms=cell.state.cell.time_ms + 1_800_000, cluster=CLUSTER)
        cell.state.pass_due = True
        assert all(isinstance(each, Report) for each in cell.feed([tick]))


@SETTINGS
@given(WORLDS, scenarios(policies=POLICIES))
def test_a_worker_that_takes_over_anywhere_decides_the_same(world: World, scenario: Scenario) -> None:
    """Statuses aside: it looks through all of them, and may tell one a tick earlier."""
    calm = world(scenario).run()
    crashing = world(scenario, after_feed=SimulatedCell.restart).run()
    assert crashing.lines == calm.lines


@SETTINGS
@given(st.one_of(scenarios(policies=POLICIES, busy=True), comebacks()))
def test_how_records_were_batched_leaves_no_trace(scenario: Scenario) -> None:
    whole, apart = Simulation(scenario), Simulation(scenario)
    whole.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", one_by_one)
        apart.run()
    assert apart.decided == whole.decided


def test_the_order_of_hashes_leaves_no_trace() -> None:
    """Histories of chance, decided by processes that hash strings in different ways."""
    histories: list[dict[str, Any]] = []

    @settings(SETTINGS, max_examples=settings.default.max_examples // 3, database=None)
    @given(contents(policies=POLICIES, busy=True))
    def collect(content: dict[str, Any]) -> None:
        histories.append(content)

    collect()
    play = (
        f"import json, sys; sys.path[:0] = {[str(Path(__file__).parent)]!r}; "
        "from histories import Simulation; "
        "from sluice_scheduler.simulator.scenario import Scenario; "
        "simulations = [Simulation(Scenario.model_validate(each)) for each in json.load(sys.stdin)]; "
        "[(each.run(), print(each.decided)) for each in simulations]"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", play],
            input=json.dumps(histories).encode(),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "31337")
    ]
    assert told[0].count(b"Admit(") > len(histories)
    assert told[0] == told[1] == told[2]


@SETTINGS
@given(scenarios(policies=POLICIES), st.randoms(use_true_random=False))
def test_what_the_log_repeats_changes_nothing(scenario: Scenario, rng: Any) -> None:
    calm = Simulation(scenario).run()
    feed = SimulatedCell.feed

    def stuttering(cell: SimulatedCell, events: list[Any]) -> list[Any]:
        decided = feed(cell, events)
        seen = [event for event in events if isinstance(event, ObjectEvent)]
        return decided + (feed(cell, [rng.choice(seen)]) if seen else [])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "feed", stuttering)
        assert Simulation(scenario).run().lines == calm.lines


@SETTINGS
@given(scenarios(busy=True))
def test_a_reclaim_raises_the_potential_and_robs_nobody_poorer(scenario: Scenario) -> None:
    carry_out = Move.carry_out

    def judged(move: Move) -> None:
        note(judge(simulation.cell, move))
        carry_out(move)

    simulation = Simulation(scenario)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Move, "carry_out", judged)
        simulation.run()


def judge(cell: SimulatedCell, move: Move) -> str:
    """What kind of move it was, judged from the accounts by the slow and obvious potential."""
    claim, option, taken = move._claim, move._option, move._taken
    inside = all(unit.leaf is move._leaf for unit in taken)
    for unit in taken:
        facts = unit.leaf.queue.facts
        ran_ms = [cell.state.cell.time_ms - pod.admitted_ms for pod in unit.pods]
        assert all(ran >= facts.minimum_run_ms for ran in ran_ms)
        assert facts.reclaim or inside
    if inside:  # the queue's priorities, highest first, rise: who comes is above all who go
        assert all(unit.priority < claim.priority for unit in taken)
        return "preemption"
    lost = [(unit.leaf.name, {dim[1:]: amount for dim, amount in unit.cost}) for unit in taken]
    gained = {dim[1:]: amount for dim, amount in option.cost}
    move = Move(Reference(cell.state), to=move._leaf.name, gained=gained, lost=lost)
    assert not move.robs_a_guarantee()
    if any(branch.is_covered(option.cost) for branch in move._leaf.path):
        return "owed by a guarantee"
    assert not move.robs_somebody_poorer()
    if move.mends_a_guarantee():
        return "mends a guarantee"
    before, after = move.levels(after=False), move.levels(after=True)
    pods = sum(part.pods for part in claim.shape.parts) - sum(len(unit.pods) for unit in taken)
    assert after > before or (after == before and pods > 0)
    return "fairer"


@SETTINGS
@given(WORLDS, scenarios(policies=POLICIES))
def test_no_pending_claim_fits_when_the_pass_ends(world: World, scenario: Scenario) -> None:
    def nobody_fits(cell: SimulatedCell) -> None:
        assert cell.state.cell.unfinished or Reference(cell.state).next_claim() is None

    world(scenario, after_feed=nobody_fits).run()


@SETTINGS
@given(scenarios(deep=False, edits=False, groups=False))
def test_without_gangs_nobody_envies_by_more_than_his_largest_task(scenario: Scenario) -> None:
    """Flat, equal weights, no limits or guarantees, every pod a growth claim of one resource: at the end
    nobody who waits for it could take a pod from a queue that would still have as much as he has."""
    plain = scenario.model_copy(deep=True)
    for queue in plain.queues:
        object.__setattr__(queue, "weight", 1)
        for name in ("limit", "guaranteed"):
            object.__setattr__(queue, name, {})
        object.__setattr__(queue, "ordering", "bestEffortFifo")
        object.__setattr__(queue, "reclaim", type(queue.reclaim)())
    for event in plain.events:
        if event.submit:
            for pod_set in event.submit.pod_sets:
                pod_set.min_count = 0
                pod_set.requests = {"cpu": "1"}
            event.submit.priority = 0
    simulation = Simulation(plain)
    simulation.run()
    forest = simulation.cell.state.forest
    total = sum(amount for dim, amount in forest.capacity.items() if dim[2] == "cpu")
    if total and len(plain.pools) == 1:
        task = 1000 / total
        shares = {
            name: leaf.usage.get(("sim", "p", "cpu"), 0) / total for name, leaf in forest.leaves.items()
        }
        unbarred = [
            name
            for name, leaf in forest.leaves.items()
            if any(not (w := workload_of(simulation.cell.state, c.key)) or w.barred < 0 for c in leaf.line)
        ]
        for name in unbarred:
            assert max(shares.values()) - shares[name] <= task + 1e-9


@SETTINGS
@given(st.one_of(scenarios(busy=True), comebacks()))
def test_who_lost_pods_pushes_nobody_out_until_there_are_new_grounds(scenario: Scenario) -> None:
    """Told from the scenario and the evictions alone: since it lost pods no pool and no queue was edited, so
    a workload takes nothing from anybody, but for what a guarantee covers."""
    edits = [event.at for event in scenario.events if event.set_queue or event.set_pool]
    lost_ms: dict[str, int] = {}
    carry_out = Move.carry_out

    def watched(move: Move) -> None:
        state = simulation.cell.state
        now_ms = state.cell.time_ms
        claimant = workload_of(state, move._claim.key)
        if claimant is not None and claimant.key in lost_ms:
            edited = any(lost_ms[claimant.key] < at <= now_ms for at in edits)
            covered = any(branch.is_covered(move._spot.cost) for branch in move._leaf.path)
            assert edited or covered
        for unit in move._taken:
            for pod in unit.pods:
                victim = workload_of(state, pod.key)
                if victim is not None:
                    lost_ms[victim.key] = now_ms
        carry_out(move)

    simulation = Simulation(scenario)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Move, "carry_out", watched)
        simulation.run()
