"""The demo's applications, as Sluice reads them: what is reserved for them is what their pods ask for."""

from __future__ import annotations

from typing import Any

import pytest
from sluice.applications import APPLICATION_KINDS
from sluice.quantities import to_base_units
from sluice_local.demo import scenario
from sluice_local.demo.operators import Spark
from sluice_local.demo.scenario import BATCH, ETL, ML, TENANTS, Tenant
from sluice_watcher.applications.kinds import read_application

Object = dict[str, Any]


def read(tenant: Tenant) -> Any:
    application = scenario.application(tenant)
    application["metadata"]["uid"] = "a"
    application["spec"]["suspend"] = True
    return read_application(APPLICATION_KINDS[tenant.kind], application, {}, created_ms=0)


@pytest.mark.parametrize("tenant", TENANTS, ids=lambda tenant: tenant.name)
def test_they_are_where_sluice_looks_for_them(tenant: Tenant) -> None:
    kind = APPLICATION_KINDS[tenant.kind]
    assert tenant.application_path == kind.path(tenant.namespace, tenant.name)


@pytest.mark.parametrize("tenant", [ETL, ML], ids=lambda tenant: tenant.name)
def test_the_kinds_stand_ins_are_of_the_same_names(tenant: Tenant) -> None:
    spec = scenario.crd(tenant)["spec"]
    kind = APPLICATION_KINDS[tenant.kind]
    assert f"{spec['group']}/{spec['versions'][0]['name']}" == kind.api_version
    assert (spec["names"]["kind"], spec["names"]["plural"]) == (kind.kind, kind.plural)


@pytest.mark.parametrize(
    ("tenant", "minima"),
    [
        (ETL, {"driver": 1, "executor": scenario.SPARK_LEAST}),
        (ML, {"head": 1, scenario.RAY_GROUP: scenario.RAY_LEAST}),
        (BATCH, {"main": scenario.JOB_STARTS_WITH}),
    ],
    ids=("etl", "ml", "batch"),
)
def test_they_wait_suspended_for_a_minimum(tenant: Tenant, minima: dict[str, int]) -> None:
    facts = read(tenant)
    assert (facts.suspendable, facts.released) == (True, False)
    assert {each.name: each.min_count for each in facts.pod_sets} == minima
    assert all(each.node_selector == {scenario.LABEL: "true"} for each in facts.pod_sets)


def test_what_is_reserved_is_what_the_pods_ask_for() -> None:
    spec = scenario.application(ML)["spec"]
    head = [*spec["headGroupSpec"]["template"]["spec"]["containers"], spec["autoscalerOptions"]]
    asked = {
        (ETL, "driver"): Spark._spec("driver")["containers"],
        (ETL, "executor"): Spark._spec("executor")["containers"],
        (ML, "head"): head,
        (ML, scenario.RAY_GROUP): spec["workerGroupSpecs"][0]["template"]["spec"]["containers"],
        (BATCH, "main"): scenario.application(BATCH)["spec"]["template"]["spec"]["containers"],
    }
    for tenant in TENANTS:
        for pod_set in read(tenant).pod_sets:
            for resource in ("cpu", "memory"):
                amounts = [each["resources"]["requests"][resource] for each in asked[tenant, pod_set.name]]
                total = sum(to_base_units(resource, text) for text in amounts)
                assert pod_set.requests[resource] == total, (tenant.name, pod_set.name, resource)
