"""The same nodes, cut into pools of one supply in two ways: nobody has a share by how an administrator cut them.

What is deserved is the same to the last digit. Of pods of one cpu, which leave nothing over in any node, a queue holds
the same but for one unit that two deserve in parts. Where units are larger, less than one is left over in each pool:
who waits may lack so much of what it deserves, and one unit for its own rounding.
"""

from __future__ import annotations

from typing import Any, Final

from histories import Simulation, _is_promised
from hypothesis import strategies as st
from properties import Content, scenario_of
from rest import come_to_rest
from sluice_scheduler.core import State

#: What one pod asks for; a node has four cpu and two gpus, so none is larger than a node.
REQUESTS: Final = ({"cpu": "1"}, {"cpu": "2"}, {"cpu": "1", "gpu": "1"}, {"cpu": "3"}, {"gpu": "1"})
NODE: Final = {"cpu": "4", "gpu": "2"}


@st.composite
def cuts(draw: Any) -> Content:
    """A history for the nodes of all pools together: `cuts` says how many of them are in each pool."""
    queues: list[dict[str, Any]] = []
    for number in range(draw(st.integers(2, 5))):
        queue: dict[str, Any] = {"name": f"q{number}", "weight": draw(st.sampled_from([1, 1, 2]))}
        inner = [each["name"] for each in queues if "parent" not in each]
        parent = draw(st.sampled_from(["", *inner]))
        if parent:
            queue["parent"] = parent
        if draw(st.integers(0, 2)) == 0 and not _is_promised(queues, parent):
            queue["guaranteed"] = {"cpu": "2"}
        if draw(st.integers(0, 3)) == 0:
            queue["limit"] = {"cpu": draw(st.sampled_from(["3", "5"]))}
        queues.append(queue)
    small = draw(st.booleans())
    events = [
        {
            "at": at,
            "submit": {
                "name": f"w{at}",
                "queue": draw(st.sampled_from(queues))["name"],
                "podSets": [
                    {
                        "name": "main",
                        "count": draw(st.integers(1, 12)),
                        "minCount": 0,
                        "requests": {"cpu": "1"} if small else draw(st.sampled_from(REQUESTS)),
                    }
                ],
            },
        }
        for at in range(draw(st.integers(2, 6)))
    ]
    return {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "patience": "1000h",
        "cuts": draw(st.lists(st.integers(1, 3), min_size=2, max_size=4)),
        "queues": queues,
        "events": events,
        "until": 20,
    }


def _at_rest(content: Content, cut: list[int]) -> State | None:
    pools = [{"name": f"p{number}", "nodes": nodes, "capacity": NODE} for number, nodes in enumerate(cut)]
    simulation = Simulation(
        scenario_of({**{k: v for k, v in content.items() if k != "cuts"}, "pools": pools})
    )
    simulation.run()
    return simulation.cell.state if come_to_rest(simulation) else None


def shares_are_the_same_however_nodes_are_cut(content: Content) -> None:
    whole = _at_rest(content, [sum(content["cuts"])])
    cut = _at_rest(content, content["cuts"])
    if whole is None or cut is None:
        return
    assert [each.amounts for each in whole.deserved] == [each.amounts for each in cut.deserved]
    held = [_held(state) for state in (whole, cut)]
    if _are_alike(content):
        _check_alike(*held)
    for state, found in zip((whole, cut), held, strict=True):
        _check_left_over(state, found, len(state.forest.capacity) // len(NODE))


def _held(state: State) -> dict[str, dict[Any, int]]:
    return {name: dict(leaf.held) for name, leaf in state.forest.leaves.items()}


def _are_alike(content: Content) -> bool:
    """A node is filled by such pods without rest."""
    sets = [each for event in content["events"] for each in event["submit"]["podSets"]]
    return all(each["requests"] == {"cpu": "1"} for each in sets)


def _check_alike(one: dict[str, dict[Any, int]], other: dict[str, dict[Any, int]]) -> None:
    """No cut leaves anything over: only who has the last unit that two deserve in parts may differ."""
    for name, held in one.items():
        assert abs(held.get(("", "cpu"), 0) - other[name].get(("", "cpu"), 0)) <= 1000, (one, other)
    assert sum(map(_cpu, one.values())) == sum(map(_cpu, other.values()))


def _cpu(held: dict[Any, int]) -> int:
    return held.get(("", "cpu"), 0)


def _check_left_over(state: State, held: dict[str, dict[Any, int]], pools: int) -> None:
    """Of one kind of pods: who waits has no more than a unit less than it deserves in each pool, and one more."""
    shapes = {claim.shape.parts for claim in state.forest.claims.values()}
    sizes = {tuple(sorted(pod.facts.requests.items())) for pod in state.pods}
    if len(shapes) != 1 or len(sizes) != 1:
        return
    unit = dict(next(iter(sizes)))
    for name, leaf in state.forest.leaves.items():
        for (supply, resource), amount in leaf.deserved.items():
            if len(leaf.line) and resource in unit:
                lack = (amount >> 16) - held[name].get((supply, resource), 0)
                assert lack <= unit[resource] * (pools + 1), (name, lack)
