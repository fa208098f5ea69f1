"""Bad input gets a clear answer that names the place and the remedy, and everybody else's work goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from audit import Audit
from cluster import Tenants, node, observed, pod, pool, queue
from cluster_api import Object, eventually, made
from sluice.codec import EVENTS, Message, find_header
from sluice.events import Event, OutcomeEvent, TickEvent
from sluice.kafka import LogWriter
from sluice.vocabulary import API_VERSION, MANAGED_LABEL, QUEUE_LABEL
from sluice_local import Stack

pytestmark = pytest.mark.e2e


def append(audit: Audit, *messages: Message) -> None:
    async def run() -> None:
        writer = LogWriter(audit.settings)
        await writer.append(audit.settings.events_topic, 0, messages)
        await writer.close()

    asyncio.run(run())


def condition(tenants: Tenants, name: str, kind: str) -> Any:
    conditions = tenants.queue_status(name).get("conditions", [])
    return next((c for c in conditions if c["type"] == kind), None)


def test_unreadable_records_are_set_aside(tenants: Tenants, audit: Audit) -> None:
    tenants.provide(pool(), node("n0"), queue("ant"))
    tenants.settle("ant")
    tick = EVENTS.encode(TickEvent(time_ms=1, cluster="local"), source="test")
    future = [(k, v.replace(b".v1", b".v99") if k == "ce_type" else v) for k, v in tick.headers]
    bad = {
        "no CloudEvent": Message(key=b"", value=b"\x00\xff", headers=[]),
        "version": Message(key=b"", value=tick.value, headers=future),
        "not JSON": Message(key=b"", value=b"{{{", headers=tick.headers),
        "missing field": Message(key=b"", value=b"{}", headers=tick.headers),
    }
    before = len(audit.dead_letters())
    append(audit, *bad.values())
    assert tenants.submit("ant", pod("behind")).ok
    eventually(lambda: tenants.phases("ant")["behind"] != "gated", seconds=30)
    letters = audit.dead_letters()[before:]
    assert [letter.value for letter in letters] == [message.value for message in bad.values()]
    errors = [find_header(letter.headers, "sluice_error") or "" for letter in letters]
    for words, error in zip(
        ("ce_type is missing", "version '99'", "Invalid JSON", "timeMs"), errors, strict=True
    ):
        assert words in error


def test_queues_that_cannot_stand_say_why(tenants: Tenants) -> None:
    tenants.provide(
        pool(),
        node("n0"),
        queue("good"),
        queue("orphan", parent="nobody"),
        queue("hen", parent="egg"),
        queue("egg", parent="hen"),
    )
    for name, words in (("orphan", "nobody does not exist"), ("hen", "circle"), ("egg", "circle")):

        def says_why(name: str = name, words: str = words) -> bool:
            """A report may tell of the moment when only one of two queues was there; the next says more."""
            found = condition(tenants, name, "Ready")
            return bool(found) and found["status"] == "False" and words in found["message"]

        eventually(says_why, seconds=30)
    tenants.settle("good")
    assert tenants.submit("good", pod("fine")).ok
    eventually(lambda: tenants.phases("good")["fine"] != "gated", seconds=30)


@pytest.mark.parametrize("weight", [0, -1])
def test_nonsense_is_refused_at_the_door(tenants: Tenants, weight: int) -> None:
    path = "/apis/sluice.dev/v1alpha1/queues"
    assert tenants.api.create(path, queue("bad", weight=weight)).status == 422
    answer = tenants.api.create(path, queue("bad", limit={"cpu": "-4"}))
    assert answer.status == 422
    assert "spec.limit" in answer.message


def test_objects_of_whatever_length_stop_nobody(tenants: Tenants, audit: Audit) -> None:
    """One larger than a record, one that can't be read, one that the API server refuses at full length."""
    tenants.provide(pool(), node("n0"), queue("ant"))
    tenants.settle("ant")
    before = len(audit.dead_letters())
    namespace, long = "namespaces/ant", "x" * 1_050_000
    choosy = pod("choosy")["spec"] | {"nodeSelector": {f"example.com/{n}": "x" * 60 for n in range(12_000)}}
    made(
        tenants.api.create(f"/apis/batch/v1/{namespace}/jobs", template("batch/v1", "Job", "choosy", choosy))
    )
    odd = pod("odd", annotations={"sluice.dev/pod-group-size": long[:250_000]})
    odd["spec"]["containers"][0]["env"] = [{"name": "LONG", "value": long[:900_000]}]
    assert tenants.submit("ant", odd).ok
    refused = pod("refused")["spec"]
    refused["containers"][0]["imagePullPolicy"] = long
    jobs = f"/apis/{API_VERSION}/{namespace}/queuejobs"
    made(tenants.api.create(jobs, template(API_VERSION, "QueueJob", "refused", refused)))
    eventually(lambda: any(_is_refusal(event, long[:500]) for event in audit.events()), seconds=30)
    assert tenants.submit("ant", pod("fine")).ok
    eventually(lambda: tenants.phases("ant")["fine"] != "gated", seconds=30)
    assert {letter.key for letter in audit.dead_letters()[before:]} == {
        b"workload/ant/choosy",
        b"pod/ant/odd",
    }
    made(tenants.api.delete(f"{jobs}/refused"))
    made(tenants.api.delete(f"/apis/batch/v1/{namespace}/jobs/choosy"))


