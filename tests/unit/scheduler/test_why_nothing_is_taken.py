"""Why a claim waits that is owed room, in one sentence for explain, conditions and DynamicWorkloads."""

from __future__ import annotations

from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from sluice.decisions import ReportWorkload
from sluice_scheduler.core.reports.explain import Answer, why
from sluice_scheduler.core.reports.explain import waiting as waits_in
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

WAITS = "waits for 2 cpu under pool default's cpu"
OFF = "nothing may be taken back there (reclaim.enabled is false)"
BOUND = "no more running time may be lost there within this hour (reclaim.lostWorkPerHourSeconds)"


def answer(cell: Applications, name: str) -> Answer:
    [key] = [each.key for each in cell.state.workloads if each.name == name]
    return why(cell.state, key)


def told(cell: Applications, name: str) -> set[tuple[str, str]]:
    """What its last status says: of itself, and in its conditions."""
    reports = [each for each in cell.decisions if isinstance(each, ReportWorkload)]
    last = [each for each in reports if each.name == cell.shown(name).name][-1]
    waits = [each for each in last.conditions if each.type in ("Admitted", "Granted") and each.message]
    return {(each.reason, last.why) for each in waits if last.why in each.message}


def waiting(cell: Applications, *, rich: int = 4) -> None:
    """`other` holds all, and `team` is owed half of it."""
    cell.pods(*(f"runs-{n}" for n in range(rich)), tenant="other")
    cell.pass_seconds(30)
    cell.application("owed", pod_set("main", 2, 2, 2))
    cell.pass_seconds(3)


def assert_all_say(cell: Applications, name: str, reason: str, sentence: str) -> None:
    found = answer(cell, name)
    assert found.reason == reason
    assert found.sentence.startswith(sentence)
    assert told(cell, name) == {(reason, sentence)}, "a tick later"


@pytest.mark.parametrize(
    ("reclaim", "reason", "because"),
    [
        ({"enabled": False}, "ReclaimOff", OFF),
        ({"lostWorkPerHourSeconds": 10}, "LostWorkBound", BOUND),
        ({"enabled": False, "lostWorkPerHourSeconds": 10}, "ReclaimOff", OFF),
    ],
    ids=["off", "bound", "both"],
)
def test_a_rule_of_the_queue_that_holds_its_room(reclaim: dict[str, Any], reason: str, because: str) -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("other", reclaim=reclaim)
    waiting(cell)
    assert_all_say(cell, "owed", reason, f"{WAITS}; it is owed room that other holds, and {because}")
    cell.queue("other", reclaim={})
    cell.pass_seconds(3)
    assert answer(cell, "owed").reason == "Admitted"


def test_a_rule_of_a_queue_above_it() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("division", reclaim={"enabled": False})
    cell.queue("other", parent="division")
    waiting(cell)
    assert_all_say(cell, "owed", "ReclaimOff", f"{WAITS}; it is owed room that division holds, and {OFF}")


def test_its_own_queues_rule_keeps_it_out_of_nothing() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("team", reclaim={"enabled": False})
    waiting(cell)
    assert answer(cell, "owed").reason == "Admitted"


def test_who_is_owed_nothing_waits_for_room_alone() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("other", reclaim={"enabled": False})
    cell.queue("team", weight=1)
    waiting(cell, rich=2)
    cell.application("more", pod_set("main", 2, 2, 2))
    cell.pass_seconds(3)
    assert_all_say(cell, "more", "NoRoom", WAITS)


def test_a_rule_that_comes_to_be_in_the_way_is_told_of_who_waits_already() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("team", weight=1)
    cell.queue("other", weight=3)
    waiting(cell)
    assert_all_say(cell, "owed", "NoRoom", WAITS)
    cell.queue("other", weight=1, reclaim={"enabled": False})
    cell.pass_seconds(3)
    assert_all_say(cell, "owed", "ReclaimOff", f"{WAITS}; it is owed room that other holds, and {OFF}")


