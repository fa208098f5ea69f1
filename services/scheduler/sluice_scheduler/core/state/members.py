"""Members: which workload or pods a claim is for, and which workload or namespace a pod belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sluice_scheduler.core.stored.accounts import Pod, Workload
from sluice_scheduler.core.stored.tables import Tables

if TYPE_CHECKING:
    from sluice_scheduler.core.state.application import Application
    from sluice_scheduler.core.state.state import State


def application_by_claim(state: State, claim: str) -> Application | None:
    workload = state.workloads.get(claim)
    if workload is not None:
        return state.applications.get(workload.place)
    kind, _, place = claim.partition("/")
    if kind == "replica":
        _, _, place = place.partition("/")
    elif kind != "group":
        return None
    cluster, namespace, name = place.split("/", 2)
    return state.applications.get((cluster, namespace, name))


def application_at(state: State, claim: str) -> Application | None:
    """The application that a claim is one of, be it a pod of it."""
    pod = state.pods.get(claim)
    if pod is None:
        return application_by_claim(state, claim)
    return state.applications.get((pod.cluster, pod.namespace, pod.application))


def workload_of(state: State, claim: str) -> Workload | None:
    """The workload that a claim is of."""
    workload = state.workloads.get(claim)
    pod = state.pods.get(claim)
    if workload is None and pod is not None and pod.application:
        return state.workload_by_title.get((pod.cluster, pod.namespace, pod.application))
    app = application_by_claim(state, claim) if workload is None and pod is None else None
    return app.workload if app is not None else workload


def is_replica(claim: str) -> bool:
    """Whether a claim is for the pods of one replica: admitted together, they are growth all the same."""
    return claim.startswith("replica/")


def is_growth(state: State, claim: str) -> bool:
    """Whether what a claim lets in can be taken back by itself: not so a gang, nor a pod that its application's minimum
    lacks."""
    pod = state.pods.get(claim)
    if pod is None:
        return is_replica(claim)
    app = state.application_of(pod) if pod.application else None
    book = app.books.get(pod.pod_set) if app is not None else None
    return app is None or (len(book.order) if book else 0) >= app.minima().get(pod.pod_set, 0)


def group_of(state: State, claim: str) -> list[Pod]:
    """The pods of a pod group, or of a replica, that wait to be admitted together."""
    app = application_by_claim(state, claim)
    kind, pod_set, *_ = claim.split("/", 2)
    if app is not None and kind == "replica":
        return app.replica(state, pod_set)
    return [state.pod(key) for book in app.books.values() for key in book.ready.keys] if app else []


def priority_of(state: State, claim: str) -> int:
    workload = workload_of(state, claim)
    if workload is not None:
        return workload.priority
    pods = [state.pod(claim)] if claim in state.pods else group_of(state, claim)
    return max((pod.facts.priority for pod in pods), default=0)


def holding_of(state: State, workload: Workload) -> list[Pod]:
    """Its pods that hold and are not being taken back."""
    app = state.applications.get(workload.place)
    books = app.books.values() if app else ()
    return [state.pod(key) for key in sorted(key for book in books for key in book.holding)]


def holds(state: State, claim: str) -> bool:
    """Whether a claim that was let in holds anything, or will once others have left."""
    pod, app = state.pods.get(claim), application_by_claim(state, claim)
    return (
        (pod is not None and pod.holds)
        or state.promise_for(claim) is not None
        or (app is not None and any(book.holding or book.reserved for book in app.books.values()))
    )


def application_key(state: State, claim: str) -> str:
    """The key of the pod or application that a claim is of. Nothing that is derived is asked."""
    kind, _, place = claim.partition("/")
    if kind == "replica":
        _, _, place = place.partition("/")
    elif kind != "group":
        return claim
    cluster, namespace, name = place.split("/", 2)
    return _keys_at(state, (cluster, namespace, name))[0]


def part_of_application(state: State, key: str) -> str:
    """The key of the application that a pod is charged with; empty if it stands for itself."""
    pod = state.pods.get(key)
    if pod is None or not pod.application:
        return ""
    return _keys_at(state, (pod.cluster, pod.namespace, pod.application))[0]


def set_aside_by(state: State, key: str) -> list[str]:
    """By which keys something may be set aside: its own, and those of the application in its place."""
    account = state.workloads.get(key) or state.pods.get(key)
    name = account.title if isinstance(account, Workload) else account.application if account else ""
    at = _keys_at(state, (account.cluster, account.namespace, name)) if account is not None and name else []
    return list(dict.fromkeys((key, *at)))


def _keys_at(state: State, place: tuple[str, str, str]) -> list[str]:
    """The keys of the application in a place: its workload's, and that of the group that it was before."""
    workload = state.workload_by_title.get(place)
    return [*([workload.key] if workload is not None else ()), "group/" + "/".join(place)]


def is_out(state: State, place: tuple[str, str, str]) -> bool:
    """Whether the application in a place is set aside: then it is as if it were not there."""
    return bool(len(state.asides)) and any(state.is_aside(key) for key in _keys_at(state, place))


def stands_in_no_line(state: State, pod: Pod) -> bool:
    """Whether a pod, or the application that it belongs to, is set aside."""
    if not len(state.asides):
        return False
    place = (pod.cluster, pod.namespace, pod.application)
    return state.is_aside(pod.key) or (bool(pod.application) and is_out(state, place))


def stuck_in(state: State, app: Application, pod_set: str) -> int:
    """How many pods of a set hold and stand in no book, because they are stuck: nothing is reserved for these."""
    if not len(state.asides):
        return 0
    stuck = (pod for aside in state.asides if aside.stuck and (pod := state.pods.get(aside.what)) is not None)
    return sum(
        1
        for pod in stuck
        if (pod.cluster, pod.namespace, pod.application) == app.key
        and pod.pod_set == pod_set
        and pod.holds
        and not pod.evicting
    )


def queue_of(state: State, key: str) -> str:
    """The queue that a pod or an application is charged to; empty if it is not known."""
    account = state.pods.get(key) or state.workloads.get(key)
    if account is None and key.startswith("group/"):
        _, cluster, namespace, name = key.split("/", 3)
        there = (pod for pod in state.pods.in_namespace(cluster, namespace) if pod.application == name)
        account = next(there, None)
    return account.queue if account is not None else ""


def by_named_queue(tables: Tables) -> dict[tuple[str, str], dict[str, dict[str, None]]]:
    """By namespace, the accounts that name a queue themselves: by that queue, their keys."""
    found: dict[tuple[str, str], dict[str, dict[str, None]]] = {}
    accounts: tuple[Workload | Pod, ...] = (*tables.workloads, *tables.pods)
    for account in accounts:
        if account.facts.queue:
            there = found.setdefault((account.cluster, account.namespace), {})
            there.setdefault(account.facts.queue, {})[account.key] = None
    return found