def test_asking_for_more_than_there_is_anywhere_stops_nobody(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n0"), queue("ant"))
    tenants.settle("ant")
    greedy = pod("greedy", memory="9E")
    spec = greedy["spec"]
    spec["containers"] = [{**spec["containers"][0], "name": f"c{number}"} for number in range(4)]
    assert tenants.submit("ant", greedy).ok
    wide = template("batch/v1", "Job", "wide", spec)
    wide["spec"]["parallelism"] = 2**31 - 1
    jobs = "/apis/batch/v1/namespaces/ant/jobs"
    made(tenants.api.create(jobs, wide))
    shown = f"/apis/{API_VERSION}/namespaces/ant/dynamicworkloads"
    eventually(lambda: any(w.get("status") for w in tenants.api.get(shown).body["items"]), seconds=30)
    assert tenants.submit("ant", pod("fine")).ok
    eventually(lambda: tenants.phases("ant")["fine"] != "gated", seconds=30)
    assert tenants.phases("ant")["greedy"] == "gated"
    eventually(lambda: tenants.queue_status("ant")["pending"] >= 1, seconds=30)
    assert not tenants.queue_status("ant")["demand"].get("memory"), "what nobody can hold is no demand"
    made(tenants.api.delete(f"{jobs}/wide"))


def template(api_version: str, kind: str, name: str, spec: Object) -> Object:
    head = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
    return {**head, "spec": {"template": {"spec": spec}}}


def _is_refusal(event: Event, words: str) -> bool:
    return isinstance(event, OutcomeEvent) and event.result == "Rejected" and words in event.message


@pytest.mark.parametrize(
    ("binding", "words"), [("ghost", "ghost, which does not exist"), ("other", "does not select namespace")]
)
def test_a_binding_that_does_not_count(tenants: Tenants, binding: str, words: str) -> None:
    tenants.provide(pool(), node("n0"), queue("other", namespaces={"names": ["elsewhere"]}), queue("good"))
    tenants.settle("good")
    labels = {MANAGED_LABEL: "true", QUEUE_LABEL: binding}
    made(tenants.api.create("/api/v1/namespaces", {"metadata": {"name": "lost", "labels": labels}}))
    tenants.settled.append("lost")
    eventually(lambda: tenants.api.get("/api/v1/namespaces/lost/serviceaccounts/default").ok)
    assert tenants.submit("lost", pod("waits")).ok
    eventually(lambda: any(words in note for note in notices(tenants, "lost")), seconds=30)
    assert tenants.submit("good", pod("fine")).ok
    eventually(lambda: tenants.phases("good")["fine"] != "gated", seconds=30)
    assert tenants.phases("lost")["waits"] == "gated"
    if binding == "ghost":  # the remedy that the notice names
        tenants.provide(queue("ghost", namespaces={"names": ["lost"]}))
        eventually(lambda: tenants.phases("lost")["waits"] != "gated", seconds=30)


def notices(tenants: Tenants, namespace: str) -> list[str]:
    events = made(tenants.api.get("/apis/events.k8s.io/v1/events"))["items"]
    return [e.get("note", "") for e in events if e.get("regarding", {}).get("name") == namespace]


def test_a_pod_that_got_round_the_policies_is_counted_and_reported(tenants: Tenants, running: Stack) -> None:
    tenants.provide(pool(), node("n0", cpu="2"), queue("ant"))
    tenants.settle("ant")
    policy = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicybindings/sluice-gate"
    binding = made(tenants.api.get(policy))
    tenants.api.delete(policy)
    try:
        eventually(lambda: not _is_born_gated(tenants), seconds=30)
    finally:
        fresh = {"metadata": {"name": binding["metadata"]["name"]}, "spec": binding["spec"]}
        made(tenants.api.create(policy.rpartition("/")[0], binding | fresh))
        eventually(lambda: _is_born_gated(tenants), seconds=30)
    with observed(running.endpoints, "ant"):
        eventually(lambda: (condition(tenants, "ant", "Bypassed") or {}).get("status") == "True", seconds=30)
        assert "did not admit" in condition(tenants, "ant", "Bypassed")["message"]
        assert tenants.queue_status("ant")["running"] >= 1


def test_a_namespace_that_has_lost_its_label_is_charged_and_reported(tenants: Tenants) -> None:
    tenants.provide(pool(), node("n0", cpu="2"), queue("ant"))
    tenants.settle("ant")
    label(tenants, "ant", **{MANAGED_LABEL: None})
    eventually(lambda: any("lost its label" in note for note in notices(tenants, "ant")), seconds=30)
    eventually(lambda: not _is_born_gated(tenants), seconds=30)
    eventually(lambda: (condition(tenants, "ant", "Bypassed") or {}).get("status") == "True", seconds=30)
    message = condition(tenants, "ant", "Bypassed")["message"]
    assert "ant/probe-" in message
    assert f"namespace ant has lost its label {MANAGED_LABEL}" in message
    assert tenants.queue_status("ant")["usage"]["default/cpu"] == "1"
    label(tenants, "ant", **{QUEUE_LABEL: None})  # the end of the binding that the message names
    eventually(lambda: not tenants.queue_status("ant").get("usage"), seconds=30)
    assert condition(tenants, "ant", "Bypassed")["status"] == "False"


def label(tenants: Tenants, namespace: str, **labels: str | None) -> None:
    made(tenants.api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}}))


def _is_born_gated(tenants: Tenants) -> bool:
    """Creates a pod to see; one that is born gated is taken away again."""
    obj = pod("", generateName="probe-")
    del obj["metadata"]["name"]
    created = made(tenants.submit("ant", obj))
    if created["spec"].get("schedulingGates"):
        tenants.delete("ant", created["metadata"]["name"])
        return True
    return False
