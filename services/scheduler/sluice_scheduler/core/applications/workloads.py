"""Applications' accounts: made of their objects, or of their pods where there is no object."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from sluice.applications import BY_HAND, WITHOUT_OPERATOR
from sluice.decisions import Delete
from sluice.events import PodSetFacts, PriorityClassEvent, WorkloadEvent, WorkloadFacts

from sluice_scheduler.core.applications.binding import place_workload, regroup
from sluice_scheduler.core.applications.queuejobs import count_end_of_job, ended, see_pod_of_job
from sluice_scheduler.core.applications.release import put_back
from sluice_scheduler.core.state.kinship import charged_to, members_of
from sluice_scheduler.core.state.members import holding_of, workload_of
from sluice_scheduler.core.state.promises import break_promise, give_up_claim
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import JOB_REPORT, PriorityClass, Report, identity

DRIVER: Final = "driver"
EXECUTOR: Final = "executor"
_SPARK: Final = ("SparkApplication", WITHOUT_OPERATOR)
#: These have no class by default: who writes a workload names one or has none, Spark's pods have a number.
_WITH_A_NUMBER: Final = (BY_HAND, WITHOUT_OPERATOR)
#: Their pods come and go while they run: one that succeeded was let go, and others come after it.
_COME_AND_GO: Final = (*_SPARK, "RayCluster", "RayJob", "DaskCluster", "DaskJob")
#: But these of theirs run once.
_RUN_ONCE: Final = ("submitter", "runner")
#: A driver that lives replaces an executor that failed within seconds.
SILENCE_MS: Final = 60_000
#: A driver is given half as long to end by default, and its executors go after it.
LEFT_BEHIND_MS: Final = 60_000


def workload_changed(state: State, workload: Workload | None, event: WorkloadEvent, sync: str) -> None:
    before = workload.facts if workload is not None else None
    if workload is None:
        found = not state.is_live(event.cluster)
        workload = Workload(facts=event.workload, found=found, **identity(event, sync))
        state.kinship.add(workload)
    else:
        workload.resource_version = event.resource_version
        if before == event.workload:  # most often a status that somebody wrote
            state.workloads.put(workload)
            return
        if not _asks_the_same(workload.facts, event.workload):
            give_up_claim(state, workload.key)
        state.kinship.remove(workload)
        workload.facts = ended(workload, event.workload)
        state.kinship.add(workload)
        if before is not None and before.finished and not workload.facts.finished:
            workload.found = False
            put_back(state, workload)  # it runs once more, and waits for its turn once more
    workload.priority = priority_of(state, workload)
    _take_place(state, workload)
    if before is None or before.controller != event.workload.controller:
        _regroup_below(state, workload)
    if before is None:
        _see_those_before_it(state, workload)


def _see_those_before_it(state: State, workload: Workload) -> None:
    """Kinds are listed in any order: its pods may have been seen before it, and may have ended."""
    for pod in members_of(state, workload):
        if workload.facts.job is not None:
            see_pod_of_job(state, workload, pod)
        if pod.facts.finished:
            count_end(state, None, pod)


def _take_place(state: State, workload: Workload) -> None:
    """Bring an account that has changed into its queue."""
    state.workloads.put(workload)
    state.workload_by_title.add(workload)
    place_workload(state, workload)
    state.touch(workload)


def _asks_the_same(before: WorkloadFacts, after: WorkloadFacts) -> bool:
    """Whether what was promised to a workload is still what it waits for."""
    return (before.pod_sets, before.queue, before.finished) == (after.pod_sets, after.queue, after.finished)


def workload_vanished(state: State, workload: Workload) -> None:
    if workload.facts.kind != BY_HAND:
        _leave_behind(state, workload)
    break_promise(state, workload.key)
    state.forget_workload(workload)
    state.workloads.drop(workload.key)
    state.forget_choice(workload)
    for about in (workload.key, workload.key + JOB_REPORT):
        state.reports.discard(f"{Report.kind}/{about}")
    state.kinship.remove(workload)
    _regroup_below(state, workload)


def _leave_behind(state: State, workload: Workload) -> None:
    """The garbage collector will delete the pods of an application that is gone. Those that still wait pause until
    then, so that they take nobody's place."""
    for pod in members_of(state, workload):
        if pod.phase == "Waiting":
            with state.changing(pod):
                pod.retry_ms = state.cell.time_ms + LEFT_BEHIND_MS


def _regroup_below(state: State, workload: Workload) -> None:
    """An application that another one controls is charged by itself only while the other has no account."""
    for below in state.kinship.workloads_below(state, workload):
        state.touch(below)
    regroup(state, state.kinship.pods_below(state, workload))


