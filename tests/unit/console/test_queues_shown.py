"""Queues as a table, a tree and in full, from what a ledger holds."""

from __future__ import annotations

from typing import Any

import pytest
from console_ledgers import condition, pool_report, queue, report, snapshot
from rich.console import Console
from sluice_console import tables, wording
from sluice_console.redis_reader import Snapshot
from sluice_console.views import as_json, in_force, namespaces_of, queue_views, roots_first, supplies_of

GI = 2**30


def printed(show: object, *arguments: object, **options: object) -> str:
    console = Console(width=200, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as capture:
        show(console, *arguments, **options)  # type: ignore[operator]
    return capture.get().rstrip("\n")


@pytest.fixture
def two_tenants() -> Snapshot:
    return snapshot(
        ("queue", queue("science", weight=2)),
        ("queue", queue("ads")),
        ("queue", queue("physics", parent="science", limit={"cpu": "50%"})),
        (
            "report",
            report(
                "science",
                condition("Ready"),
                usage={"default/cpu": 2500, "default/memory": 3 * GI, "default/pods": 2},
                demand={"default/cpu": 5000},
                fair_share={"default/cpu": 2666},
                dominant_share="0.3125",
                dominant_resource="default/cpu",
                pending=7,
                running=2,
            ),
        ),
        ("report", report("ads", condition("Misdirected", problem="the pod names queue nowhere"))),
        ("report", pool_report("default", cpu=4000, memory=8 * GI)),
    )


def test_a_line_says_what_a_queue_holds_asks_for_and_is_entitled_to(two_tenants: Snapshot) -> None:
    lines = printed(tables.show_list, queue_views([two_tenants])).splitlines()
    header, ads, physics, science = lines[:4]
    assert " ".join(header.split()) == (
        "QUEUE WEIGHT SHARE OF USAGE DEMAND FAIR SHARE PENDING RUNNING CONDITIONS"
    )
    assert "cpu 2.5, memory 3Gi" in science, "slots of pods are left out"
    assert "0.3125  default/cpu" in science
    assert [word for word in science.split() if word.isdecimal()][-2:] == ["7", "2"]
    assert "cpu 2.67" in science, "a share is rounded to what people read"
    assert ads.endswith("Misdirected")
    assert physics.endswith("not reported yet")


def test_what_somebody_should_look_at_follows_in_its_own_words(two_tenants: Snapshot) -> None:
    assert printed(tables.show_list, queue_views([two_tenants])).splitlines()[-1] == (
        "ads: Misdirected: the pod names queue nowhere"
    )


def test_a_good_condition_that_does_not_hold_is_told_as_not_so() -> None:
    views = queue_views(
        [
            snapshot(
                ("queue", queue("a")),
                (
                    "report",
                    report("a", condition("Ready", problem="its parent x does not exist", status="False")),
                ),
            )
        ]
    )
    assert "a: not Ready: its parent x does not exist" in printed(tables.show_list, views)


def test_a_tree_shows_who_stands_under_whom(two_tenants: Snapshot) -> None:
    lines = printed(tables.show_tree, queue_views([two_tenants])).splitlines()
    assert [line.split()[0] for line in lines] == ["ads", "science", "└──"]
    assert lines[2].split()[1] == "physics"
    assert "2 running, 7 pending  holds cpu 2.5, memory 3Gi  deserves cpu 2.67" in lines[1]


def test_queues_that_run_in_a_circle_and_orphans_are_shown_too() -> None:
    views = queue_views(
        [
            snapshot(
                ("queue", queue("a", parent="b")),
                ("queue", queue("b", parent="a")),
                ("queue", queue("orphan", parent="gone")),
            )
        ]
    )
    assert [(depth, view.name) for depth, view in roots_first(views)] == [(0, "orphan"), (0, "a"), (1, "b")]


def with_applications() -> Snapshot:
    figures = {
        "usage": {"gpu-1/nvidia.com/gpu": 2, "gpu-2/nvidia.com/gpu": 3, "default/cpu": 500},
        "demand": {"a100/nvidia.com/gpu": 9, "cpu": 500},
        "fair_share": {"a100/nvidia.com/gpu": 6, "cpu": 500},
        "pending_workloads": 36,
        "admitted_workloads": 2,
        "lost_work_ms": 7_200_000,
        "lost_work_hour_ms": 150_000,
    }
    pools = {"gpu-1": "a100", "gpu-2": "a100", "default": ""}
    return snapshot(
        ("queue", queue("a")),
        ("queue", queue("b")),
        ("report", report("a", condition("Ready"), **figures)),
        *(
            ("resourcepool", {"name": name, "cluster": "home", "facts": {"supply": supply}})
            for name, supply in pools.items()
        ),
    )


def test_applications_that_wait_are_shown_beside_pods() -> None:
    views = queue_views([with_applications()])
    header, a, *rest = printed(tables.show_list, views).splitlines()
    assert "PENDING RUNNING APPS PENDING APPS ADMITTED CONDITIONS" in " ".join(header.split())
    assert a.split()[-5:] == ["0", "0", "36", "2", "-"]
    assert rest[-1].endswith("not reported yet")
    assert "0 running, 0 pending, apps: 2 admitted, 36 pending" in printed(tables.show_tree, views)
    assert as_json(views[0])["pendingWorkloads"] == 36
    assert as_json(views[0])["lostWorkLastHourSeconds"] == 150


def test_what_is_deserved_is_told_by_supply_and_what_is_held_by_pool_too() -> None:
    ledger = with_applications()
    capacity = {"gpu-1/nvidia.com/gpu": 4, "gpu-2/nvidia.com/gpu": 8, "default/cpu": 2000}
    text = printed(
        tables.show_queue,
        queue_views([ledger])[0],
        below=[],
        namespaces=[],
        capacity=capacity,
        supplies=supplies_of([ledger]),
    )
    rows = [line.split() for line in text.splitlines()]
    assert ["a100/nvidia.com/gpu", "5", "9", "6", "12"] in rows
    assert ["cpu", "0.5", "0.5", "0.5", "2"] in rows
    assert ["gpu-2/nvidia.com/gpu", "3", "8"] in rows
    assert "apps            36 pending, 2 admitted" in text
    assert "lost work       2 h, 2 min in the last hour" in text


def test_one_queue_in_full(two_tenants: Snapshot) -> None:
    view = next(view for view in queue_views([two_tenants]) if view.name == "science")
    text = printed(
        tables.show_queue,
        view,
        below=["physics"],
        namespaces=["lab-1"],
        capacity={"default/cpu": 4000, "default/memory": 8 * GI},
    )
    assert "below it        physics" in text
    assert "namespaces      lab-1" in text
    cpu = next(line for line in text.splitlines() if line.startswith("default/cpu"))
    assert cpu.split() == ["default/cpu", "2.5", "5", "2.67", "4"]


def test_names_are_never_taken_for_markup() -> None:
    views = queue_views([snapshot(("queue", queue("[bold]")), ("report", report("[bold]")))])
    assert "[bold]" in printed(tables.show_list, views)
    assert "[bold]" in printed(tables.show_tree, views)


def test_a_queue_counts_once_and_in_the_cell_of_its_root() -> None:
    queues = (
        ("queue", queue("east", cell="east")),
        ("queue", queue("east-1", parent="east")),
        ("queue", queue("west", cell="west")),
    )
    ledgers = [
        snapshot(*queues, ("report", report("west", pending=1)), cell="west"),
        snapshot(*queues, ("report", report("east-1", pending=2)), cell="east"),
    ]
    found = {view.name: view for view in queue_views(ledgers)}
    assert {name: view.cell for name, view in found.items()} == {
        "east": "east",
        "east-1": "east",
        "west": "west",
    }
    assert found["east-1"].figures is not None
    assert found["east-1"].figures.pending == 2
    assert "CELL" in printed(tables.show_list, list(found.values()))


def test_queues_of_clusters_that_are_nobodys_home_do_not_count() -> None:
    assert queue_views([snapshot(("queue", queue("a", cluster="away")))]) == []


def test_the_namespaces_that_are_bound_to_a_queue_and_which_of_them_came_loose() -> None:
    def namespace(
        name: str, *, cluster: str = "home", managed: bool = True, queue: str = "a"
    ) -> dict[str, object]:
        return {"name": name, "cluster": cluster, "managed": managed, "queue": queue}

    ledger = snapshot(
        ("namespace", namespace("one")),
        ("namespace", namespace("two", cluster="away")),
        ("namespace", namespace("free", managed=False, queue="")),
        ("namespace", namespace("loose", managed=False)),
        ("namespace", namespace("other", queue="b")),
    )
    assert namespaces_of("a", [ledger]) == ["away/two", "loose (not managed)", "one"]


def test_machines_get_exact_amounts_under_the_names_of_a_queues_status(two_tenants: Snapshot) -> None:
    science = as_json(next(view for view in queue_views([two_tenants]) if view.name == "science"))
    assert science["fairShare"] == {"default/cpu": 2666}
    assert science["dominantShare"] == "0.3125"
    assert science["conditions"][0]["type"] == "Ready"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "-"),
        ({"default/pods": 3}, "-"),
        ({"default/cpu": 250}, "cpu 0.25"),
        ({"default/cpu": 10_666, "default/memory": 5_726_623_061}, "cpu 10.67, memory 5.33Gi"),
        ({"a/cpu": 1000, "b/cpu": 2000}, "a/cpu 1, b/cpu 2"),
        ({"cpu": 1000, "gpus/cpu": 2000}, "cpu 1, gpus/cpu 2"),
        ({"default/nvidia.com/gpu": 4}, "nvidia.com/gpu 4"),
        ({"nvidia.com/gpu": 4}, "nvidia.com/gpu 4"),
        ({"memory": 512}, "memory 512"),
    ],
)
def test_amounts_in_words(values: dict[str, int], words: str) -> None:
    assert wording.amounts(values) == words


