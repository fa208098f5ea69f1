"""Stored objects become specs, or an error that names the object, the field and the remedy."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from sluice.crds import (
    CrdError,
    parse_dynamic_workload,
    parse_queue,
    parse_queue_job,
    parse_resource_pool,
)
from sluice.crds.facts import pool_facts, queue_facts

APPLICATIONS = Path(__file__).parents[2] / "docs" / "applications.md"


def queue(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "team-a"}, "spec": spec}


def test_an_empty_queue_has_the_documented_defaults() -> None:
    spec = parse_queue(queue())
    assert (spec.cell, spec.parent, spec.weight, spec.policy) == (None, None, 1, None)
    assert (spec.guaranteed, spec.limit, spec.pools) == ({}, {}, {})
    assert (spec.ordering, spec.preemption, spec.oversubscription) == ("bestEffortFifo", "never", "allowed")
    assert (spec.reclaim.enabled, spec.reclaim.grace_seconds, spec.reclaim.minimum_run_time_seconds) == (
        True,
        0,
        0,
    )


def test_a_full_queue_is_read() -> None:
    spec = parse_queue(
        queue(
            parent="root",
            weight=3,
            guaranteed={"cpu": "25%", "memory": "64Gi"},
            limit={"cpu": 8, "memory": "128Gi"},
            pools={"gpu": {"limit": {"nvidia.com/gpu": "50%"}}},
            namespaces={
                "names": ["a"],
                "selector": {
                    "matchLabels": {"team": "a"},
                    "matchExpressions": [{"key": "stage", "operator": "NotIn", "values": ["test"]}],
                },
            },
            acl={"users": ["ann"], "groups": ["team-a"]},
            policy="drf",
            ordering="strictFifo",
            reclaim={"enabled": False, "graceSeconds": 30, "minimumRunTimeSeconds": 60},
            preemption="lowerPriority",
            oversubscription="never",
        )
    )
    assert spec.limit == {"cpu": "8", "memory": "128Gi"}, "numbers mean what their texts mean"
    assert spec.pools["gpu"].limit == {"nvidia.com/gpu": "50%"}
    assert spec.namespaces.selector is not None
    assert spec.namespaces.selector.match_expressions[0].values == ["test"]
    assert spec.reclaim.minimum_run_time_seconds == 60


def test_what_a_queue_says_of_time_reaches_the_scheduler() -> None:
    spec = parse_queue(
        queue(
            reclaim={"lostWorkPerHourSeconds": 7200},
            tenureSeconds=1800,
            reservation={"enabled": False, "patienceSeconds": 60},
            startDeadlineSeconds=0,
        )
    )
    facts = queue_facts(spec, generation=1, created_ms=0)
    assert facts.lost_work_per_hour_ms == 7_200_000
    assert (facts.tenure_ms, facts.reserves, facts.patience_ms) == (1_800_000, False, 60_000)
    assert facts.start_deadline_ms == 0


def test_where_a_queue_says_nothing_of_time_the_settings_hold() -> None:
    facts = queue_facts(parse_queue(queue()), generation=1, created_ms=0)
    assert facts.lost_work_per_hour_ms is None
    assert (facts.tenure_ms, facts.patience_ms, facts.start_deadline_ms) == (None, None, None)
    assert facts.reserves


def test_fields_of_a_later_schema_are_left_alone() -> None:
    assert parse_queue(queue(weight=2, brandNew={"a": 1})).weight == 2


@pytest.mark.parametrize(
    ("spec", "field", "remedy"),
    [
        ({"weight": 0}, "spec.weight", "greater than or equal to 1 (found 0)"),
        ({"weight": 1.5}, "spec.weight", "valid integer"),
        ({"weight": 10**7}, "spec.weight", "less than or equal to 1000000"),
        ({"guaranteed": {"cpu": "4x"}}, "spec.guaranteed.cpu", "for example 4, 500m or 16Gi"),
        ({"limit": {"cpu": "-1"}}, "spec.limit.cpu", "'-1' is negative: write 0 or more"),
        ({"limit": {"cpu": "150%"}}, "spec.limit.cpu", "write a number from 0 to 100"),
        ({"limit": {"cpu": True}}, "spec.limit.cpu", "valid string"),
        ({"limit": {"cpu": 1.5}}, "spec.limit.cpu", "valid string"),
        ({"pools": {"gpu": {"limit": {"cpu": "?"}}}}, "spec.pools.gpu.limit.cpu", "not a quantity"),
        ({"cell": "x", "parent": "root"}, "spec", "remove cell"),
        ({"cell": "X"}, "spec.cell", "(found 'X')"),
        ({"parent": "team-a"}, "spec.parent", "name the queue above"),
        ({"guaranteed": {"cpu": "4"}, "limit": {"cpu": "3999m"}}, "spec", "raise limit or lower guaranteed"),
        ({"guaranteed": {"cpu": "51%"}, "limit": {"cpu": "50%"}}, "spec", "raise limit or lower guaranteed"),
        ({"tenureSeconds": -1}, "spec.tenureSeconds", "greater than or equal to 0 (found -1)"),
        ({"reservation": {"patienceSeconds": "5m"}}, "spec.reservation.patienceSeconds", "(found '5m')"),
        ({"ordering": "fifo"}, "spec.ordering", "'strictFifo' or 'bestEffortFifo' (found 'fifo')"),
        (
            {"namespaces": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            "spec.namespaces.selector.matchExpressions[0]",
            "In and NotIn need values",
        ),
    ],
)
def test_a_wrong_queue_is_told_what_is_wrong(spec: dict[str, Any], field: str, remedy: str) -> None:
    with pytest.raises(CrdError) as error:
        parse_queue(queue(**spec))
    assert str(error.value).startswith(f"Queue team-a: {field}: ")
    assert remedy in str(error.value)


def test_every_mistake_is_named_at_once() -> None:
    with pytest.raises(CrdError, match=r"spec\.limit\.cpu: .*; spec\.weight: "):
        parse_queue(queue(weight=0, limit={"cpu": "?"}))


@pytest.mark.parametrize("obj", [{"spec": None}, {"metadata": {}, "spec": "x"}])
def test_even_what_is_no_queue_at_all_is_named(obj: dict[str, Any]) -> None:
    with pytest.raises(CrdError, match=r"Queue \(unnamed\): spec: "):
        parse_queue(obj)


@pytest.mark.parametrize(
    ("guaranteed", "limit"),
    [("4", "4"), ("4000m", "4"), ("50%", "50%"), ("50%", "1"), ("100", "1%"), ("0", "0")],
)
def test_what_cannot_be_compared_is_not_refused(guaranteed: str, limit: str) -> None:
    parse_queue(queue(guaranteed={"cpu": guaranteed}, limit={"cpu": limit}))


def test_pools() -> None:
    assert parse_resource_pool({"metadata": {"name": "p"}, "spec": {}}).cell == "default"
    assert parse_resource_pool({"spec": {"nodeSelector": {"gpu": "yes"}}}).node_selector == {"gpu": "yes"}
    with pytest.raises(CrdError, match=r"ResourcePool p: spec\.nodeSelector\.a: "):
        parse_resource_pool({"metadata": {"name": "p"}, "spec": {"nodeSelector": {"a": 1}}})


def test_a_pool_names_its_supply_or_is_one_of_those_that_do_not() -> None:
    spec = parse_resource_pool({"spec": {"supply": "a100"}})
    assert pool_facts(spec, generation=1).supply == "a100"
    assert pool_facts(parse_resource_pool({"spec": {}}), generation=1).supply == ""
    with pytest.raises(CrdError, match=r"ResourcePool p: spec\.supply: "):
        parse_resource_pool({"metadata": {"name": "p"}, "spec": {"supply": "A/100"}})


def test_workloads_name_their_namespace() -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {
            "application": {"apiVersion": "batch/v1", "kind": "Job", "name": "w"},
            "podSets": [{"name": "main", "count": 3, "minCount": 2, "requests": {"cpu": 1}}],
        },
    }
    assert parse_dynamic_workload(obj).pod_sets[0].requests == {"cpu": "1"}
    obj["spec"]["podSets"][0]["minCount"] = 4
    with pytest.raises(
        CrdError, match=r"DynamicWorkload ns/w: spec\.podSets\[0\]: minCount must not exceed count"
    ):
        parse_dynamic_workload(obj)


def test_queue_jobs() -> None:
    assert parse_queue_job({"spec": {"template": {"spec": {}}}}).replicas == 1
    with pytest.raises(CrdError, match=r"QueueJob \(unnamed\): spec\.template: Field required"):
        parse_queue_job({"spec": {}})
    with pytest.raises(CrdError, match="minAvailable must not exceed replicas"):
        parse_queue_job({"spec": {"template": {}, "minAvailable": 2}})


def test_the_documented_manifests_are_valid_and_belong_together() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", APPLICATIONS.read_text(), re.DOTALL)
    manifests = {obj["kind"]: obj for block in blocks for obj in yaml.safe_load_all(block)}
    assert parse_queue_job(manifests["QueueJob"]).min_available == 2
    workload, labels = manifests["DynamicWorkload"], manifests["Pod"]["metadata"]["labels"]
    assert labels["sluice.dev/workload"] == workload["metadata"]["name"]
    assert labels["sluice.dev/pod-set"] in {each.name for each in parse_dynamic_workload(workload).pod_sets}
