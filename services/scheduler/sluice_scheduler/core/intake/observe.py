"""Object events → entities. News counts in order of resourceVersion, in whichever order it arrives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from sluice.events import (
    NamespaceEvent,
    ObjectEvent,
    PodEvent,
    PoolEvent,
    QueueEvent,
    SyncEvent,
)

from sluice_scheduler.core.applications.binding import (
    bind_namespace,
    bind_namespaces,
    place_all,
    rebind,
    regroup,
    standing_of,
)
from sluice_scheduler.core.applications.queuejobs import see_pod_of_job
from sluice_scheduler.core.applications.starts import measure_anew, somebody_came
from sluice_scheduler.core.applications.workloads import (
    count_end,
    forget_spark_pod,
    priority_class_changed,
    priority_class_vanished,
    see_spark_pod,
    workload_changed,
    workload_vanished,
)
from sluice_scheduler.core.intake.aside import forget_aside, is_passed_over
from sluice_scheduler.core.intake.nodes import follow_nodes, node_changed, node_vanished, pool_held
from sluice_scheduler.core.state.kinship import charged_to
from sluice_scheduler.core.state.members import workload_of
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, PodPhase, Workload
from sluice_scheduler.core.stored.entities import (
    Cluster,
    Drain,
    History,
    LostWork,
    Namespace,
    Node,
    Pool,
    PriorityClass,
    Queue,
    Report,
    Tombstone,
    TrackedObject,
    identity,
)

#: Late news of a deleted object comes from a second reader of the same stream, and not later than this.
TOMBSTONE_MS: Final = 10 * 60_000


def on_object(state: State, event: ObjectEvent) -> None:
    kind = KINDS.get(event.type)
    if kind is None:
        return  # of a kind that this core takes no interest in
    changed, vanished = kind
    table = state.table(event.type)
    key = f"{event.type}/{event.cluster}/{event.uid}"
    known = table.get(key)
    sync = _open_sync(state, event.cluster, event.listed_as)
    if known is not None and known.sync != sync and sync and event.change != "DELETED":
        known.sync = sync
        table.put(known)
    if not _is_news(state, known, event) or is_passed_over(state, key, event):
        return
    if event.change != "DELETED":
        changed(state, known, event, sync)
        return
    if known is not None:
        vanished(state, known)
    forget_aside(state, key)
    _bury(state, event.cluster, event.listed_as, event.uid, event.resource_version)


def on_sync_end(state: State, event: SyncEvent) -> None:
    """Objects that a list did not show, and that are not newer than it, were deleted while nobody watched."""
    of, _, _ = event.kind.partition("/")
    kind = KINDS.get(of)
    if kind is None:
        return
    _, vanished = kind
    unseen = [
        entity
        for entity in state.table(of)
        if entity.listed_as == event.kind
        and entity.cluster == event.cluster
        and entity.sync != event.sync
        and entity.resource_version <= event.resource_version
    ]
    for entity in sorted(unseen, key=lambda entity: entity.key):
        if not state.is_stuck(entity.key):
            vanished(state, entity)
            forget_aside(state, entity.key)
    for grave in [g for g in state.tombstones if (g.cluster, g.object_kind) == (event.cluster, event.kind)]:
        state.tombstones.drop(grave.key)


def level_old_graves(state: State) -> None:
    """The oldest stand first."""
    while state.graves and state.graves[0][0] < state.now_ms - TOMBSTONE_MS:
        time_ms, key = state.graves.popleft()
        grave = state.tombstones.get(key)
        if grave is not None and grave.time_ms == time_ms:
            state.tombstones.drop(key)


def _open_sync(state: State, cluster: str, kind: str) -> str:
    found = state.clusters.get(f"{Cluster.kind}/{cluster}")
    return found.open_syncs.get(kind, "") if found else ""


def _is_news(state: State, known: TrackedObject | None, event: ObjectEvent) -> bool:
    if known is not None:
        return event.resource_version > known.resource_version
    grave = state.tombstones.get(f"{Tombstone.kind}/{event.cluster}/{event.listed_as}/{event.uid}")
    return grave is None or event.resource_version > grave.resource_version


def _bury(state: State, cluster: str, kind: str, uid: str, resource_version: int) -> None:
    grave = Tombstone(
        cluster=cluster,
        object_kind=kind,
        uid=uid,
        resource_version=resource_version,
        time_ms=state.now_ms,
    )
    state.tombstones.put(grave)
    state.graves.append((grave.time_ms, grave.key))


# ---- pods


def pod_changed(state: State, pod: Pod | None, event: PodEvent, sync: str) -> None:
    after = Pod(facts=event.pod, **identity(event, sync)) if pod is None else replace(pod, facts=event.pod)
    after.resource_version = event.resource_version
    if pod is not None and pod.facts.gated and not event.pod.gated:
        before = pod.facts.node_selector
        after.waited_by = before if before != event.pod.node_selector else None
    moved = _find_family(state, pod, after)
    if pod is None:
        after.stranger = not event.pod.gated and state.is_live(event.cluster)
    after.phase = _phase_shown(after)
    after.pool = pool_held(state, after) if after.holds else ""
    after.queue, after.problem = standing_of(state, after, after.application)
    if pod is not None and _standing(pod) == _standing(after):
        # Most news changes nothing in the books: a condition, a start time, our own patch coming back.
        state.replace_alike(pod, after)
    else:
        _account_anew(state, pod, after)
    if moved and pod is not None:
        forget_spark_pod(state, pod)
    if moved:
        _welcome(state, after)


def _account_anew(state: State, pod: Pod | None, after: Pod) -> None:
    state.replace_pod(pod, after)
    if pod is not None and pod.holds and not after.holds and not pod.evicting:
        _drained(state, pod)
    if after.facts.finished and not (pod and pod.facts.finished):
        if after.application:
            count_end(state, pod, after)
        _look_at_orphans(state, after)


def _look_at_orphans(state: State, ended: Pod) -> None:
    """A pod that ended may have controlled pods of another application. That application has to clean up after them."""
    for below in state.kinship.pods_below(state, ended):
        workload = workload_of(state, below.key)
        if workload is not None:
            state.touch(workload)


def _find_family(state: State, before: Pod | None, after: Pod) -> bool:
    """Find the application that a pod belongs to; whether what it says of that is new."""
    facts = after.facts
    moved = before is None or (before.facts.owner, before.facts.workload) != (facts.owner, facts.workload)
    if moved:
        if before is not None:
            state.kinship.remove(before)
        state.kinship.add(after)
    if facts.owner or facts.workload:
        see_spark_pod(state, after, is_new=before is None)
    if facts.owner or facts.workload or after.application:
        after.application, after.pod_set = charged_to(state, after)
    return moved


def _welcome(state: State, pod: Pod) -> None:
    """A pod that is new to an application may lead others there, and its job may wait for it."""
    regroup(state, state.kinship.pods_below(state, pod))
    workload = workload_of(state, pod.key) if pod.application else None
    if workload is None:
        return
    somebody_came(state, workload, pod)
    if workload.facts.job is not None:
        see_pod_of_job(state, workload, pod)


def pod_vanished(state: State, pod: Pod) -> None:
    if pod.holds and not pod.evicting:
        _drained(state, pod)
    state.remove_pod(pod)
    state.kinship.remove(pod)
    regroup(state, state.kinship.pods_below(state, pod))
    forget_spark_pod(state, pod)


def _drained(state: State, pod: Pod) -> None:
    """A pod has ended by itself: that much its queue drains, if there still is one."""
    if pod.queue not in state.tree:
        return
    drain = state.drains.get(f"{Drain.kind}/{pod.queue}") or Drain(queue=pod.queue)
    drain.count(state.cell.time_ms)
    state.drains.put(drain)


def _standing(pod: Pod) -> tuple[object, ...]:
    """The fields of an account that books and lines go by."""
    facts = pod.facts
    waits = pod.phase == "Waiting" and (
        facts.created_ms,
        facts.deleting,
        pod.problem,
    )
    return (
        pod.holds,
        pod.bypassed,
        waits,
        pod.queue,
        pod.pool,
        facts.requests,
        pod.asked_selector,
        facts.priority,
        facts.ends_in_ms,
        pod.application,
        pod.pod_set,
        facts.group_size,
        facts.gang,
        facts.finished and facts.phase,
    )


def _phase_shown(pod: Pod) -> PodPhase:
    """The phase that a pod's object shows. An assumed pod may still look as if nothing had been decided."""
    if pod.facts.finished:
        return "Withdrawn"
    if not pod.facts.gated:
        return "Holding"
    return "Assumed" if pod.phase == "Assumed" else "Waiting"