def test_room_that_was_kept_in_vain_rests() -> None:
    cell = Applications("team", cpu=4000)
    cell.queue("team", reservation={"patienceSeconds": 1})
    cell.configure(tenure_ms=2_000)
    cell.pods("runs-1", "runs-2", "runs-3")
    cell.application("large", pod_set("main", 2, 2, 2))
    cell.pass_seconds(3)
    assert_all_say(cell, "large", "NoRoom", WAITS)
    assert "; its turn has come, and room is kept for it" in answer(cell, "large").sentence
    cell.pass_seconds(3)
    in_vain = f"{WAITS}; room was kept for it in vain and given up, and is kept for it again after a rest"
    assert_all_say(cell, "large", "RoomRests", in_vain)
    assert "; that ends in " in answer(cell, "large").sentence
    cell.pass_seconds(7)
    assert_all_say(cell, "large", "NoRoom", WAITS)


def test_who_asks_for_more_than_its_queue_deserves_is_told_when_room_is_kept() -> None:
    """Patience alone is not enough for that."""
    cell = Applications("team", "other", cpu=4000)
    cell.configure(tenure_ms=60_000)
    cell.pods("runs-1", tenant="other")
    cell.pods("runs-2", "runs-3", tenant="team")
    cell.application("large", pod_set("main", 4, 4, 4))
    cell.pass_seconds(40)
    told = "what becomes free is kept for it once it has waited for a tenure beside its patience, in 320 s"
    assert f"; it is more by itself than team deserves: {told}" in answer(cell, "large").sentence


def owed(*, until: str = "20s", gang: bool = False, policy: str = "drf", **rich: Any) -> Simulation:
    """`a` holds four cpus, in one gang or as single pods, and `b` waits for the two that it deserves."""

    def submit(at: int, name: str, queue: str, count: int, least: int = 0) -> dict[str, Any]:
        pods = [{"name": "main", "count": count, "minCount": least, "requests": {"cpu": "1"}}]
        return {"at": at, "submit": {"name": name, "queue": queue, "podSets": pods}}

    content = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "policy": policy,
        "pools": [{"name": "default", "nodes": 1, "capacity": {"cpu": "4"}}],
        "queues": [{"name": "a", **rich}, {"name": "b"}],
        "events": [
            submit(0, "holds", "a", 4, 4 * gang),
            submit(1, "waits", "b", 2),
            {"at": until, "setQueue": {"name": "b"}},
        ],
        "until": until,
    }
    simulation = Simulation(Scenario.model_validate(content))
    simulation.run()
    return simulation


def test_a_tenure_is_told_with_when_it_ends() -> None:
    """Then the room goes over."""
    state = owed(gang=True, tenureSeconds=60).cell.state
    told = (
        "; b has 0.0% by weight and deserves 50.0%; nothing is taken back for it: what lifts a above what is deserved "
        "there has a tenure, which ends in 40 s at the earliest"
    )
    assert why(state, waits_in(state, "b")[0]).sentence.endswith(told)
    later = owed(gang=True, tenureSeconds=60, until="120s").cell.state
    assert waits_in(later, "b") == []


@pytest.mark.parametrize(
    ("rich", "because"),
    [
        ({"policy": "fifo"}, "the policy of its queues takes back nothing"),
        (
            {"tenureSeconds": 0, "reclaim": {"minimumRunTimeSeconds": 3600}},
            "more than is deserved is held by a, but no move that the rules allow makes the sharing fairer",
        ),
    ],
    ids=["policy", "no-move"],
)
def test_what_else_keeps_a_claim_from_what_its_queue_deserves(rich: dict[str, Any], because: str) -> None:
    state = owed(**rich).cell.state
    assert why(state, waits_in(state, "b")[0]).sentence.endswith(f"; nothing is taken back for it: {because}")


def test_room_that_nobody_has_too_much_of_is_not_taken_back() -> None:
    cell = Applications("team", cpu=2000)
    cell.pods("runs-1")
    cell.application("large", pod_set("main", 2, 2, 2))
    cell.pass_seconds(3)
    told = "; nothing is taken back for it: nobody holds more than he deserves of what it asks for; it fits once 1"
    assert told in answer(cell, "large").sentence


def test_who_is_told_of_a_rule_is_told_of_nothing_else() -> None:
    cell = Applications("team", "other", cpu=4000)
    cell.queue("other", reclaim={"enabled": False})
    waiting(cell)
    assert "; nothing is taken back for it" not in answer(cell, "owed").sentence
