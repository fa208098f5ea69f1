"""Who waits where: which queue a namespace is bound to, and which queue a pod is charged to.

A binding counts only if its queue, or one above it, selects the namespace. What does not count is told to
the people concerned, in one sentence each: in the pod's account, and once as a notice on the namespace.

A namespace that loses the label `sluice.dev/managed` stays bound while its binding counts: its pods come
without a gate from then on, and are charged and counted as bypassed, not forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable

from sluice.decisions import LabelNamespace, Notice
from sluice.texts import few

from sluice_scheduler.core.fairness.tree import QueueNode
from sluice_scheduler.core.state.kinship import charged_to
from sluice_scheduler.core.state.promises import give_up_claim
from sluice_scheduler.core.state.state import State
from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.entities import Namespace


def selects(queue: QueueNode, namespace: Namespace) -> bool:
    return any(above.facts.namespaces.selects(namespace.name, namespace.labels) for above in queue.path)


def binding_problem(state: State, namespace: Namespace) -> str:
    """Why nothing in a bound namespace is admitted; empty if all is well."""
    queue = state.tree.get(namespace.queue)
    if queue is None:
        return (
            f"namespace {namespace.name} is bound to queue {namespace.queue}, which does not exist: "
            "create the Queue, or change the namespace's label sluice.dev/queue"
        )
    if queue.problem:
        return f"queue {queue.name} can't be used: {queue.problem}"
    if not selects(queue, namespace):
        return (
            f"queue {queue.name} does not select namespace {namespace.name}: name it in the Queue's "
            "spec.namespaces, or change the namespace's label sluice.dev/queue"
        )
    return ""


def named_in_vain(state: State, queue: QueueNode) -> list[str]:
    """Why namespaces that a queue names are not bound to it, or below it."""
    return [
        problem
        for name in sorted(queue.facts.namespaces.names)
        if (problem := _why_not_bound(state, queue, name))
    ]


def _why_not_bound(state: State, queue: QueueNode, name: str) -> str:
    found = [n for cluster in state.clusters if (n := state.namespace_of(cluster.name, name))]
    if not found:
        return f"there is no namespace {name}: create it, or take it out"
    for namespace in found:
        bound_to = state.tree.get(namespace.queue)
        if not namespace.queue and not namespace.managed:
            return (
                f"namespace {name} is not managed, so its pods pass by the queue: label it "
                "sluice.dev/managed=true, or take it out"
            )
        if namespace.queue and (bound_to is None or queue not in bound_to.path):
            return (
                f"namespace {name} is bound to queue {namespace.queue}: take it out of one of the two Queues"
            )
    return ""


def lost_label(state: State, namespace: Namespace) -> str:
    """Why pods of a namespace with a binding that counts come without a gate; empty if they don't."""
    queue = state.tree.get(namespace.queue)
    if namespace.managed or queue is None or not selects(queue, namespace):
        return ""
    return (
        f"namespace {namespace.name} has lost its label sluice.dev/managed, so its pods are created without "
        f"a gate and yet charged to queue {queue.name}: label it sluice.dev/managed=true again, or take its "
        "label sluice.dev/queue off to end the binding"
    )


def queue_for(state: State, claimant: Pod | Workload) -> tuple[str, str]:
    """The queue that a pod or workload belongs to, and why nothing of it may be admitted there (or neither).

    Nobody is charged by a queue that does not select their namespace: its tenants would pay for it. What is told
    of before its namespace, or still after that is gone, belongs to none.
    """
    namespace = state.namespace_of(claimant.cluster, claimant.namespace)
    if namespace is None:
        return "", f"there is no namespace {claimant.namespace}"
    if claimant.facts.queue:
        state.name_queue(claimant)
    what = claimant.kind if isinstance(claimant, Pod) else claimant.facts.kind
    return _queue_named(state, namespace, claimant.facts.queue, what)


def _queue_named(state: State, namespace: Namespace, wanted: str, what: str) -> tuple[str, str]:
    """The queue of an account that names one itself, or (empty) none."""
    problem = binding_problem(state, namespace)
    if problem:
        bound_to = state.tree.get(namespace.queue)
        return (namespace.queue if bound_to is not None and selects(bound_to, namespace) else "", problem)
    if not wanted or wanted == namespace.queue:
        return namespace.queue, ""
    queue = state.tree.get(wanted)
    if queue is None or all(above.name != namespace.queue for above in queue.path):
        return namespace.queue, (
            f"the {what} names queue {wanted}, which does not stand below {namespace.queue}, its "
            f"namespace's: recreate the {what} with another label sluice.dev/queue, or without"
        )
    return wanted, queue.problem and f"queue {wanted} can't be used: {queue.problem}"


def standing_of(state: State, pod: Pod, application: str) -> tuple[str, str]:
    """The queue that a pod has by its application, and why nothing is admitted there: it goes where that goes."""
    workload = state.workload_by_title.get((pod.cluster, pod.namespace, application))
    if workload is not None:
        return workload.queue, workload.problem
    return queue_for(state, pod)


