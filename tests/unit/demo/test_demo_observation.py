"""The demo's own account of the cluster."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console
from sluice_local.demo import scenario
from sluice_local.demo.audit import Account
from sluice_local.demo.observation import GATE, Observation, percentile, quantity
from sluice_local.demo.scenario import BATCH, CAPACITY, ETL, ML, TENANTS, Tenant
from sluice_local.demo.screen import Size, picture

SIZES = {ETL: ("1", "2Gi"), ML: ("1", "8Gi"), BATCH: ("1", "1Gi")}


def seen(tenant: Tenant, name: str, *, gated: bool = False, phase: str = "Pending") -> dict[str, Any]:
    pod = {
        "metadata": {"name": name, "uid": f"{tenant.name}-{name}", "namespace": tenant.namespace},
        "spec": scenario.pod_spec("x", *SIZES[tenant]),
        "status": {"phase": phase},
    }
    if gated:
        pod["spec"]["schedulingGates"] = [{"name": GATE}]
    return pod


def workload(tenant: Tenant, phase: str, admitted: int, desired: int) -> dict[str, Any]:
    sets = [{"name": "x", "admitted": admitted, "desired": desired}]
    return {
        "metadata": {"name": f"{tenant.name}-1", "namespace": tenant.namespace},
        "spec": {"application": {"kind": tenant.kind, "name": tenant.name}},
        "status": {"phase": phase, "podSets": sets},
    }


def test_the_applications_ask_for_more_than_there_is() -> None:
    asked = 1 + scenario.SPARK_WANTS
    assert asked * 1000 > CAPACITY["cpu"], "the first of them alone is granted in part"
    for tenant in TENANTS:
        obj = scenario.application(tenant)
        assert (obj["kind"], obj["metadata"]["namespace"]) == (tenant.kind, tenant.namespace)
        assert tenant.application_path.endswith(f"/{obj['metadata']['name']}")


def test_a_pods_life_is_counted() -> None:
    watched = Observation()
    watched.see("ADDED", seen(ETL, "0", gated=True), now=10.0)
    assert watched.tenants["etl"].waiting == 1
    watched.see("MODIFIED", seen(ETL, "0"), now=12.0)
    assert (watched.held("cpu"), watched.held("memory")) == (1000, 2 * 2**30)
    assert watched.waits_s["etl"] == [2.0]
    watched.see("MODIFIED", seen(ETL, "0", phase="Succeeded"), now=20.0)
    assert (watched.held("cpu"), watched.ended, watched.is_quiet) == (0, 1, True)
    watched.see("DELETED", seen(ETL, "0", phase="Succeeded"), now=21.0)
    assert (watched.ungated, watched.ended, watched.excesses) == ([], 1, [])


def test_a_pod_that_is_deleted_while_it_runs_holds_no_more() -> None:
    watched = Observation()
    watched.see("ADDED", seen(ML, "0", gated=True), now=1.0)
    watched.see("MODIFIED", seen(ML, "0", phase="Running"), now=2.0)
    assert not watched.is_quiet
    watched.see("DELETED", seen(ML, "0", phase="Running"), now=3.0)
    assert (watched.held("memory"), watched.ended, watched.is_quiet) == (0, 1, True)


def test_pods_of_one_name_one_after_the_other_are_two() -> None:
    watched = Observation()
    for uid in ("one", "two"):
        pod = seen(ML, "head", gated=True)
        pod["metadata"]["uid"] = uid
        watched.see("ADDED", pod, now=1.0)
    assert watched.created == 2
    assert watched.tenants["ml"].waiting == 2


def test_more_than_there_is_is_noticed_even_for_a_moment() -> None:
    watched = Observation()
    for number in range(CAPACITY["cpu"] // 1000):
        watched.see("ADDED", seen(ETL, str(number)), now=1.0)
    assert watched.excesses == []
    watched.see("ADDED", seen(BATCH, "0"), now=2.0)
    watched.see("MODIFIED", seen(BATCH, "0", phase="Succeeded"), now=2.001)
    assert watched.excesses == ["33000 of 32000 cpu"]


def test_pods_that_come_without_a_gate_are_noticed() -> None:
    watched = Observation()
    watched.see("ADDED", seen(ML, "1"), now=1.0)
    watched.see("ADDED", seen(ML, "2", gated=True), now=1.0)
    assert watched.ungated == ["1"]


def test_shares_are_means_over_the_time_when_everybody_waits() -> None:
    watched = Observation()
    for tenant in TENANTS:
        watched.see("ADDED", seen(tenant, "0", gated=True), now=100.0)
    watched.see("ADDED", seen(ETL, "1"), now=101.0)
    assert watched.mean_share(ETL) is None, "what was too much must have been taken back first"
    watched.see("ADDED", seen(ETL, "2"), now=106.0)
    watched.see("MODIFIED", seen(ML, "0"), now=110.0)
    one = 1000 / CAPACITY["cpu"]
    assert watched.contended_s == 8.0
    assert watched.mean_share(ETL) == (4 * one + 4 * 2 * one) / 8
    watched.see("MODIFIED", seen(ETL, "1", phase="Succeeded"), now=200.0)
    assert watched.contended_s == 8.0, "ml no longer waits"


def test_a_workload_that_is_deleted_is_gone_until_there_is_another() -> None:
    watched = Observation()
    watched.see_workload("ADDED", workload(ML, "Running", 3, 3))
    assert watched.phase(ML) == "Running"
    watched.see_workload("DELETED", workload(ML, "Running", 3, 3))
    assert watched.phase(ML) == "gone"
    watched.see_workload("ADDED", workload(ML, "Pending", 0, 3))
    assert watched.phase(ML) == "Pending"


def test_the_picture_fits_into_a_terminal() -> None:
    watched, account = Observation(), Account()
    watched.see("ADDED", seen(ETL, "0"), now=1.0)
    watched.see_workload("ADDED", workload(ETL, "Growing", 31, 41))
    account.reports["etl"] = {
        "usage": {"default/cpu": 31000},
        "fairShare": {"default/cpu": 16000},
        "dominantShare": "0.4844",
    }
    account.story.tell(0, ETL, "granted", "30 of 40 executor; waits for 1 cpu")
    for width, height in ((80, 24), (140, 50)):
        console = Console(width=width, height=height)
        with console.capture() as capture:
            size = Size.fitting(width=width, height=height)
            console.print(picture(watched, account, elapsed_s=3, title="etl comes", size=size))
        rows = capture.get().splitlines()
        assert len(rows) <= height
        assert any("etl" in row and "31 of 41" in row and "0.484" in row for row in rows)
        assert any("granted    30 of 40 executor" in row for row in rows)


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [("cpu", "500m", 500), ("cpu", "2", 2000), ("memory", "512Mi", 2**29), ("memory", "2Gi", 2**31)],
)
def test_quantities(resource: str, text: str, amount: int) -> None:
    assert quantity(resource, text) == amount


def test_percentiles() -> None:
    assert percentile([], 0.5) == 0
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([3, 1, 2], 0.99) == 3
