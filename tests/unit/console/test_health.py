"""`sluice status` says whether the loop turns, and where to look when it does not."""

from __future__ import annotations

from typing import Any

import pytest
from console_ledgers import NOW_MS, cluster, condition, queue, report, snapshot
from console_records import admit, lines
from rich.console import Console
from sluice.decisions import Decision, Evict, Fence, ReportPool, Resync
from sluice.events import Event, OutcomeEvent, TickEvent
from sluice.values import Epoch
from sluice_console.health import CellStatus, judge, show_status
from sluice_console.lines import Line
from sluice_console.redis_reader import Entity, Snapshot
from sluice_console.topics import Bounds

LONG_AGO_MS = NOW_MS - 60_000


def tick(time_ms: int = NOW_MS - 500) -> TickEvent:
    return TickEvent(time_ms=time_ms, cluster="home")


def answer(seq: int, time_ms: int = NOW_MS - 400) -> OutcomeEvent:
    return OutcomeEvent(
        time_ms=time_ms, cluster="home", seq=seq, epoch="1-42", decision="admit", result="Applied"
    )


def judged(
    ledger: Snapshot | None = None,
    *,
    end: int = 10,
    events: tuple[Event, ...] = (tick(LONG_AGO_MS), tick()),
    decisions: tuple[Decision, ...] = (),
    unreadable: Line | None = None,
    dead_letters: int = 0,
) -> CellStatus:
    return judge(
        ledger or snapshot(("cluster", cluster())),
        partition=0,
        events=Bounds(0, end),
        recent_events=[*(lines(*events) if events else ()), *([unreadable] if unreadable else ())],
        recent_decisions=lines(*decisions) if decisions else (),
        dead_letters=dead_letters,
        now_ms=NOW_MS + 100,
    )


def as_shown(status: CellStatus) -> str:
    console = Console(width=120)
    with console.capture() as capture:
        show_status(console, status)
    return capture.get()


def test_a_loop_that_turns_has_no_problems() -> None:
    status = judged(
        snapshot(
            ("cluster", cluster()),
            ("queue", queue("root")),
            ("queue", queue("leaf", parent="root")),
            ("report", report("root", pending=3, running=2)),
            ("report", report("leaf", pending=3, running=2)),
        ),
        events=(tick(LONG_AGO_MS), tick(), answer(4)),
        decisions=(admit(4, LONG_AGO_MS + 1),),
    )
    assert status.problems == []
    assert (status.lag, status.decided, status.published) == (0, 4, 4)
    assert (status.queues, status.pending, status.running) == (2, 3, 2), "an inner queue's figures are sums"
    assert status.as_json()["clusters"][0]["heardMs"] == 600


def test_what_a_pass_has_left_and_which_applications_wait_is_told() -> None:
    figures = report("root", pending_workloads=36, admitted_workloads=2)
    ledger = snapshot(("cluster", cluster()), ("queue", queue("root")), ("report", figures))
    dict.update(ledger.entities["cell"][0], unfinished="reclaim")
    status = judged(ledger, events=(tick(),))
    assert (status.pass_pending, status.pending_workloads) == ("reclaim", 36)
    shown = as_shown(status)
    assert "apps          36 pending, 2 admitted" in shown
    assert "last pass     still taking back: the next records go on with it" in shown
    assert not status.problems, "it goes on by itself"


@pytest.mark.parametrize(
    ("entity", "step"),
    [
        (cluster(live=False, resync=0, fence=7), "its actuator's answer to fence #7"),
        (cluster(live=False, resync=8, synced=["node"]), "asked for by #8 (listed so far: node)"),
    ],
)
def test_a_cluster_that_is_not_live_says_what_it_waits_for(entity: Entity, step: str) -> None:
    (problem,) = judged(snapshot(("cluster", entity))).problems
    assert step in problem


@pytest.mark.parametrize(("events", "since"), [((), "lately"), ((tick(LONG_AGO_MS), answer(1)), "for 60 s")])
def test_a_silent_watcher_is_missed(events: tuple[Event, ...], since: str) -> None:
    (problem,) = judged(events=events).problems
    assert problem.startswith(f"the watcher of cluster home has written nothing {since}")


def test_decisions_that_nobody_answers_are_missed_but_not_what_is_still_on_its_way() -> None:
    def evict(seq: int, deadline_ms: int) -> Evict:
        return Evict(
            seq=seq,
            cell="default",
            cluster="home",
            time_ms=LONG_AGO_MS + 20,
            reason="Reclaim",
            sentence="",
            name="p",
            namespace="ns",
            uid="u",
            queue="q",
            deadline_ms=deadline_ms,
        )

    about = {"cell": "default", "cluster": "home", "time_ms": LONG_AGO_MS + 10, "reason": "", "sentence": ""}
    status = judged(
        events=(tick(LONG_AGO_MS), answer(2), tick()),
        decisions=(
            admit(1, LONG_AGO_MS - 10),  # its answer may stand further back than what was read
            Fence(seq=2, **about),  # type: ignore[arg-type]
            Resync(seq=3, **about),  # type: ignore[arg-type]
            evict(4, deadline_ms=NOW_MS + 30_000),
            evict(5, deadline_ms=0),
        ),
    )
    assert status.clusters[0].unanswered == 1
    (problem,) = status.problems
    assert problem.startswith("the actuator of cluster home owes 1 answer, the oldest for 60 s")


