"""Playing a trace: the system stands, lives through its actions, comes to rest, and is looked at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simulation.system import troubles, workload
from simulation.system.actions import Trace
from simulation.system.api import Json
from simulation.system.checkers import Violation, Witness, check_at_rest, is_at_rest
from simulation.system.cluster import PODS, path_of
from simulation.system.conditions import POISON, drawn_from, silence
from simulation.system.loop import VirtualLoop
from simulation.system.run import CPU, POOLED, QUEUES, System
from sluice.vocabulary import API_VERSION, MANAGED_LABEL

__all__ = ["play", "troubles", "workload"]

BY_HAND: Final = f"/apis/{API_VERSION}/dynamicworkloads"
#: After the last action everything comes to rest within so long, and is looked at so often.
RESTS_WITHIN_S: Final = 300.0
LOOK_S: Final = 10.0


def play(trace: Trace, begin: Callable[[System], object] = lambda _: None) -> list[Violation]:
    """What did not hold; nothing happens after the first of these."""
    with silence(), drawn_from(trace.seed):
        loop, violations = _live(trace, begin)
    loop.dispose()
    return violations


def _live(trace: Trace, begin: Callable[[System], object]) -> tuple[VirtualLoop, list[Violation]]:
    system = System(trace.seed)
    begin(system)
    witness = Witness(system)
    system.furnish()
    system.start()
    for action in trace.actions:
        system.loop.call_later(action.at_s, action.take, system)
    until_s = max([trace.lasts_s, *(action.at_s for action in trace.actions)]) + LOOK_S
    system.loop.run_until(until_s)
    calm(system)
    latest_s = trace.lasts_s + RESTS_WITHIN_S + _ahead_s(trace)
    while not witness.violations and until_s < latest_s:
        until_s += LOOK_S
        system.loop.run_until(until_s)
        if is_at_rest(witness):
            break
    if not witness.violations:
        check_at_rest(witness)
    return system.loop, witness.violations


def _ahead_s(trace: Trace) -> float:
    """The cell's time stands still until a clock that ran ahead is caught up with."""
    ahead_s = [action.told["by_ms"] / 1000 for action in trace.actions if action.kind == "set_clock"]
    return max([0.0, *ahead_s])


def calm(system: System) -> None:
    """Trouble ends, and tenants leave nothing behind that could never be served."""
    system.servers.network.calm()
    system.servers.faults.calm()
    for service in system.services.values():
        service.clock.ahead_ms = 0
        if service.process is not None:
            service.process.go_on()
    for name in POOLED:
        workload.edit_node(system, name, CPU)
        workload.cordon(system, name, off=False)
    for name in QUEUES:
        workload.edit_queue(system, name, weight=1, limit=0, guaranteed=0)
        system.api.change(f"/api/v1/namespaces/{name}", _manage)
    for pod in system.api.of(PODS):
        is_part = pod["metadata"].get("labels") and pod["spec"].get("schedulingGates")
        if is_part or pod["metadata"]["name"].startswith(POISON):
            system.api.remove(path_of(pod))
    for found in system.api.of(BY_HAND):
        if not found["metadata"].get("ownerReferences"):
            system.api.remove(
                f"/apis/{API_VERSION}/namespaces/{found['metadata']['namespace']}/dynamicworkloads/"
                f"{found['metadata']['name']}"
            )


def _manage(namespace: Json) -> None:
    namespace["metadata"].setdefault("labels", {})[MANAGED_LABEL] = "true"