@pytest.mark.parametrize(
    ("duration_ms", "words"),
    [(-5, "0.0 s"), (1_940, "1.9 s"), (59_000, "59 s"), (150_000, "2 min"), (7_200_000, "2 h"), (2e8, "2 d")],
)
def test_ages_in_words(duration_ms: int, words: str) -> None:
    assert wording.age(duration_ms) == words


def test_no_line_ends_in_blanks(two_tenants: Snapshot) -> None:
    views = queue_views([two_tenants])
    shown = printed(tables.show_list, views) + printed(
        tables.show_queue, views[0], below=[], namespaces=[], capacity={}
    )
    assert [line for line in shown.splitlines() if line != line.rstrip()] == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, "reclaim on, at any time, without grace"),
        ({"grace_ms": 30_000}, "reclaim on, at any time, with 30 s of grace"),
        ({"minimum_run_ms": 60_000}, "reclaim on, after 60 s of running, without grace"),
        ({"reclaim": False}, "reclaim off"),
        ({}, "limit none"),
        ({}, "guaranteed nothing"),
        ({}, "tenure 3600 s, the cell's"),
        ({"tenure_ms": 0}, "tenure 0 s"),
        ({}, "reservation after 300 s, the cell's"),
        ({"patience_ms": 60_000}, "reservation after 60 s"),
        ({"patience_ms": 60_000, "reserves": False}, "reservation off"),
        ({}, "start deadline 600 s, the cell's"),
        ({"start_deadline_ms": 30_000}, "start deadline 30 s"),
        ({"start_deadline_ms": 0}, "start deadline none"),
    ],
)
def test_a_spec_in_words(facts: dict[str, Any], words: str) -> None:
    [view] = queue_views([snapshot(("queue", queue("a", **facts)))])
    shown = printed(tables.show_queue, view, below=[], namespaces=[], capacity={})
    assert words in [" ".join(line.split()) for line in shown.splitlines()]


def test_times_that_a_queue_does_not_name_are_its_cells() -> None:
    [view] = queue_views([snapshot(("queue", queue("a", tenure_ms=5000)))])
    assert in_force(view) == {"tenureSeconds": 5, "patienceSeconds": 300, "startDeadlineSeconds": 600}
