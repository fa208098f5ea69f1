"""What must hold whatever raises inside a step, and wherever: everybody else is served."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from fakes.faults import REPORTS, Fault, GuardedCell
from histories import Simulation
from properties import DERIVED, Content, check_books, check_derived, simulation_of
from reference.reference import Reference
from sluice.decisions import CreateWorkload, Decision, Notice, Report
from sluice.events import SetAsideEvent, TickEvent, WorkloadEvent
from sluice_scheduler.core import State
from sluice_scheduler.core.state.members import application_by_claim, part_of_application
from sluice_scheduler.core.stored.accounts import Pod
from sluice_scheduler.core.stored.entities import PASS
from sluice_scheduler.simulator.cell import CLUSTER

#: Each suspect at one record twice, then the pass, then the record; there are few suspects.
ASIDE_MAX: Final = 12
ACCOUNTS: Final = ("pod/", "workload/", "group/", PASS)


def play(
    content: Content, fault: Fault | None, *, tells: bool = False, aside: Sequence[SetAsideEvent] = ()
) -> tuple[Simulation, GuardedCell]:
    simulation = simulation_of(content, after_feed=check if fault is not None else None)
    before = simulation.cell
    cell = GuardedCell(before._policies, before.state.config, tells=tells)
    simulation.cell = cell
    share = simulation._share
    simulation._share = lambda name: share(name) if cell.state.forest.branch(name) is not None else 0.0
    cell.fault = fault
    simulation.run()
    for _ in range(3):
        cell.feed([TickEvent(time_ms=cell.state.now_ms + 1_000, cluster=CLUSTER)])
    return simulation, cell


def check(cell: GuardedCell) -> None:
    """Capacity holds; what stands is what comes of the entities; who fits is in."""
    assert len(cell.aside) <= ASIDE_MAX, [(event.what, event.reason) for event in cell.aside]
    state = cell.state
    if state.pass_due:
        state.settle_applications()  # as the next pass does first, where one was set aside
    check_derived(cell)
    if any(not aside.what.startswith(ACCOUNTS) for aside in state.asides):
        return  # the reference takes rules for what they say
    check_books(cell)
    if not (state.cell.unfinished or state.pass_due):
        assert Reference(state).next_claim() is None


def fault_of(content: Content) -> Fault:
    """Somewhere in the history, by how far it is on."""
    counter = Fault(1 << 60, 1)
    play(content, counter)
    drawn = content["fault"]
    return Fault(1 + counter.calls * drawn["permille"] // 1000, drawn["times"])


def faults_stop_nobody(content: Content) -> None:
    fault = fault_of(content)
    _, cell = play(content, fault)
    state = cell.state
    if content["fault"]["times"] == 1:
        _, calm = play(content, None)
        assert not cell.aside
        assert cell.told == calm.told
    if not content["fault"]["times"] and cell.aside:
        names = names_of(cell, fault.about)
        assert all(is_about(state, event.what, fault.about, names) for event in cell.aside), cell.aside
    check(cell)
    assert_replayed(cell)


def names_of(cell: GuardedCell, key: str) -> set[str]:
    """What a workload was ever called; it may be gone in the end."""
    events = (event for batch in cell.log for event in batch if isinstance(event, WorkloadEvent))
    return {event.name for event in events if f"workload/{event.cluster}/{event.uid}" == key}


def is_about(state: State, what: str, key: str, names: Collection[str]) -> bool:
    """Whether something is what raises, or the application that it is or may have been part of."""
    if what.startswith(PASS) or what in (key, part_of_application(state, key)):
        return True
    known, app = state.pods.get(key) or state.workloads.get(key), application_by_claim(state, key)
    title = known.facts.workload if isinstance(known, Pod) else known.title if known is not None else ""
    known_as = {*names, title or (app.key[2] if app is not None else "")} - {""}
    return what.startswith("group/") and what.endswith(tuple(f"/{each}" for each in known_as))


def assert_replayed(cell: GuardedCell) -> None:
    """From the log alone, without the fault; and so by those who take over behind each commit."""
    config = cell.state.config
    for restarts in (False, True):
        again = GuardedCell(cell._policies, config, tells=False, aside=cell.aside)
        for batch, told in zip(cell.log[len(again.log) :], cell.told[len(again.told) :], strict=True):
            assert again.feed(batch) == told
            if restarts:
                again.restart()
        assert len(again.aside) == len(cell.aside)
        for what in DERIVED:
            assert what(again.state) == what(cell.state)


def faults_in_statuses_change_no_decision(content: Content) -> None:
    counter = Fault(1 << 60, 1)
    _, calm = play(content, counter, tells=True)
    at = 1 + counter.calls * content["fault"]["permille"] // 1000
    _, cell = play(content, Fault(at, 0, REPORTS), tells=True)
    assert decisions_of(cell) == decisions_of(calm)
    assert all(event.what.startswith("status/") for event in cell.aside)


def decisions_of(cell: GuardedCell) -> list[tuple[Any, ...]]:
    """But for statuses and their place in the sequence."""
    told = [each for batch in cell.told for each in batch]
    return [_plain(each) for each in told if not isinstance(each, CreateWorkload | Report | Notice)]


def _plain(decision: Decision) -> tuple[Any, ...]:
    return (decision.type, decision.time_ms, getattr(decision, "uid", ""), decision.sentence)


GUARDED: Final = (faults_stop_nobody, faults_in_statuses_change_no_decision)