def test_statuses_are_neither_owed_an_answer_nor_told_from_each_other() -> None:
    fields: dict[str, Any] = {"cell": "default", "cluster": "home", "reason": "Changed", "sentence": ""}
    fields |= {"name": "p", "uid": "u", "generation": 1, "nodes": 1, "capacity": {}, "conditions": ()}

    def status(time_ms: int) -> ReportPool:
        return ReportPool(seq=0, time_ms=time_ms, reserved={}, unmanaged={}, **fields)

    told = judged(decisions=(status(LONG_AGO_MS + 1), status(LONG_AGO_MS + 2)))
    assert told.problems == []
    assert told.clusters[0].unanswered == 0


def test_a_scheduler_that_stands_still_is_missed() -> None:
    ledger = snapshot(("cluster", cluster()), next_seq=9, published=5)
    stale = {"time_ms": LONG_AGO_MS, "config": ledger.about["config"]}
    ledger = Snapshot(
        cell=ledger.cell, position=ledger.position, entities={**ledger.entities, "cell": (stale,)}
    )
    behind, outbox = judged(ledger, end=250).problems
    assert behind.startswith("the scheduler is 240 records behind")
    assert outbox.startswith("4 decisions in the outbox")


def test_a_log_that_ends_before_the_ledger_was_lost() -> None:
    (problem,) = judged(end=3).problems
    assert "Kafka was lost or made anew" in problem


def test_one_seq_with_two_decisions_is_a_divergence_unless_a_fence_explains_it() -> None:
    def problems(decisions: list[Line]) -> list[str]:
        status = judge(
            snapshot(("cluster", cluster())),
            partition=0,
            events=Bounds(0, 10),
            recent_events=lines(tick(), answer(7)),
            recent_decisions=decisions,
            dead_letters=0,
            now_ms=NOW_MS,
        )
        return status.problems

    def fence(seq: int) -> Fence:
        return Fence(seq=seq, cell="default", cluster="home", time_ms=1, reason="Rebuild", sentence="")

    first, other = admit(7, LONG_AGO_MS), admit(7, LONG_AGO_MS + 1)
    assert problems(lines(first, first)) == [], "published again"
    (problem,) = problems(lines(first, other))
    assert problem.startswith("divergence: two different decisions bear seq 7")
    rebuilt = lines(fence(7), admit(8, LONG_AGO_MS), epoch=Epoch(1, 10))
    assert problems([*lines(first, admit(8, 1)), *rebuilt]) == [], "the fence begins again at 7"
    assert problems([*rebuilt, *lines(other)]) == [], "written by one that was fenced off"


def test_unreadable_records_are_told() -> None:
    broken = Line(source="event", offset=3, time_ms=NOW_MS, headers={}, error="no idea")
    (problem,) = judged(unreadable=broken).problems
    assert problem.startswith("1 recent record can't be read")


def test_dead_letters_are_counted_with_the_command_that_shows_them() -> None:
    status = judged(dead_letters=2)
    assert "dead letters  2: `sluice audit dead-letters` shows" in as_shown(status)
    assert not status.problems, "what has been corrected since stays among them"
    assert "dead letters  none" in as_shown(judged())


@pytest.mark.parametrize(
    ("complaint", "words"),
    [
        (condition("Bypassed", problem="1 pod runs"), "queue leaf: Bypassed: 1 pod runs"),
        (condition("Misdirected", problem="names nobody"), "queue leaf: Misdirected: names nobody"),
        (condition("Ready", problem="no parent", status="False"), "queue leaf: not Ready: no parent"),
    ],
)
def test_what_queues_complain_of_is_told(complaint: Entity, words: str) -> None:
    good = [condition("WithinLimits"), condition("Bypassed", status="False")]
    ledger = snapshot(
        ("cluster", cluster()),
        ("queue", queue("leaf")),
        ("report", report("leaf", complaint, *good)),
        ("report", report("fine", *good)),
    )
    status = judged(ledger)
    assert status.problems == [words]
    assert status.as_json()["problems"] == [words]


def test_an_application_that_waits_is_no_problem() -> None:
    waits = condition("Granted", problem="granted 3 of 4 main; waits for 0.5 cpu", status="False")
    about = {"about": "workload/home/4711"}
    ledger = snapshot(
        ("cluster", cluster()), ("report", report("leaf")), ("report", report("", waits) | about)
    )
    assert judged(ledger).problems == []


def test_bindings_that_do_not_count_are_told() -> None:
    def namespace(cluster: str, noticed: str) -> Entity:
        return {"name": "lost", "cluster": cluster, "managed": True, "queue": "ghost", "noticed": noticed}

    ledger = snapshot(
        ("cluster", cluster()),
        ("namespace", namespace("home", "")),
        ("namespace", namespace("home", "namespace lost is bound to queue ghost, which does not exist")),
        ("namespace", namespace("away", "namespace lost is bound to nothing")),
    )
    assert judged(ledger).problems == [
        "namespace lost is bound to queue ghost, which does not exist",
        "cluster away: namespace lost is bound to nothing",
    ]


def test_what_is_set_aside_is_named_with_a_remedy() -> None:
    def aside(what: str, name: str) -> Entity:
        since_ms = NOW_MS - 120_000
        return {
            "what": what,
            "name": name,
            "reason": "ValueError: odd",
            "core_version": 1,
            "since_ms": since_ms,
        }

    rows = [("aside", aside("pod/home/1", "team/odd")), ("aside", aside("status/queue/home/2", "team"))]
    status = judged(snapshot(("cluster", cluster()), *rows))
    [pod, told] = status.problems
    assert pod.startswith(
        "pod team/odd was set aside 2 min ago, for it raised ValueError: odd; it keeps what"
    )
    assert "create it anew" in pod
    assert told.startswith("queue status team was set aside")
    assert [each["name"] for each in status.as_json()["setAside"]] == ["team/odd", "team"]