def count_end(state: State, before: Pod | None, after: Pod) -> None:
    """A pod that succeeded may not be replaced: its workload's reclaimable pods are counted by it, unless its
    kind's pods come and go. One that failed may be, and leaves its share to the one that does."""
    workload = workload_of(state, after.key)
    if workload is None:
        return
    if workload.facts.job is not None:
        count_end_of_job(state, workload, after)
    name = after.pod_set
    if after.facts.phase == "Succeeded":
        if workload.facts.kind in _COME_AND_GO and name not in _RUN_ONCE:
            return
        workload.succeeded = workload.with_one_more(workload.succeeded, name)
    elif workload.facts.replaces_failed and before is not None and before.holds and not before.evicting:
        if workload.admitted and not after.facts.deleting:
            workload.kept = workload.with_one_more(workload.kept, name)
    elif _in_client_mode(workload) and not after.evicting and not after.facts.deleting:
        workload.failed_ms = state.cell.time_ms
        state.failing[workload.key] = None
    state.workload_changed(workload)


def _in_client_mode(workload: Workload) -> bool:
    """Whether it is Spark whose driver is no pod: only its executors can tell how it is."""
    return workload.facts.kind == WITHOUT_OPERATOR and all(p.name != DRIVER for p in workload.facts.pod_sets)


# ---- priorities: applications name their class, pods bear its number


def priority_of(state: State, workload: Workload) -> int:
    """The value of its class, or of the cluster's default class if it could name a class and names none; else 0.

    A number in an application was written by whoever made it, and who may use which class is the API server's
    to say. Of a pod that server wrote the number itself, and refuses any other: Spark's without an operator
    counts.
    """
    classes = [each for each in state.priority_classes if _ranks(each, workload)]
    own = workload.facts.priority if workload.facts.kind == WITHOUT_OPERATOR else 0
    # If several classes are the default, the API server takes the lowest for pods, too.
    return min((each.value for each in classes), default=own)


def _ranks(priority_class: PriorityClass, workload: Workload) -> bool:
    facts = workload.facts
    if priority_class.cluster != workload.cluster:
        return False
    if facts.priority_class:
        return facts.priority_class == priority_class.name
    return priority_class.global_default and facts.kind not in _WITH_A_NUMBER


def priority_class_changed(
    state: State, priority_class: PriorityClass | None, event: PriorityClassEvent, sync: str
) -> None:
    if priority_class is None:
        priority_class = PriorityClass(value=event.value, **identity(event, sync))
    priority_class.value, priority_class.resource_version = event.value, event.resource_version
    priority_class.global_default = event.global_default
    state.priority_classes.put(priority_class)
    _rank_anew(state)


def priority_class_vanished(state: State, priority_class: PriorityClass) -> None:
    state.priority_classes.drop(priority_class.key)
    _rank_anew(state)


def _rank_anew(state: State) -> None:
    found = [workload for workload in state.workloads if not state.is_stuck(workload.key)]
    for workload in sorted(found, key=lambda workload: workload.key):
        priority = priority_of(state, workload)
        if priority != workload.priority:
            workload.priority = priority
            state.workload_changed(workload)


# ---- Spark without an operator: its pods are all there is of it


def see_spark_pod(state: State, pod: Pod, *, is_new: bool) -> None:
    """Make the account of the application that a pod names, or bring it in step with what the pod shows. A
    driver in another application's pod has none: its executors are that one's growth."""
    kind, _, name = pod.facts.workload.partition("/")
    if kind != WITHOUT_OPERATOR or charged_to(state, pod)[0] != pod.facts.workload:
        return
    workload = state.workload_by_title.get((pod.cluster, pod.namespace, pod.facts.workload))
    if workload is None:
        if pod.facts.finished:
            return
        facts = WorkloadFacts(
            kind=kind,
            pod_sets=(),
            created_ms=pod.facts.created_ms,
            queue=pod.facts.queue,
            priority=pod.facts.priority,
        )
        workload = Workload(
            facts=facts,
            found=not state.is_live(pod.cluster),
            cluster=pod.cluster,
            namespace=pod.namespace,
            name=name,
            uid=f"{kind}-{pod.namespace}-{name}",
            resource_version=0,
            priority=pod.facts.priority,
        )
        state.kinship.add(workload)
    facts = _as_its_pod_shows(workload.facts, pod)
    answered = is_new and bool(workload.failed_ms) and pod.facts.created_ms >= _second(workload.failed_ms)
    if answered:
        workload.failed_ms = 0  # somebody goes on asking for pods
        if facts.finished:
            facts = replace(facts, finished=False)
            put_back(state, workload)
    if answered or facts != workload.facts:
        workload.facts = facts
        _take_place(state, workload)