# ---- what rules


def namespace_changed(state: State, namespace: Namespace | None, event: NamespaceEvent, sync: str) -> None:
    shown: dict[str, Any] = {"managed": event.managed, "queue": event.queue, "labels": event.labels}
    if namespace is None:
        namespace = Namespace(**identity(event, sync), **shown)
    else:
        for name, value in shown.items():
            setattr(namespace, name, value)
        namespace.resource_version = event.resource_version
    if namespace.labelling == namespace.queue or not namespace.labelling_seq:
        namespace.labelling = ""  # what was written and is not shown may have been taken off again
    state.namespaces.put(namespace)
    state.namespace_by_name.add(namespace)
    bind_namespace(state, namespace)
    rebind(state, namespace)
    state.report_due = True  # conditions tell of namespaces' labels


def namespace_vanished(state: State, namespace: Namespace) -> None:
    state.namespaces.drop(namespace.key)
    was_meant = state.namespace_of(namespace.cluster, namespace.name) is namespace
    state.namespace_by_name.remove(namespace)
    if was_meant:
        place_all(state, namespace)
    state.bound.pop(namespace.key, None)
    state.report_due = True


def queue_changed(state: State, queue: Queue | None, event: QueueEvent, sync: str) -> None:
    if queue is None:
        state.queues.put(Queue(facts=event.queue, **identity(event, sync)))
    else:
        unchanged = queue.facts == event.queue
        queue.facts, queue.resource_version = event.queue, event.resource_version
        state.queues.put(queue)
        if unchanged:  # most often a status that we wrote ourselves
            return
    _rules_changed(state, Queue.kind)


