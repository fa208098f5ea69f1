"""`make demo-real`: what it asks for, and how it judges what came of that. A real node has no part in this."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from rich.console import Console
from sluice.applications import APPLICATION_KINDS
from sluice_local.demo import scenario as simulated
from sluice_local.demo.audit import Account, Partial
from sluice_local.demo.observation import Observation, quantity
from sluice_local.demo.real import scenario, summary
from sluice_local.demo.real.results import Result, parts
from sluice_local.demo.real.scenario import CAST, ML
from sluice_local.demo.real.summary import Proof
from sluice_local.demo.scenario import BATCH, ETL, Tenant
from sluice_watcher.applications.kinds import read_application

PROVED = Proof(True, "identical")
RIGHT = {
    ETL.name: Result(ETL, (3.14159265358985,)),
    ML.name: Result(ML, (333_332_833_333_500_000,)),
    BATCH.name: Result(BATCH, (21171191, 57999475, 92678072, 124639470, 157908329, 187964655)),
}


def partial() -> Account:
    return Account(CAST, partial={ML.name: Partial(granted=2, wanted=4)})


def cpu(tenant: Tenant, kind: str) -> int:
    """What a pod of an application asks for."""
    spec = scenario.application(tenant, "an-image")["spec"]
    return quantity("cpu", spec[kind]["coreRequest"])


def test_there_is_room_for_part_of_what_spark_asks_for() -> None:
    driver, executor, limit = cpu(ETL, "driver"), cpu(ETL, "executor"), CAST.capacity["cpu"]
    assert driver + scenario.SPARK_GETS * executor == limit, "so whoever comes next takes from it"
    assert scenario.SPARK_GETS < scenario.SPARK_WANTS
    assert {name: quantity(name, text) for name, text in scenario.LIMIT.items()} == {
        name: CAST.capacity[name] for name in scenario.LIMIT
    }


@pytest.mark.parametrize(
    ("tenant", "least"),
    [(ETL, {"driver": 1, "executor": 1}), (ML, {"head": 1}), (BATCH, {"main": scenario.JOB_STARTS_WITH})],
)
def test_what_is_reserved_for_an_application_goes_to_the_real_node(
    tenant: Tenant, least: dict[str, int]
) -> None:
    application: dict[str, Any] = scenario.application(tenant, "an-image")
    application["metadata"]["uid"] = "a"
    application["spec"]["suspend"] = True
    facts = read_application(APPLICATION_KINDS[tenant.kind], application, {}, created_ms=0)
    assert {each.name: each.min_count for each in facts.pod_sets if each.min_count} == least
    assert all(each.node_selector == {"sluice.dev/node": "real"} for each in facts.pod_sets)


def test_queues_are_below_the_limited_one() -> None:
    queues = [each for each in scenario.objects().values() if each["kind"] == "Queue"]
    assert [each["spec"].get("parent") for each in queues] == [None, *[scenario.ABOVE] * len(CAST.tenants)]
    assert {tenant.name for tenant in CAST.tenants} == {tenant.name for tenant in simulated.TENANTS}


def test_what_the_jobs_pods_print_adds_up_to_what_is_right() -> None:
    command = scenario.application(BATCH, "an-image")["spec"]["template"]["spec"]["containers"][0]["command"]
    program = command[-1].replace("time.sleep", "str")
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            env={"JOB_COMPLETION_INDEX": str(index)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for index in range(scenario.JOB_PODS)
    ]
    assert Result(BATCH, parts(outputs)) == RIGHT[BATCH.name]


def test_all_as_told_is_no_problem() -> None:
    assert list(summary.problems(partial(), RIGHT, PROVED)) == []


@pytest.mark.parametrize(
    "wrong",
    [
        Result(ETL, (3.1415,)),
        Result(ETL, ()),
        Result(ML, (333_332_833_333_499_999,)),
        Result(ML, (), "no head was ready"),
        Result(BATCH, (642_361_192,)),
        Result(BATCH, (*RIGHT[BATCH.name].parts[:-1], 0)),
    ],
)
def test_a_result_that_is_not_right_is_said(wrong: Result) -> None:
    (told,) = summary.problems(partial(), RIGHT | {wrong.tenant.name: wrong}, PROVED)
    assert told.startswith(f"{wrong.tenant.name}'s result is not right")
    assert wrong.trouble in told


def test_what_is_not_proved_or_not_granted_in_part_is_said() -> None:
    told = list(summary.problems(Account(CAST), RIGHT, Proof(False, "decision 7 differs")))
    assert told == [
        "Ray's autoscaler was never granted a part of what it wanted",
        "the decisions are not proved: decision 7 differs",
    ]


def test_what_was_deserved_is_the_least_of_who_wanted_more() -> None:
    account = Account(CAST)
    for pending, share in ((2, 1400), (2, 930), (1, 700), (0, 200)):
        report = {"name": ETL.name, "pending": pending, "usage": {}, "fairShare": {"real/cpu": share}}
        account.take({"type": "reportqueue", "record": report})
    assert account.deserved == {ETL.name: {"real/cpu": 700}}
    console = Console(width=132)
    with console.capture() as capture:
        summary.show(console, Observation(CAST), account, RIGHT, PROVED, took_s=1)
    assert "0.7 cpu" in capture.get()
    assert "3.14159265358985" in capture.get()
