"""The demo's own account of the cluster, and what it makes of Sluice's logs."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from sluice_local.demo import scenario, summary
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import GATE, Observation, percentile
from sluice_local.demo.scenario import CAPACITY, CREATED_WITHIN_S, PODS, TENANTS, Arrival, Tenant
from sluice_local.demo.screen import Size, picture

RESEARCH, ADS, BATCH = TENANTS


def seen(tenant: Tenant, number: int, *, gated: bool = False, phase: str = "Pending") -> dict[str, Any]:
    pod = scenario.pod(Arrival(after_s=0, tenant=tenant, number=number))
    if gated:
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
    return pod | {"status": {"phase": phase}}


def test_the_tenants_ask_for_far_more_than_there_is_and_all_within_the_time() -> None:
    arrivals = scenario.arrivals()
    assert len(arrivals) == PODS
    assert max(arrival.after_s for arrival in arrivals) < CREATED_WITHIN_S
    names = [scenario.pod(arrival)["metadata"]["name"] for arrival in arrivals]
    assert len(set(names)) == PODS
    work = sum(arrival.runs_for_s * arrival.tenant.cpu_milli for arrival in arrivals)
    assert work > 1.4 * CREATED_WITHIN_S * CAPACITY["cpu"]


def test_a_pods_life_is_counted() -> None:
    watched = Observation()
    watched.created("research-000", now=9.0)
    watched.see("ADDED", seen(RESEARCH, 0, gated=True), now=10.0)
    assert watched.tenants["research"].waiting == 1
    watched.see("MODIFIED", seen(RESEARCH, 0), now=12.0)
    assert watched.held("cpu") == RESEARCH.cpu_milli
    assert watched.waits_s["research"] == [3.0]
    watched.see("MODIFIED", seen(RESEARCH, 0, phase="Succeeded"), now=20.0)
    assert (watched.held("cpu"), watched.finished) == (0, 1)
    assert (watched.ungated, watched.lost, watched.excesses) == ([], [], [])


def test_more_than_there_is_is_noticed_even_for_a_moment() -> None:
    watched = Observation()
    for number in range(CAPACITY["cpu"] // RESEARCH.cpu_milli):
        watched.see("ADDED", seen(RESEARCH, number), now=1.0)
    assert watched.excesses == []
    watched.see("ADDED", seen(BATCH, 0), now=2.0)
    watched.see("MODIFIED", seen(BATCH, 0, phase="Succeeded"), now=2.001)
    assert watched.excesses == ["33000 of 32000 cpu"]


def test_pods_that_come_without_a_gate_and_pods_that_get_lost_are_noticed() -> None:
    watched = Observation()
    watched.see("ADDED", seen(ADS, 1), now=1.0)
    watched.see("ADDED", seen(ADS, 2, gated=True), now=1.0)
    watched.see("DELETED", seen(ADS, 2, gated=True), now=2.0)
    assert (watched.ungated, watched.lost) == (["ads-001"], ["ads-002"])
    wrong = list(summary.problems(watched, Account()))
    assert len(wrong) == 3, "and not all have finished"


def test_shares_are_means_over_the_time_when_everybody_waits() -> None:
    watched = Observation()
    for tenant in TENANTS:
        watched.see("ADDED", seen(tenant, 0, gated=True), now=100.0)
    watched.see("ADDED", seen(RESEARCH, 1), now=103.0)
    assert watched.mean_share(RESEARCH) is None, "what ran before must have finished first"
    watched.see("ADDED", seen(RESEARCH, 2), now=109.0)
    watched.see("MODIFIED", seen(ADS, 0), now=113.0)
    one = RESEARCH.cpu_milli / CAPACITY["cpu"]
    assert watched.contended_s == 8.0
    assert watched.mean_share(RESEARCH) == (4 * one + 4 * 2 * one) / 8
    watched.see("MODIFIED", seen(RESEARCH, 1, phase="Succeeded"), now=200.0)
    assert watched.contended_s == 8.0, "ads no longer waits"


def line(type_: str, record: dict[str, Any], seq: int = 0) -> dict[str, Any]:
    where = {"seq": seq, "timeMs": record["timeMs"], "subject": "pod/x", "sentence": "…"}
    return {"type": type_, "record": record, **where}


def test_a_gates_latency_is_from_the_news_to_the_outcome() -> None:
    account = Account()
    for seq in (7, 8):
        account.take(line("admit", {"namespace": RESEARCH.namespace, "timeMs": 1000}, seq))
    account.take(line("admit", {"namespace": "somebody-elses", "timeMs": 1000}, 9))
    for seq, result in ((7, "Applied"), (8, "Rejected"), (9, "Applied")):
        record = {"seq": seq, "result": result, "message": "no", "timeMs": 1042}
        account.take(line("outcome", record, seq))
    account.take({"error": "unreadable"})
    assert (account.opened, account.latencies_ms) == (1, [42])
    assert account.refusals == ["decision 8: Rejected no"]


def test_the_picture_fits_into_a_terminal() -> None:
    watched, account = Observation(), Account()
    watched.see("ADDED", seen(RESEARCH, 0), now=1.0)
    account.reports["research"] = {
        "usage": {"default/cpu": 1000},
        "demand": {"default/cpu": 3000},
        "fairShare": {"default/cpu": 16000},
        "dominantShare": "0.0156",
    }
    for width, height in ((80, 24), (140, 50)):
        console = Console(width=width, height=height)
        with console.capture() as capture:
            size = Size.fitting(width=width, height=height)
            console.print(picture(watched, account, elapsed_s=3, created=1, size=size))
        rows = capture.get().splitlines()
        assert len(rows) <= height
        assert any("research" in row and "0.016" in row for row in rows)


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 0.99) == 3