def bind_namespace(state: State, namespace: Namespace) -> None:
    """Keep the label in step with the queues' selectors, and tell of what is wrong with a binding."""
    if not state.is_live(namespace.cluster):
        return
    if not namespace.managed:
        _notice(state, namespace, "ManagedLabelLost", lost_label(state, namespace))
        return
    if _is_another_cells(state, namespace.queue):
        _notice(state, namespace, "BindingDoesNotCount", "")
        return
    wanted = _wanted_binding(state, namespace)
    if wanted not in (namespace.queue, namespace.labelling):
        decision = state.decide(
            LabelNamespace(
                **state.about(namespace),
                queue=wanted,
                reason="Selected",
                sentence=f"queue {wanted} selects namespace {namespace.name}",
            )
        )
        namespace.labelling, namespace.labelling_seq = wanted, decision.seq
        state.namespaces.put(namespace)
    problem = ""
    if wanted == namespace.queue:
        problem = binding_problem(state, namespace) if wanted else _undecided(state, namespace)
    _notice(state, namespace, "BindingDoesNotCount", problem)


def _is_another_cells(state: State, name: str) -> bool:
    """Every cell is told of all Queues and namespaces, and judges its own."""
    return name not in state.tree and any(q.name == name and q.cluster == state.home for q in state.queues)


def _notice(state: State, namespace: Namespace, reason: str, problem: str) -> None:
    """Tell of a problem once, and again when it comes back."""
    if problem == namespace.noticed:
        return
    namespace.noticed = problem
    state.namespaces.put(namespace)
    if problem:
        state.decide(Notice(**state.about(namespace), about="namespace", reason=reason, sentence=problem))


def _wanted_binding(state: State, namespace: Namespace) -> str:
    """The binding as it is while it counts; otherwise the one queue that selects the namespace, if just one.

    A queue and those above it may select alike: then the lowest is meant. Where several branches select,
    an administrator must choose.
    """
    if namespace.queue and not binding_problem(state, namespace):
        return namespace.queue
    lowest = _lowest_selecting(state, namespace)
    return lowest[0] if len(lowest) == 1 else namespace.queue


def _undecided(state: State, namespace: Namespace) -> str:
    """That several queues select a namespace, so that it is bound to none; empty if they do not."""
    lowest = _lowest_selecting(state, namespace)
    if len(lowest) < 2:
        return ""
    return (
        f"queues {few(lowest)} all select namespace {namespace.name}, so it is bound to none of them: "
        "take it out of all but one, or label it sluice.dev/queue=NAME"
    )


def _lowest_selecting(state: State, namespace: Namespace) -> list[str]:
    """The queues that select a namespace and have none below them that does."""
    selecting = [
        queue
        for name, queue in sorted(state.tree.items())
        if queue.usable and queue.facts.namespaces.selects(namespace.name, namespace.labels)
    ]
    return [q.name for q in selecting if not any(q in other.path[1:] for other in selecting)]


def bind_namespaces(state: State) -> None:
    """Redo what hangs on the queues, where it may be otherwise than before."""
    found = [namespace for namespace in state.namespaces if not state.is_stuck(namespace.key)]
    for namespace in sorted(found, key=lambda namespace: namespace.key):
        bind_namespace(state, namespace)
        rebind(state, namespace)


def rebind(state: State, namespace: Namespace) -> None:
    """Bring the accounts of a namespace's workloads and pods to the queues that they belong to now: those that name
    the same queue, or none, stay together where they are while the rules say of them what they said before."""
    bound = state.bound.get(namespace.key, {})
    named = state.choosy.get((namespace.cluster, namespace.name), {})
    found = {wanted: _queue_named(state, namespace, wanted, "account") for wanted in ("", *named)}
    if bound.get("") != found[""]:
        place_all(state, namespace)
    else:
        moved = (key for wanted in named if bound.get(wanted) != found[wanted] for key in named[wanted])
        for key in sorted(moved, reverse=True):  # workloads before pods: these follow
            _place(state, key)
    state.bound[namespace.key] = found


def place_all(state: State, namespace: Namespace) -> None:
    """Everything of a namespace to where it belongs now."""
    where = (namespace.cluster, namespace.name)
    for workload in state.workloads.in_namespace(*where):
        place_workload(state, workload)
    for pod in state.pods.in_namespace(*where):
        if not state.is_stuck(pod.key):
            _place_pod(state, pod, pod.application, pod.pod_set)


def _place(state: State, key: str) -> None:
    workload, pod = state.workloads.get(key), state.pods.get(key)
    if workload is not None:
        place_workload(state, workload)
    elif pod is not None and not state.is_stuck(key):
        _place_pod(state, pod, pod.application, pod.pod_set)


def regroup(state: State, pods: Iterable[Pod]) -> None:
    """Charge pods to the applications that they belong to now, and so to their queues."""
    for pod in [pod for pod in pods if not state.is_stuck(pod.key)]:
        _place_pod(state, pod, *charged_to(state, pod))


def _place_pod(state: State, pod: Pod, application: str, pod_set: str) -> None:
    queue, problem = standing_of(state, pod, application)
    moved = (application, pod_set, queue) != (pod.application, pod.pod_set, pod.queue)
    if moved or (problem != pod.problem and not pod.holds):
        with state.changing(pod):
            pod.application, pod.pod_set, pod.queue, pod.problem = application, pod_set, queue, problem
    elif problem != pod.problem:
        pod.problem = problem  # what holds goes on holding: books and lines do not go by it
        state.pods.put(pod)


def place_workload(state: State, workload: Workload) -> None:
    """Its pods follow."""
    if state.is_stuck(workload.key):
        return
    queue, problem = queue_for(state, workload)
    problem = workload.facts.problem or problem
    if (queue, problem) == (workload.queue, workload.problem):
        return
    give_up_claim(state, workload.key)
    state.forest.leave(workload.key)
    workload.queue, workload.problem = queue, problem
    state.workload_changed(workload)
    regroup(state, state.kinship.pods_below(state, workload))
