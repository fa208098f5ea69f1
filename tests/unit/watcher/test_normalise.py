"""Objects → events: what counts of each, and nothing that its writer left out makes one unreadable."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from samples_of_objects import (
    CLUSTER,
    TIME_MS,
    Json,
    container,
    custom,
    metadata,
    namespace,
    node,
    owned_by_daemonset,
    pod,
    seen,
)
from sluice.applications import APPLICATION_KINDS
from sluice.codec import EVENTS
from sluice.events import PodFacts, QueueFacts
from sluice.values import LabelRequirement, NamespaceSelector
from sluice.vocabulary import GATE
from sluice_watcher import normalise

CREATED_MS = 1_767_323_045_000


def test_an_event_names_object_version_and_change() -> None:
    event = normalise.pod(seen(pod("p", "team"), "MODIFIED"))
    assert (event.id, event.subject) == (f"{CLUSTER}/pod/uid-of-p/7/MODIFIED", "pod/team/p")
    assert (event.time_ms, event.more) == (TIME_MS, False)


def test_records_of_a_list_say_that_more_come() -> None:
    assert normalise.pod(seen(pod(), listed=True)).more


def test_a_pod_with_everything_that_counts() -> None:
    body = pod(
        metadata={
            "labels": {"sluice.dev/queue": "etl", "app": "x"},
            "annotations": {"sluice.dev/decision": "1-17.4"},
            "deletionTimestamp": "2026-01-02T03:05:05Z",
        },
        spec={
            "schedulingGates": [{"name": "other"}, {"name": "sluice.dev/admission"}],
            "priority": 100,
            "nodeName": "n",
            "nodeSelector": {"disk": "ssd"},
        },
        status={"phase": "Running"},
    )
    assert normalise.pod(seen(body)).pod == PodFacts(
        requests={"cpu": 1000, "pods": 1},
        created_ms=CREATED_MS,
        queue="etl",
        priority=100,
        gated=True,
        decision="1-17.4",
        node="n",
        node_selector={"disk": "ssd"},
        phase="Running",
        deleting=True,
    )


def test_a_pod_with_hardly_anything() -> None:
    body = pod(spec={"schedulingGates": [{"name": "other"}], "priority": None}, status={"phase": "Pending"})
    facts = normalise.pod(seen(body)).pod
    assert facts == PodFacts(requests={"cpu": 1000, "pods": 1}, created_ms=CREATED_MS)


@pytest.mark.parametrize(
    ("about", "by_nature"),
    [
        ({}, False),
        (owned_by_daemonset(), True),
        ({"ownerReferences": [{"kind": "DaemonSet", "name": "x", "uid": "d"}]}, False),
        ({"ownerReferences": [{"kind": "Job", "name": "x", "uid": "d", "controller": True}]}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "hash"}}, True),
        ({"annotations": {"other": ""}}, False),
        # Its owner may have written another owner into it, so as to be charged to nobody.
        (owned_by_daemonset() | {"annotations": {"sluice.dev/decision": "1-2.3"}}, False),
    ],
)
def test_which_pods_are_unmanaged_by_nature(about: dict[str, Any], by_nature: bool) -> None:
    assert normalise.is_unmanaged(pod(metadata=about)) is by_nature


@pytest.mark.parametrize(
    ("about", "left_out"),
    [
        ({}, False),
        ({"labels": {"interactive": ""}}, True),
        ({"labels": {"interactive": ""}, "annotations": {"sluice.dev/decision": "1-2.3"}}, False),
    ],
)
def test_a_pod_that_the_selector_leaves_out_is_unmanaged_unless_it_was_admitted(
    about: Json, left_out: bool
) -> None:
    selector = [LabelRequirement(key="interactive", operator="DoesNotExist")]
    assert normalise.is_unmanaged(pod(metadata=about), selector) is left_out


@pytest.mark.parametrize(("gate", "by_nature"), [("sluice.dev/admission", False), ("other", True)])
def test_a_pod_behind_our_gate_is_managed_whoever_owns_it(gate: str, by_nature: bool) -> None:
    gated = pod(metadata=owned_by_daemonset(), spec={"schedulingGates": [{"name": gate}]})
    assert normalise.is_unmanaged(gated) is by_nature


@pytest.mark.parametrize(
    ("spec", "status", "schedulable"),
    [
        ({}, {}, True),  # nobody reports for nodes on a bare API server
        ({}, {"conditions": []}, True),
        ({}, {"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ({}, {"conditions": [{"type": "Ready", "status": "Unknown"}]}, False),
        ({}, {"conditions": [{"type": "MemoryPressure", "status": "False"}]}, False),
        ({"unschedulable": True}, {"conditions": [{"type": "Ready", "status": "True"}]}, False),
    ],
)
def test_a_node_is_schedulable_when_ready_and_not_cordoned(
    spec: dict[str, Any], status: dict[str, Any], schedulable: bool
) -> None:
    assert normalise.node(seen(node(spec=spec, **status))).node.schedulable is schedulable


def test_a_node_offers_what_it_can_allocate() -> None:
    offered = {"cpu": "3920m", "memory": "1Gi", "pods": "110", "nvidia.com/gpu": "8"}
    facts = normalise.node(seen(node(labels={"zone": "a"}, allocatable=offered))).node
    assert facts.allocatable == {"cpu": 3920, "memory": 2**30, "pods": 110, "nvidia.com/gpu": 8}
    assert facts.labels == {"zone": "a"}


def test_a_node_that_has_not_reported_yet_offers_nothing() -> None:
    assert normalise.node(seen({"metadata": metadata("n"), "spec": {}, "status": {}})).node.allocatable == {}


@pytest.mark.parametrize(
    ("body", "managed", "queue"),
    [
        (namespace("team", "etl"), True, "etl"),
        (namespace("team"), True, ""),
        (namespace("team", "etl", managed=False), False, "etl"),
        ({"metadata": metadata("bare")}, False, ""),
    ],
)
def test_a_namespace_and_its_binding(body: dict[str, Any], managed: bool, queue: str) -> None:
    read = partial(normalise.namespace, managed_selector={"sluice.dev/managed": "true"})
    event = read(seen(body))
    assert (event.managed, event.queue) == (managed, queue)


def test_a_priority_class_is_its_value() -> None:
    high = {"metadata": metadata("high"), "value": 1000}
    assert normalise.priority_class(seen(high)).value == 1000
    assert not normalise.priority_class(seen(high)).global_default
    assert normalise.priority_class(seen({**high, "globalDefault": True})).global_default


def test_a_queue_with_everything() -> None:
    body = custom(
        "etl",
        parent="root",
        weight=3,
        guaranteed={"cpu": 8},
        limit={"cpu": "50%"},
        pools={"gpu": {"limit": {"nvidia.com/gpu": "4"}}, "spot": {"guaranteed": {"cpu": "10%"}}},
        namespaces={
            "names": ["team"],
            "selector": {
                "matchLabels": {"tier": "gold"},
                "matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "test"]}],
            },
        },
        ordering="strictFifo",
        preemption="lowerPriority",
        reclaim={"enabled": False, "graceSeconds": 30, "minimumRunTimeSeconds": 60},
        policy="fifo",
    )
    assert normalise.queue(seen(body)).queue == QueueFacts(
        parent="root",
        weight=3,
        guaranteed={"cpu": "8"},
        limit={"cpu": "50%"},
        guaranteed_by_pool={"spot": {"cpu": "10%"}},
        limit_by_pool={"gpu": {"nvidia.com/gpu": "4"}},
        namespaces=NamespaceSelector(
            names=("team",),
            requirements=(
                LabelRequirement(key="tier", operator="In", values=("gold",)),
                LabelRequirement(key="env", operator="In", values=("dev", "test")),
            ),
        ),
        ordering="strictFifo",
        preemption="lowerPriority",
        reclaim=False,
        grace_ms=30_000,
        minimum_run_ms=60_000,
        policy="fifo",
        created_ms=CREATED_MS,
        generation=3,
    )


def test_a_queue_with_nothing_has_the_defaults() -> None:
    assert normalise.queue(seen(custom("root"))).queue == QueueFacts(generation=3, created_ms=CREATED_MS)


@pytest.mark.parametrize(
    ("namespaces", "selected"),
    [({}, False), ({"selector": {}}, True), ({"selector": {"matchLabels": {"tier": "gold"}}}, False)],
)
def test_an_absent_selector_selects_nothing_and_an_empty_one_everything(
    namespaces: dict[str, Any], selected: bool
) -> None:
    facts = normalise.queue(seen(custom("q", namespaces=namespaces))).queue
    assert facts.namespaces.selects("team", namespace("team")["metadata"]["labels"]) is selected


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"weight": -1}, "spec.weight"),
        ({"guaranteed": {"cpu": "a few"}}, "spec.guaranteed"),
        ({"parent": "q"}, "spec.parent"),
        ({"ordering": "lifo"}, "spec.ordering"),
    ],
)
def test_a_queue_that_makes_no_sense_says_so(spec: dict[str, Any], field: str) -> None:
    facts = normalise.queue(seen(custom("q", **spec))).queue
    assert field in facts.problem
    assert facts == QueueFacts(generation=3, problem=facts.problem)


def test_a_pool() -> None:
    facts = normalise.pool(seen(custom("gpu", cell="b", nodeSelector={"gpu": "yes"}))).pool
    assert (facts.cell, facts.node_selector, facts.problem) == ("b", {"gpu": "yes"}, "")


def test_a_pool_that_makes_no_sense_says_so() -> None:
    assert "spec.nodeSelector" in normalise.pool(seen(custom("gpu", nodeSelector="gpu=yes"))).pool.problem


def test_every_event_can_be_encoded_and_read_back() -> None:
    events = [
        normalise.pod(seen(pod())),
        normalise.node(seen(node())),
        normalise.namespace(seen(namespace()), managed_selector={}),
        normalise.queue(seen(custom("q", namespaces={"names": ["a"]}))),
        normalise.pool(seen(custom("p", nodeSelector={"a": "b"}))),
    ]
    for event in events:
        message = EVENTS.encode(event, source="test")
        assert EVENTS.decode(message.headers, message.value) == event


NONSENSE = [
    {"sluice.dev/pod-group-size": "many"},
    {"sluice.dev/gang-deadline-seconds": "soon"},
    {"sluice.dev/gang-deadline-seconds": "60", "sluice.dev/gang-on-deadline": "perhaps"},
]


@pytest.mark.parametrize("annotations", NONSENSE)
def test_a_pod_that_waits_is_unreadable_while_its_group_makes_no_sense(annotations: Json) -> None:
    gated = pod(metadata={"annotations": annotations}, spec={"schedulingGates": [{"name": GATE}]})
    with pytest.raises(ValueError, match=r"metadata\.annotations\.sluice\.dev/"):
        normalise.pod(seen(gated))
    normalise.pod(seen(gated, "DELETED"))


@pytest.mark.parametrize("annotations", NONSENSE)
def test_nobody_makes_a_pod_unreadable_that_holds_something(annotations: Json) -> None:
    decided = annotations | {"sluice.dev/decision": "1-2.3"}
    facts = normalise.pod(seen(pod(metadata={"annotations": decided}, status={"phase": "Running"}))).pod
    assert (facts.requests, facts.decision) == ({"cpu": 1000, "pods": 1}, "1-2.3")
    assert (facts.group_size, facts.gang) == (0, None)


@pytest.mark.parametrize("claimed", ["me", "1-2.\u00b2", f"1-2.{'9' * 5_000}"])
def test_a_decision_that_no_actuator_can_have_written_is_none(claimed: str) -> None:
    about = {"annotations": {"sluice.dev/decision": claimed}}
    assert normalise.pod(seen(pod(metadata=about))).pod.decision == ""
    template = {"spec": {"containers": [container(cpu="1")]}}
    job = {"metadata": metadata("j", namespace="team", **about), "spec": {"template": template}}
    event = normalise.application(seen(job), kind=APPLICATION_KINDS["Job"], selector={}, overheads={})
    assert (event.workload.decision, event.workload.problem) == ("", "")


def test_labels_piled_up_on_a_namespace_do_not_hide_it() -> None:
    piled = namespace("team", "leaf")
    own = dict(piled["metadata"]["labels"])
    piled["metadata"]["labels"] |= {f"example.com/{number}": "x" * 63 for number in range(13_000)}
    event = normalise.namespace(seen(piled), managed_selector={"sluice.dev/managed": "true"})
    assert (event.labels, event.managed, event.queue) == (own, True, "leaf")
    assert len(EVENTS.value(event)) < 10_000
