"""Every effect against every fault: what becomes of the decision is what its outcome says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from decisions_made import (
    EVENT,
    NAMESPACE,
    PATHS,
    POD,
    POOL,
    QUEUE,
    a_cluster,
    admit,
    carried_by,
    evict,
    identity,
    label,
    notice,
    report_pool,
    report_queue,
)
from fakes.actuated_cluster import FakeCluster, Fault
from fakes.clock import FakeClock
from sluice.crds import QueueStatus
from sluice.decisions import ObjectDecision
from sluice.values import DecisionId, Epoch
from sluice.vocabulary import DECISION_ANNOTATION, GATE, QUEUE_LABEL
from sluice_actuator.effects import Effects, Outcome
from sluice_actuator.settle import LONGEST_PAUSE_S, WRITES_MAX, settle

TERMINATION_S = 600
ALL = [admit(), evict(), label(), report_queue(), report_pool(), notice()]
BY_TYPE = pytest.mark.parametrize("decision", ALL, ids=lambda decision: decision.type)
#: A notice is an object of its own: what it is about may be gone, and a conflict says that it is there.
BUT_NOTICES = pytest.mark.parametrize("decision", ALL[:-1], ids=lambda decision: decision.type)


class Run:
    """Carries decisions out on a cluster, one after the other, as one actuator would."""

    def __init__(self, cluster: FakeCluster | None = None) -> None:
        self.cluster = cluster or a_cluster()
        self.clock = FakeClock()
        self.barred = False
        self._effects = Effects(self.cluster, termination_s=TERMINATION_S)

    async def __call__(self, decision: ObjectDecision, name: DecisionId | None = None) -> Outcome:
        return await settle(
            self._effects.of(decision, name or identity(decision.seq)),
            now_ms=self.clock.now_ms,
            pause=self.clock.sleep,
            barred=lambda: self.barred,
            random=Random(1),
        )


# ---- the table


@BY_TYPE
async def test_what_nothing_hinders_takes_one_write(decision: ObjectDecision) -> None:
    run = Run()
    assert (await run(decision)).result == "Applied"
    assert len(run.cluster.writes) == 1
    assert carried_by(run.cluster, decision) == str(identity())


@BY_TYPE
async def test_what_was_carried_out_before_changes_nothing(decision: ObjectDecision) -> None:
    run = Run()
    await run(decision)
    before = dict(run.cluster.objects)
    outcome = await Run(run.cluster)(decision)  # another actuator, which remembers nothing
    assert outcome.result in ("Applied", "AlreadyApplied", "Gone")
    assert run.cluster.objects == before


@BY_TYPE
@pytest.mark.parametrize("fault", [Fault.TIMED_OUT_BUT_APPLIED, Fault.LOST_BUT_APPLIED], ids=str)
async def test_an_unanswered_write_that_was_carried_out_is_not_repeated(
    decision: ObjectDecision, fault: Fault
) -> None:
    run = Run()
    run.cluster.faults.append(fault)
    outcome = await run(decision)
    assert outcome.result == ("Gone" if decision.type == "evict" else "AlreadyApplied")
    assert carried_by(run.cluster, decision) == str(identity())
    # An event's creation is its own comparison; everything else is read.
    assert len(run.cluster.writes) == (2 if decision.type == "notice" else 1)


@BY_TYPE
@pytest.mark.parametrize(
    "fault",
    [Fault.TOO_MANY_REQUESTS, Fault.INTERNAL_ERROR, Fault.TIMED_OUT, Fault.LOST],
    ids=str,
)
async def test_a_write_that_was_not_carried_out_is_repeated(decision: ObjectDecision, fault: Fault) -> None:
    run = Run()
    run.cluster.faults.append(fault)
    assert (await run(decision)).result == "Applied"
    assert len(run.cluster.writes) == 2
    assert carried_by(run.cluster, decision) == str(identity())


@BUT_NOTICES
async def test_a_conflict_is_looked_into_and_the_write_repeated(decision: ObjectDecision) -> None:
    run = Run()
    run.cluster.faults.append(Fault.CONFLICT)
    assert (await run(decision)).result == "Applied"
    assert len(run.cluster.writes) == 2


@BY_TYPE
async def test_a_refusal_is_final_and_in_the_servers_words(decision: ObjectDecision) -> None:
    run = Run()
    run.cluster.rejects_everything = True
    outcome = await run(decision)
    assert outcome == Outcome("Rejected", "403 the policy says no")
    assert len(run.cluster.writes) == 1
    assert carried_by(run.cluster, decision) == ""


async def test_a_refusal_of_what_was_carried_out_before_is_none() -> None:
    """Policies may refuse to write again what another actuator has just written."""
    run = Run()
    await run(admit())
    run.cluster.rejects_everything = True
    assert (await Run(run.cluster)(admit())).result == "AlreadyApplied"


@BY_TYPE
@pytest.mark.parametrize("fault", [Fault.TOO_MANY_REQUESTS, Fault.INTERNAL_ERROR, Fault.TIMED_OUT], ids=str)
async def test_an_overloaded_server_is_not_asked_for_ever(decision: ObjectDecision, fault: Fault) -> None:
    run = Run()
    run.cluster.faults.extend([fault] * 1000)
    outcome = await run(decision)
    assert outcome.result == "Failed"
    assert carried_by(run.cluster, decision) == ""
    if decision.type != "evict":  # which is patient until its deadline
        assert len(run.cluster.writes) == WRITES_MAX


@BY_TYPE
async def test_nothing_is_called_failed_before_somebody_has_looked(decision: ObjectDecision) -> None:
    run = Run()
    run.cluster.faults.append(Fault.LOST_BUT_APPLIED)
    run.cluster.unreadable = 50
    outcome = await run(decision)
    assert outcome.result in ("AlreadyApplied", "Gone")
    assert carried_by(run.cluster, decision) == str(identity())


@BUT_NOTICES
async def test_an_object_that_is_gone_is_gone(decision: ObjectDecision) -> None:
    run = Run()
    del run.cluster.objects[PATHS[type(decision)]]
    assert (await run(decision)).result == "Gone"


@BUT_NOTICES
async def test_another_object_of_the_same_name_is_left_alone(decision: ObjectDecision) -> None:
    run = Run()
    path = PATHS[type(decision)]
    other = run.cluster.objects[path]
    other["metadata"]["uid"] = "uid-2"
    assert (await run(decision)).result == "Gone"
    assert run.cluster.objects[path] is other


@BY_TYPE
async def test_what_is_barred_makes_no_call(decision: ObjectDecision) -> None:
    run = Run()
    run.barred = True
    assert (await run(decision)).result == "Superseded"
    assert run.cluster.writes == []


# ---- waiting


async def test_pauses_grow_within_bounds() -> None:
    run = Run()
    run.cluster.faults.extend([Fault.INTERNAL_ERROR] * 9)
    await run(admit())
    pauses = run.clock.pauses_s
    assert all(later > earlier for earlier, later in pairwise(pauses[:6]))
    assert max(pauses) <= LONGEST_PAUSE_S


async def test_the_server_may_ask_for_a_longer_pause() -> None:
    run = Run()
    run.cluster.faults.append(Fault.TOO_MANY_REQUESTS)
    await run(admit())
    assert run.clock.pauses_s == [1.0]


# ---- admissions


async def test_only_our_gate_is_opened_and_the_selector_narrowed() -> None:
    run = Run()
    gates = [{"name": "example.dev/other"}, {"name": GATE}]
    metadata = {"uid": "uid-1", "annotations": {"a": "b"}}
    run.cluster.put(
        POD, {"metadata": metadata, "spec": {"schedulingGates": gates, "nodeSelector": {"zone": "1"}}}
    )
    await run(admit())
    pod = run.cluster.objects[POD]
    assert pod["spec"] == {
        "schedulingGates": [{"name": "example.dev/other"}],
        "nodeSelector": {"zone": "1", "pool": "main"},
    }
    assert pod["metadata"]["annotations"] == {"a": "b", DECISION_ANNOTATION: "1-50.7"}


@pytest.mark.parametrize(
    ("carried", "result"),
    [
        ("1-50.7", "AlreadyApplied"),
        ("1-50.8", "AlreadyApplied"),
        ("2-1.1", "AlreadyApplied"),
        ("1-50.6", "Conflict"),
        ("nonsense", "Conflict"),
        ("", "Conflict"),
    ],
)
async def test_who_opened_the_gate_decides_what_it_is(carried: str, result: str) -> None:
    run = Run()
    annotations = {DECISION_ANNOTATION: carried} if carried else {}
    open_pod = {"metadata": {"uid": "uid-1", "annotations": annotations}, "spec": {}}
    run.cluster.put(POD, open_pod)
    run.cluster.faults.append(Fault.CONFLICT)
    assert (await run(admit())).result == result


async def test_a_selector_that_can_not_be_narrowed_is_rejected() -> None:
    run = Run()
    gated = {"schedulingGates": [{"name": GATE}], "nodeSelector": {"pool": "other"}}
    run.cluster.put(POD, {"metadata": {"uid": "uid-1"}, "spec": gated})
    outcome = await run(admit())
    assert outcome.result == "Rejected"
    assert "nodeSelector" in outcome.message


# ---- evictions


async def test_a_budget_is_respected_until_the_deadline_and_then_not() -> None:
    run = Run()
    run.cluster.budgeted.add(POD)
    deadline_ms = run.clock.now_ms() + 123_456
    assert (await run(evict(deadline_ms=deadline_ms))).result == "Applied"
    *asked, last = run.cluster.writes
    assert {call.verb for call in asked} == {"evict"}
    assert last.verb == "delete"
    assert run.clock.now_ms() == deadline_ms
    assert POD not in run.cluster.objects


async def test_without_grace_a_pod_is_still_asked_first() -> None:
    run = Run()
    run.cluster.budgeted.add(POD)
    await run(evict(deadline_ms=0))
    assert [call.verb for call in run.cluster.writes] == ["evict", "delete"]


async def test_after_a_patient_wait_a_deletion_gets_all_its_attempts() -> None:
    run = Run()
    run.cluster.budgeted.add(POD)
    delete, refusals = run.cluster.delete, iter(range(WRITES_MAX - 1))

    async def delete_at_last(path: str, *, uid: str, grace_s: int | None = None) -> Any:
        if next(refusals, None) is not None:
            run.cluster.faults.append(Fault.TOO_MANY_REQUESTS)
        return await delete(path, uid=uid, grace_s=grace_s)

    run.cluster.delete = delete_at_last  # type: ignore[method-assign]
    assert (await run(evict(deadline_ms=run.clock.now_ms() + 600_000))).result == "Applied"


async def test_a_pod_that_is_being_deleted_is_on_its_way() -> None:
    run = Run()
    run.cluster.put(POD, {"metadata": {**LEAVING, "deletionGracePeriodSeconds": 30}, "spec": {}})
    run.cluster.faults.append(Fault.LOST)
    assert (await run(evict())).result == "AlreadyApplied"


LEAVING = {"uid": "uid-1", "deletionTimestamp": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize("is_held", [False, True])
@pytest.mark.parametrize(("says_s", "has_s"), [(1, 1), (30, 30), (600, 600), (601, 600), (315_360_000, 600)])
async def test_a_pod_has_no_longer_to_end_than_the_settings_let_it(
    says_s: int, has_s: int, is_held: bool
) -> None:
    run = Run()
    run.cluster.put(POD, on_a_node(says_s))
    if is_held:
        run.cluster.budgeted.add(POD)
    assert (await run(evict())).result == "Applied"
    assert run.cluster.objects[POD]["metadata"]["deletionGracePeriodSeconds"] == has_s


async def test_of_a_pod_that_is_being_deleted_the_time_to_end_is_cut() -> None:
    """Its owner has deleted it, and gave it ten years."""
    run = Run()
    pod = on_a_node(315_360_000)
    pod["metadata"] = {**LEAVING, "deletionGracePeriodSeconds": 315_360_000}
    run.cluster.put(POD, pod)
    assert (await run(evict())).result == "Applied"
    assert run.cluster.objects[POD]["metadata"]["deletionGracePeriodSeconds"] == TERMINATION_S
    assert (await run(evict(8))).result == "AlreadyApplied"


def on_a_node(termination_s: int) -> dict[str, Any]:
    spec = {"nodeName": "node", "terminationGracePeriodSeconds": termination_s}
    return {"metadata": {"uid": "uid-1"}, "spec": spec}


# ---- namespaces


async def test_a_namespace_is_bound_and_unbound() -> None:
    run = Run()
    await run(label(7, queue="team-a"))
    assert run.cluster.objects[NAMESPACE]["metadata"]["labels"] == {"team": "a", QUEUE_LABEL: "team-a"}
    await run(label(8, queue=""))
    assert run.cluster.objects[NAMESPACE]["metadata"]["labels"] == {"team": "a"}


async def test_whoever_was_faster_is_not_overrun() -> None:
    """Between reading and writing another actuator carries out a later decision."""
    run = Run()
    cluster = run.cluster
    get, faster = cluster.get, iter(["once"])
    later = {QUEUE_LABEL: "team-b"}

    async def get_and_be_overtaken(path: str) -> Any:
        answer = await get(path)
        if next(faster, ""):
            annotations = {DECISION_ANNOTATION: str(identity(9))}
            cluster.put(path, {"metadata": {"uid": "uid-1", "labels": later, "annotations": annotations}})
        return answer

    cluster.get = get_and_be_overtaken  # type: ignore[method-assign]
    assert (await run(label(8))).result == "Superseded"
    assert cluster.objects[NAMESPACE]["metadata"]["labels"] == later


REPEATED: list[Callable[[int], ObjectDecision]] = [label, report_queue, report_pool]


@pytest.mark.parametrize("decide", REPEATED)
async def test_an_earlier_decision_does_not_undo_a_later_one(decide: Callable[[int], ObjectDecision]) -> None:
    run = Run()
    await run(decide(9))
    before = dict(run.cluster.objects)
    assert (await Run(run.cluster)(decide(8))).result == "Superseded"
    assert (await Run(run.cluster)(decide(99), identity(99, Epoch(1, 49)))).result == "Superseded"
    assert run.cluster.objects == before


# ---- statuses


async def test_a_status_says_what_the_report_says() -> None:
    run = Run()
    await run(report_queue())
    assert run.cluster.objects[QUEUE]["status"] == {
        "usage": {"main/cpu": "1.5", "main/memory": "1Gi"},
        "demand": {"cpu": "2"},
        "fairShare": {"cpu": "4", "a100/nvidia.com/gpu": "2"},
        "dominantShare": "0.2500",
        "dominantResource": "cpu",
        "pending": 2,
        "running": 1,
        "pendingWorkloads": 36,
        "admittedWorkloads": 3,
        "lostWorkSeconds": 90,
        "lostWorkLastHourSeconds": 60,
        "conditions": [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Fine",
                "message": "",
                "lastTransitionTime": "1970-01-01T00:01:01Z",
                "observedGeneration": 3,
            }
        ],
        "observedGeneration": 3,
        "decision": "1-50.7",
    }
    QueueStatus.model_validate(run.cluster.objects[QUEUE]["status"])
    await run(report_pool())
    status = run.cluster.objects[POOL]["status"]
    assert status["capacity"] == {"cpu": "64", "example.com/gpu": "8"}
    assert status["unmanaged"] == {"memory": "1Mi"}


async def test_a_status_forgets_what_the_next_report_does_not_say() -> None:
    run = Run()
    await run(report_queue(7))
    await run(report_queue(8, usage={"other/cpu": 1000}))
    assert run.cluster.objects[QUEUE]["status"]["usage"] == {"other/cpu": "1"}


async def test_reports_after_the_first_take_one_call() -> None:
    run = Run()
    await run(report_queue(7))
    run.cluster.calls.clear()
    await run(report_queue(8))
    assert [call.verb for call in run.cluster.calls] == ["patch"]


async def test_an_edited_spec_costs_a_report_one_look() -> None:
    run = Run()
    await run(report_queue(7))
    run.cluster.put(QUEUE, run.cluster.objects[QUEUE])
    assert (await run(report_queue(8))).result == "Applied"
    assert run.cluster.objects[QUEUE]["status"]["decision"] == "1-50.8"


# ---- notices


async def test_a_notice_is_an_event_on_its_object() -> None:
    run = Run()
    await run(notice())
    event = run.cluster.objects[EVENT]
    assert event["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "team",
        "name": "pod",
        "uid": "uid-1",
    }
    assert (event["reason"], event["message"]) == ("Because", "because it is so")
