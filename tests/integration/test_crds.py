"""deploy/crds on a real API server: what its schemas and CEL rules take, refuse, and say."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cluster_api import Answer, Api, Object, made, refused
from sluice.crds import parse_dynamic_workload, parse_queue, parse_queue_job, parse_resource_pool
from sluice.generate.crds import KINDS
from sluice.vocabulary import API_VERSION, GROUP, VERSION
from sluice_local import Stack

pytestmark = pytest.mark.integration

BASE = f"/apis/{GROUP}/{VERSION}"
NAMESPACED = f"{BASE}/namespaces/default"


@pytest.fixture(scope="module")
def api(stack: Stack) -> Iterator[Api]:
    api = Api(stack.endpoints)
    yield api
    for kind in KINDS:
        where = NAMESPACED if kind.namespaced else BASE
        api.delete(f"{where}/{kind.plural}?labelSelector=test=crds")


def obj(kind: str, spec: object, **metadata: Any) -> Object:
    named = metadata if "name" in metadata else {"generateName": "test-", **metadata}
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {**named, "labels": {"test": "crds"}},
        "spec": spec,
    }


def queue(api: Api, spec: object, **metadata: Any) -> Answer:
    return api.create(f"{BASE}/queues?fieldValidation=Strict", obj("Queue", spec, **metadata))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_schema_is_served_and_structural(api: Api, kind: Any) -> None:
    crd = made(api.get(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{kind.plural}.{GROUP}"))
    conditions = {condition["type"]: condition["status"] for condition in crd["status"]["conditions"]}
    assert conditions["Established"] == "True"
    assert "NonStructuralSchema" not in conditions
    assert crd["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert {"sluice"} == set(crd["spec"]["names"]["categories"])


FULL_QUEUE: Object = {
    "parent": "root",
    "weight": 3,
    "guaranteed": {"cpu": "25%", "memory": "64Gi", "nvidia.com/gpu": 1},
    "limit": {"cpu": "1e1", "memory": "128Gi", "nvidia.com/gpu": "100%"},
    "pools": {"gpu": {"guaranteed": {"cpu": "500m"}, "limit": {"cpu": ".5"}}},
    "namespaces": {
        "names": ["a"],
        "selector": {
            "matchLabels": {"team": "a"},
            "matchExpressions": [
                {"key": "stage", "operator": "NotIn", "values": ["test"]},
                {"key": "owner", "operator": "Exists"},
            ],
        },
    },
    "acl": {"users": ["ann"], "groups": ["team-a"]},
    "policy": "drf",
    "ordering": "strictFifo",
    "reclaim": {"enabled": False, "graceSeconds": 30, "minimumRunTimeSeconds": 60},
    "preemption": "lowerPriority",
    "oversubscription": "never",
}


def test_what_the_server_takes_the_services_can_read(api: Api) -> None:
    stored = made(queue(api, FULL_QUEUE))
    assert stored["spec"] == FULL_QUEUE, "nothing is pruned"
    assert parse_queue(stored).reclaim.grace_seconds == 30


def test_defaults_are_those_of_the_models(api: Api) -> None:
    stored = made(queue(api, {"reclaim": {}}))["spec"]
    spec = parse_queue({"spec": {}})
    assert stored == {
        "weight": spec.weight,
        "ordering": spec.ordering,
        "preemption": spec.preemption,
        "oversubscription": spec.oversubscription,
        "reclaim": spec.reclaim.model_dump(by_alias=True, exclude_none=True),
    }


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"weight": 0}, ["spec.weight", "greater than or equal to 1"]),
        ({"weight": 1.5}, ["spec.weight", "integer"]),
        ({"tenureSeconds": -1}, ["spec.tenureSeconds", "greater than or equal to 0"]),
        ({"reservation": {"patienceSeconds": "5m"}}, ["spec.reservation.patienceSeconds", "integer"]),
        ({"reclaim": {"lostWorkPerHourSeconds": -1}}, ["spec.reclaim.lostWorkPerHourSeconds"]),
        ({"guaranteed": {"cpu": "4x"}}, ["spec.guaranteed[cpu]", "such as 4, 500m or 16Gi"]),
        ({"limit": {"cpu": "-1"}}, ["spec.limit[cpu]", "quantity of 0 or more"]),
        ({"limit": {"cpu": -1}}, ["spec.limit[cpu]", "quantity of 0 or more"]),
        ({"limit": {"cpu": "Mi"}}, ["spec.limit[cpu]", "quantity of 0 or more"]),
        ({"limit": {"cpu": "101%"}}, ["spec.limit[cpu]", "percentage of the pool from 0% to 100%"]),
        ({"limit": {"cpu": "-1%"}}, ["spec.limit[cpu]", "percentage of the pool from 0% to 100%"]),
        ({"limit": {"cpu": "1" * 41}}, ["spec.limit.cpu", "40"]),
        (
            {"pools": {"gpu": {"limit": {"cpu": "?"}}}},
            ["spec.pools[gpu].limit[cpu]", "quantity of 0 or more"],
        ),
        ({"cell": "x", "parent": "root"}, ["root queues only"]),
        ({"cell": "No}"}, ["spec.cell"]),
        ({"guaranteed": {"cpu": 4}, "limit": {"cpu": "3999m"}}, ["raise limit or lower guaranteed"]),
        ({"guaranteed": {"cpu": "51%"}, "limit": {"cpu": "50%"}}, ["raise limit or lower guaranteed"]),
        (
            {"pools": {"gpu": {"guaranteed": {"cpu": 4}, "limit": {"cpu": 2}}}},
            ["spec.pools[gpu]", "raise limit or lower guaranteed"],
        ),
        ({"ordering": "fifo"}, ["spec.ordering", "strictFifo"]),
        ({"preemption": "always"}, ["spec.preemption", "lowerPriority"]),
        ({"reclaim": {"graceSeconds": -1}}, ["spec.reclaim.graceSeconds"]),
        (
            {"namespaces": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            ["spec.namespaces.selector.matchExpressions[0]", "In and NotIn need values"],
        ),
        ({"wieght": 2}, ["spec.wieght"]),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_wrong_queue_is_refused_by_field(api: Api, spec: Object, words: list[str]) -> None:
    refused(queue(api, spec), *words)


@pytest.mark.parametrize(
    ("guaranteed", "limit"),
    [("4000m", 4), ("50%", "50%"), ("50%", "1"), ("100", "1%"), ("0", "0"), (0, "0%")],
)
def test_what_cannot_be_compared_is_not_refused(api: Api, guaranteed: str | int, limit: str | int) -> None:
    made(queue(api, {"guaranteed": {"cpu": guaranteed}, "limit": {"cpu": limit}}))


def test_a_queue_is_not_its_own_parent(api: Api) -> None:
    refused(queue(api, {"parent": "self"}, name="self"), "spec.parent", "name the queue above")


def test_a_queue_s_name_fits_into_a_label(api: Api) -> None:
    refused(queue(api, {}, name="q" * 64), "at most 63 characters")
    made(queue(api, {}, name="test-" + "q" * 58))


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [
        (None, "default", True),
        ("default", None, True),
        (None, "x", False),
        ("x", "y", False),
        ("x", None, False),
    ],
)
def test_a_root_queue_stays_in_its_cell(
    api: Api, before: str | None, after: str | None, allowed: bool
) -> None:
    name = made(queue(api, {"cell": before} if before else {}))["metadata"]["name"]
    answer = api.merge(f"{BASE}/queues/{name}", {"spec": {"cell": after}})
    if allowed:
        made(answer)
    else:
        refused(answer, "cell cannot be changed")


def test_a_pool_stays_in_its_cell(api: Api) -> None:
    stored = made(api.create(f"{BASE}/resourcepools", obj("ResourcePool", {"nodeSelector": {"gpu": "yes"}})))
    assert parse_resource_pool(stored).cell == "default"
    path = f"{BASE}/resourcepools/{stored['metadata']['name']}"
    refused(api.merge(path, {"spec": {"cell": "x"}}), "spec.cell", "cell cannot be changed")
    made(api.merge(path, {"spec": {"cell": None, "nodeSelector": {"gpu": "no"}}}))


def test_status_is_written_apart_and_shown(api: Api) -> None:
    name = made(queue(api, {}))["metadata"]["name"]
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Accepted",
        "message": "Serving.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {
        "usage": {"default/cpu": "3.5"},
        "demand": {"cpu": "5"},
        "fairShare": {"cpu": "4"},
        "dominantShare": "0.4375",
        "dominantResource": "cpu",
        "pending": 2,
        "running": 3,
        "pendingWorkloads": 36,
        "admittedWorkloads": 4,
        "lostWorkSeconds": 90,
        "lostWorkLastHourSeconds": 60,
        "decision": "1-4711.42",
        "observedGeneration": 1,
        "conditions": [condition],
    }
    path = f"{BASE}/queues/{name}"
    assert "status" not in made(api.merge(path, {"status": status}))
    assert made(api.merge(f"{path}/status", {"status": status}))["status"] == status
    table = made(api.get(path, accept="application/json;as=Table;v=v1;g=meta.k8s.io"))
    row = dict(
        zip([column["name"] for column in table["columnDefinitions"]], table["rows"][0]["cells"], strict=True)
    )
    assert (row["Share"], row["Of"], row["Running"], row["Pending"]) == ("0.4375", "cpu", 3, 2)
    assert (row["Apps"], row["Apps Pending"], row["Lost Work"]) == (4, 36, 90)
    assert (row["Ready"], row["Decision"]) == ("True", "1-4711.42")


WORKLOAD: Object = {
    "application": {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "1"},
    "applicationSpec": {"parallelism": 3, "anything": {"at": ["all"]}},
    "podSets": [{"name": "Main_1.b", "count": 3, "minCount": 2, "maxCount": 9, "requests": {"cpu": "1"}}],
    "priorityClassName": "high",
    "priority": 1000,
    "gang": {"deadlineSeconds": 60, "onDeadline": "soft"},
}


def test_a_workload_keeps_all_that_it_was_given(api: Api) -> None:
    stored = made(api.create(f"{NAMESPACED}/dynamicworkloads", obj("DynamicWorkload", WORKLOAD)))
    assert stored["spec"] == WORKLOAD
    assert parse_dynamic_workload(stored).pod_sets[0].max_count == 9


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"minCount": 4}, ["spec.podSets[0]", "minCount must not exceed count"]),
        ({"maxCount": 2}, ["spec.podSets[0]", "count must not exceed maxCount"]),
        ({"name": "not one"}, ["spec.podSets[0].name"]),
        ({"requests": {"cpu": "50%"}}, ["spec.podSets[0].requests[cpu]", "quantity of 0 or more"]),
    ],
)
def test_wrong_pod_sets_are_refused(api: Api, change: Object, words: list[str]) -> None:
    spec = {**WORKLOAD, "podSets": [{**WORKLOAD["podSets"][0], **change}]}
    refused(api.create(f"{NAMESPACED}/dynamicworkloads", obj("DynamicWorkload", spec)), *words)


def test_queue_jobs(api: Api) -> None:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "main", "image": "none"}]},
    }
    stored = made(
        api.create(f"{NAMESPACED}/queuejobs", obj("QueueJob", {"template": template, "replicas": 3}))
    )
    assert stored["spec"]["template"] == template
    assert parse_queue_job(stored).backoff_limit == stored["spec"]["backoffLimit"] == 6
    wrong = obj("QueueJob", {"template": template, "minAvailable": 2})
    refused(api.create(f"{NAMESPACED}/queuejobs", wrong), "minAvailable must not exceed replicas")


def test_every_field_explains_itself() -> None:
    """kubectl explain shows descriptions; a field without one is a question that nobody answers."""
    deploy = Path(__file__).parents[2] / "deploy" / "crds"
    unexplained = [
        path
        for kind in KINDS
        for path in _unexplained(
            yaml.safe_load((deploy / kind.file_name).read_text())["spec"]["versions"][0]["schema"][
                "openAPIV3Schema"
            ],
            kind.name,
        )
    ]
    assert unexplained == []


def _unexplained(schema: Object, path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        if name in ("apiVersion", "kind", "metadata"):
            continue
        if not field.get("description"):
            yield f"{path}.{name}"
        yield from _unexplained(field, f"{path}.{name}")
        for nested in ("items", "additionalProperties"):
            yield from _unexplained(field.get(nested, {}), f"{path}.{name}[]")
