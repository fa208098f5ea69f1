"""Events in words. A decision brings its own sentence; an event says what it tells the scheduler."""

from __future__ import annotations

from functools import singledispatch

from sluice.events import (
    ConfigEvent,
    Event,
    NamespaceEvent,
    NodeEvent,
    ObjectEvent,
    OutcomeEvent,
    PodEvent,
    PoolEvent,
    PriorityClassEvent,
    QueueEvent,
    RebuildEvent,
    SyncEvent,
    UnmanagedEvent,
    WorkloadEvent,
)

from sluice_console import wording
from sluice_console.edits import edits


def reason_of(event: Event) -> str:
    """A word, as a decision's reason is one."""
    match event:
        case ObjectEvent():
            return event.change
        case OutcomeEvent():
            return event.result
        case SyncEvent():
            return event.phase
        case _:
            return event.type


def sentence_of(event: Event, before: Event | None = None) -> str:
    """`before`: what was told of the same object last, if that is known."""
    if isinstance(event, ObjectEvent) and event.change == "DELETED":
        return "is gone"
    if isinstance(event, QueueEvent):
        return edits(event.queue, before.queue if isinstance(before, QueueEvent) else None)
    if isinstance(event, PoolEvent):
        return edits(event.pool, before.pool if isinstance(before, PoolEvent) else None)
    return _says(event)


@singledispatch
def _says(event: Event) -> str:
    return ""


@_says.register
def _(event: PodEvent) -> str:
    pod, asks = event.pod, wording.amounts(event.pod.requests)
    going = ", being deleted" if pod.deleting else ""
    if pod.finished:
        return f"{pod.phase}: its account is closed, {asks} given back"
    if pod.gated:
        return f"waits behind the gate for {asks}{going}"
    return f"open, {f'on {pod.node}, ' if pod.node else ''}{pod.phase}, holds {asks}{going}"


@_says.register
def _(event: WorkloadEvent) -> str:
    facts = event.workload
    if facts.problem:
        return facts.problem
    if facts.finished:
        return f"{facts.kind} that has {'failed' if facts.failed else 'ended'}: it holds and wants nothing"
    asks = ", ".join(
        f"{each.count} {each.name} (at least {min(each.min_count, each.count)})" for each in facts.pod_sets
    )
    return f"{facts.kind}, {'released' if facts.released else 'held back'}, asks for {asks or 'nothing'}"


@_says.register
def _(event: NodeEvent) -> str:
    able = "" if event.node.schedulable else "; takes no pods now"
    return f"offers {wording.amounts(event.node.allocatable)}{able}"


@_says.register
def _(event: NamespaceEvent) -> str:
    bound = f"bound to queue {event.queue}" if event.queue else "bound to no queue"
    return f"{'managed' if event.managed else 'not managed'}, {bound}"


@_says.register
def _(event: PriorityClassEvent) -> str:
    return f"value {event.value}"


@_says.register
def _(event: UnmanagedEvent) -> str:
    held = wording.count(event.pods, "unmanaged pod")
    return f"{held} in pool {event.pool}: {wording.amounts(event.requests)}"


@_says.register
def _(event: SyncEvent) -> str:
    asked = f", as decision #{event.request} asked" if event.request else ""
    return f"list of kind {event.kind} at resourceVersion {event.resource_version}{asked}"


@_says.register
def _(event: OutcomeEvent) -> str:
    return event.message


@_says.register
def _(event: ConfigEvent) -> str:
    return f"policy {event.config.policy}, clusters {', '.join(event.config.clusters)}"


@_says.register
def _(event: RebuildEvent) -> str:
    return f"the ledger of cell {event.config.cell} begins anew: {event.reason}"