def _second(time_ms: int) -> int:
    """Objects know the second of their creation only."""
    return time_ms - time_ms % 1000


def _as_its_pod_shows(facts: WorkloadFacts, pod: Pod) -> WorkloadFacts:
    """A driver is of no use without an executor, taken to be as large as the driver until one is seen."""
    sets = {each.name: each for each in facts.pod_sets}
    shown = pod.facts.pod_set
    guessed = DRIVER in sets and sets[EXECUTOR] == _guess(sets[DRIVER])
    is_new = shown not in sets or (shown == EXECUTOR and guessed)
    if shown in (DRIVER, EXECUTOR) and is_new:
        sets[shown] = PodSetFacts(
            name=shown,
            count=1,
            min_count=1,
            max_count=1 if shown == DRIVER else None,
            requests=pod.facts.requests,
            node_selector=pod.asked_selector,
        )
    if DRIVER in sets:
        sets.setdefault(EXECUTOR, _guess(sets[DRIVER]))
    finished = pod.facts.finished if shown == DRIVER else facts.finished
    ordered = tuple(sets[name] for name in (DRIVER, EXECUTOR) if name in sets)
    return replace(facts, pod_sets=ordered, finished=finished)


def _guess(driver: PodSetFacts) -> PodSetFacts:
    return replace(driver, name=EXECUTOR, max_count=None)


def forget_spark_pod(state: State, pod: Pod) -> None:
    """Without pods there is nothing left of it; without its driver it is through."""
    workload = state.workload_by_title.get((pod.cluster, pod.namespace, pod.facts.workload))
    if workload is None or workload.facts.kind != WITHOUT_OPERATOR:
        return
    if next(state.kinship.pods_below(state, workload), None) is None:
        workload_vanished(state, workload)
        _forget_shown(state, workload)
    elif pod.facts.pod_set == DRIVER:
        _end(state, workload)


def _forget_shown(state: State, workload: Workload) -> None:
    """Nothing owns the DynamicWorkload of an application without an object, so nobody else deletes it. Whether
    it was made does not matter here: no decision may depend on what people were shown."""
    state.decide(
        Delete(
            **state.stamp(workload.cluster),
            namespace=workload.namespace,
            name=workload.shown_name,
            uid=workload.uid,
            about="dynamicworkload",
            reason="ApplicationGone",
            sentence=f"no pod of {workload.title} is left",
        )
    )


def end_silent(state: State) -> None:
    """In client mode the driver is no pod. It replaces executors that fail, or it is gone."""
    for key in sorted(key for key in state.failing if not state.is_aside(key)):
        workload = state.workloads.get(key)
        if workload is None or not workload.failed_ms:
            del state.failing[key]
        elif workload.facts.finished:
            continue  # a pod that comes begins it anew, as silent as it was
        elif state.cell.time_ms - workload.failed_ms >= SILENCE_MS and not holding_of(state, workload):
            _end(state, workload)


def _end(state: State, workload: Workload) -> None:
    workload.facts = replace(workload.facts, finished=True)
    state.workload_changed(workload)


# ---- pods that nobody is left to use


def clean_up(state: State) -> None:
    """Delete gated executors whose driver has ended: as long as its pod is kept, nobody else does."""
    for key in sorted(state.may_open):
        workload = state.may_open[key].workload
        if workload is None or workload.facts.kind not in _SPARK or not state.is_live(workload.cluster):
            continue
        waiting = [pod for book in state.may_open[key].books.values() for pod in book.waiting]
        for pod in [state.pod(key) for key in sorted(waiting)]:
            if _is_orphaned(state, workload, pod):
                _delete(state, pod)


def _is_orphaned(state: State, workload: Workload, pod: Pod) -> bool:
    driver = state.pods.get(f"{Pod.kind}/{pod.cluster}/{pod.facts.owner}")
    if driver is not None and driver.namespace == pod.namespace and driver.facts.finished:
        return True
    return workload.facts.finished


def _delete(state: State, pod: Pod) -> None:
    with state.changing(pod):
        decision = state.decide(
            Delete(
                **state.about(pod),
                about="pod",
                reason="DriverEnded",
                sentence="its driver has ended, and nobody is left to use it",
            )
        )
        pod.evicting = decision.seq
