"""`step(state, event) -> decisions`: the whole scheduler, without a clock, a network or chance.

The same events give the same decisions, byte for byte, however they were batched: a pass follows each record,
except one after which its producer announced `more` of the same moment, and each pass sees only the state.
"""

from __future__ import annotations

from sluice.decisions import Decision
from sluice.events import (
    ConfigEvent,
    Event,
    ObjectEvent,
    OutcomeEvent,
    PoolEvent,
    QueueEvent,
    RebuildEvent,
    SetAsideEvent,
    SyncEvent,
    TickEvent,
    UnmanagedEvent,
)

from sluice_scheduler.core.applications.evict import hasten
from sluice_scheduler.core.applications.gangs import judge_gangs
from sluice_scheduler.core.applications.queuejobs import resume_jobs
from sluice_scheduler.core.applications.starts import judge_starts
from sluice_scheduler.core.applications.workloads import end_silent
from sluice_scheduler.core.intake.aside import set_aside
from sluice_scheduler.core.intake.nodes import on_unmanaged
from sluice_scheduler.core.intake.observe import follow_rules, level_old_graves, on_object
from sluice_scheduler.core.intake.outcome import on_outcome
from sluice_scheduler.core.intake.recovery import ask_again, on_config, on_rebuild, on_sync
from sluice_scheduler.core.passes.deserved import work_out_deserved
from sluice_scheduler.core.passes.history import look_back
from sluice_scheduler.core.passes.schedule import schedule, waits_for_time
from sluice_scheduler.core.reports.report import report
from sluice_scheduler.core.reports.shown import show_release
from sluice_scheduler.core.state.offers import offer_retries
from sluice_scheduler.core.state.state import State


def step(state: State, event: Event, *, passes: bool = True) -> list[Decision]:
    """`passes`: whether a pass may follow. If not, the next record's does what is due."""
    if isinstance(event, RebuildEvent):
        on_rebuild(state, event)
    elif isinstance(event, SetAsideEvent):
        set_aside(state, [event])
    elif state.begun:
        # An actuator's clock is nobody's but its own: what it tells of has happened by the watchers' time.
        if event.time_ms > state.cell.time_ms and not isinstance(event, OutcomeEvent):
            state.advance_time(event.time_ms)
            look_back(state)
        if not isinstance(event, QueueEvent | PoolEvent):
            follow_rules(state)
        _react(state, event)
        if not event.more:
            follow_rules(state)
        if passes and not event.more and (state.pass_due or state.cell.unfinished):
            state.pass_due = False
            schedule(state, ticks=isinstance(event, TickEvent))
            if state.tells:
                show_release(state)
    return state.take_decisions()


def _react(state: State, event: Event) -> None:
    match event:
        case ObjectEvent():
            on_object(state, event)
        case OutcomeEvent():
            on_outcome(state, event)
        case TickEvent():
            state.settle_applications()
            work_out_deserved(state)
            if state.tells:
                report(
                    state
                )  # first: what the rest changes is settled by the pass, and told with the next tick
            ask_again(state)
            offer_retries(state)
            level_old_graves(state)
            end_silent(state)
            resume_jobs(state)
            hasten(state)
            judge_gangs(state)
            judge_starts(state)
            state.pass_due = state.pass_due or waits_for_time(state)
        case UnmanagedEvent():
            on_unmanaged(state, event)
        case SyncEvent():
            on_sync(state, event)
        case ConfigEvent():
            on_config(state, event)
