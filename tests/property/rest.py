"""What holds once nothing changes any more, tenures and bars have passed: on small cells, against all sets of victims.

A cell in which indivisible claims go on taking turns never comes to rest; nothing is asked of that.
"""

from __future__ import annotations

from typing import Any, Final

from histories import Simulation, _is_promised
from hypothesis import strategies as st
from properties import Content, all_units, holding_of, scenario_of
from reference.moves import Moves, Victim
from reference.potential import Holding
from reference.reference import Reference
from sluice_scheduler.core import State

#: Longer than any tenure or patience of these histories.
_LONG_MS: Final = 2 * 3_600_000
_LONG_TIMES: Final = 12

REQUESTS: Final = ({"cpu": "1"}, {"cpu": "2"}, {"cpu": "3"}, {"gpu": "1"}, {"cpu": "1", "gpu": "1"})


@st.composite
def small_cells(draw: Any) -> Content:
    """A few queues, one pool or two, and so few units that all sets of them can be tried."""
    pools = [{"name": "p", "capacity": {"cpu": draw(st.sampled_from(["3", "4", "6"])), "gpu": "2"}}]
    if draw(st.integers(0, 3)) == 0:
        supply = draw(st.sampled_from(["", "other"]))
        pools.append({"name": "r", "capacity": {"cpu": "3"}, "supply": supply})
    queues: list[dict[str, Any]] = []
    parents = [""]
    for number in range(draw(st.integers(2, 4))):
        queue: dict[str, Any] = {"name": f"q{number}", "weight": draw(st.sampled_from([1, 1, 2]))}
        if parent := draw(st.sampled_from(parents)):
            queue["parent"] = parent
        if draw(st.integers(0, 2)) == 0 and not _is_promised(queues, parent):
            queue["guaranteed"] = draw(st.sampled_from([{"cpu": "1"}, {"cpu": "2"}, {"gpu": "1"}]))
        if draw(st.integers(0, 5)) == 0:
            queue["limit"] = {"cpu": "3"}
        if draw(st.integers(0, 6)) == 0:
            queue["reclaim"] = {"enabled": False}
        queue["ordering"] = draw(st.sampled_from(["bestEffortFifo", "bestEffortFifo", "strictFifo"]))
        if not parent:
            parents.append(queue["name"])
        queues.append(queue)
    names = [queue["name"] for queue in queues]
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "policy": "drf",
        "patience": "1000h",  # room that is kept for one who waits for others to end is no move
        "pools": pools,
        "queues": queues,
        "events": [draw(_arrivals(at, names, len(pools))) for at in range(draw(st.integers(2, 6)))],
        "until": 20,
    }


@st.composite
def _arrivals(draw: Any, at: int, queues: list[str], pools: int) -> dict[str, Any]:
    count = draw(st.integers(1, 3))
    least = draw(st.sampled_from([0, 0, 1, count]))
    sets = [{"name": "main", "count": count, "minCount": least, "requests": draw(st.sampled_from(REQUESTS))}]
    form = draw(st.sampled_from(["workload", "workload", "plain", "group"]))
    if form == "workload" and pools > 1 and draw(st.booleans()):
        more = draw(st.integers(1, 2))
        least = draw(st.sampled_from([0, more]))
        sets.append({"name": "more", "count": more, "minCount": least, "requests": {"cpu": "1"}})
    for each in sets if pools > 1 else ():
        if draw(st.integers(0, 2)) == 0:
            each["nodeSelector"] = {"pool": draw(st.sampled_from(["p", "r"]))}
    submit = {"name": f"{form}-{at}", "queue": draw(st.sampled_from(queues)), "podSets": sets}
    return {"at": at, "submit": submit}


def come_to_rest(simulation: Simulation) -> bool:
    """Whether nothing changes any more, however much time passes."""
    for _ in range(_LONG_TIMES):
        before = len(simulation.decided)
        simulation.world.now_ms += _LONG_MS
        simulation._feed([])
        simulation._settle()
        if len(simulation.decided) == before:
            return True
    return False


def victims_of(state: State) -> list[Victim]:
    """All that can be taken back. A gang goes with the growth that stands on it."""
    found = []
    grown: dict[int, list[Holding]] = {}
    units = [
        (unit, holding_of(state, unit, number), unit.leaf.queue)
        for number, unit in enumerate(all_units(state))
    ]
    for unit, holding, _ in units:
        if not unit.is_whole and unit.application is not None:
            grown.setdefault(id(unit.application), []).append(holding)
    for unit, holding, queue in units:
        beside = grown.get(id(unit.application), []) if unit.is_whole else []
        application = unit.application.claim_key if unit.application is not None else ""
        least_ms = queue.facts.minimum_run_ms if queue is not None else 0
        ripe = state.now_ms - unit.since_ms >= least_ms
        found.append(Victim([holding, *beside], unit.leaf.name, ripe, application, is_gang=unit.is_whole))
    return found


def no_owed_claim_waits_at_rest(content: Content) -> None:
    """Against all sets of victims and all places, by the rules of ADR 11."""
    simulation = Simulation(scenario_of(content))
    simulation.run()
    if not come_to_rest(simulation):
        return
    state = simulation.cell.state
    found = Moves(Reference(state), victims_of(state), state.now_ms).first()
    assert found is None, (
        found.claim,
        found.pools,
        [(victim.leaf, victim.application, victim.amounts) for victim in found.victims],
    )