def queue_vanished(state: State, queue: Queue) -> None:
    state.queues.drop(queue.key)
    state.reports.discard(f"{Report.kind}/{queue.kind}/{queue.name}")
    if all(other.name != queue.name for other in state.queues):
        state.drains.discard(f"{Drain.kind}/{queue.name}")
        state.histories.discard(f"{History.kind}/{queue.name}")
        state.lost_work.discard(f"{LostWork.kind}/{queue.name}")
    _rules_changed(state, Queue.kind)


def pool_changed(state: State, pool: Pool | None, event: PoolEvent, sync: str) -> None:
    if pool is None:
        state.pools.put(Pool(facts=event.pool, **identity(event, sync)))
    else:
        unchanged = pool.facts == event.pool
        pool.facts, pool.resource_version = event.pool, event.resource_version
        state.pools.put(pool)
        if unchanged:
            return
    _rules_changed(state, Pool.kind)


def pool_vanished(state: State, pool: Pool) -> None:
    state.pools.drop(pool.key)
    state.reports.discard(f"{Report.kind}/{pool.kind}/{pool.name}")
    _rules_changed(state, Pool.kind)


def _rules_changed(state: State, kind: str) -> None:
    state.new_grounds()
    state.cell.rules_due = True
    state.edited.add(kind)


def follow_rules(state: State) -> None:
    """Redo what hangs on Queues and pools: once for all of which one list tells."""
    cell = state.cell
    if not cell.rules_due:
        return
    cell.rules_due = False
    state.cells.put(cell)
    edited, state.edited = state.edited, set()
    if Pool.kind in edited:
        state.change_pools()
        follow_nodes(state, [pod.key for pod in state.pods if pod.holds])
    if Queue.kind in edited:
        state.change_queues()
        measure_anew(state)
    bind_namespaces(state)


KINDS: Final[dict[str, tuple[Callable[..., None], Callable[..., None]]]] = {
    Pod.kind: (pod_changed, pod_vanished),
    Workload.kind: (workload_changed, workload_vanished),
    PriorityClass.kind: (priority_class_changed, priority_class_vanished),
    Namespace.kind: (namespace_changed, namespace_vanished),
    Queue.kind: (queue_changed, queue_vanished),
    Pool.kind: (pool_changed, pool_vanished),
    Node.kind: (node_changed, node_vanished),
}
