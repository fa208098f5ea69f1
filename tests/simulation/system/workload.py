"""What tenants and administrators do."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

from simulation.system.actions import workload
from simulation.system.api import Json
from simulation.system.cluster import PODS, is_open, path_of, try_to_make
from simulation.system.conditions import POISON
from simulation.system.run import CPU, POOLED, QUEUES, System, pod
from sluice.vocabulary import (
    API_VERSION,
    MANAGED_LABEL,
    MIN_COUNT_ANNOTATION,
    POD_GROUP_LABEL,
    POD_GROUP_SIZE_ANNOTATION,
    POD_SET_LABEL,
    WORKLOAD_LABEL,
)

#: Names come again, so that some things are made anew.
NAMES: Final = 12
Draw = Callable[[Random], dict[str, Any]]


def _of(**choices: Any) -> Draw:
    """Draws each from what it may be."""
    return lambda rng: {name: rng.choice(list(values)) for name, values in choices.items()}


_PODS: Final = {"namespace": QUEUES, "cpu": (1, 1, 2, 3), "runs": (1, 3, 8, 20)}


@workload(10, _of(number=range(NAMES), **_PODS))
def single(system: System, *, namespace: str, number: int, cpu: int, runs: float) -> None:
    _make_pod(system, namespace, f"single-{number}", pod(cpu, runs))


@workload(3, _of(number=range(NAMES), count=(2, 3, 4), late=(0, 1), **_PODS))
def gang(
    system: System, *, namespace: str, number: int, count: int, late: int, cpu: int, runs: float
) -> None:
    """Pods that are admitted together; some come later than the others."""
    name = f"gang-{number}"
    for index in range(count):
        body = pod(min(cpu, 2), runs)
        body["metadata"]["labels"] = {POD_GROUP_LABEL: name}
        body["metadata"]["annotations"][POD_GROUP_SIZE_ANNOTATION] = str(count)
        delay_s = 3.0 if late and index == count - 1 else 0.0
        system.loop.call_later(delay_s, _make_pod, system, namespace, f"{name}-{index}", body)


@workload(4, _of(number=range(NAMES), parallelism=(1, 2, 3, 5), more=(0, 1, 4), least=(0, 2), **_PODS))
def job(
    system: System,
    *,
    namespace: str,
    number: int,
    parallelism: int,
    more: int,
    least: int,
    cpu: int,
    runs: float,
) -> None:
    annotations = {MIN_COUNT_ANNOTATION: str(min(least, parallelism))} if least else {}
    body = {
        "metadata": {"annotations": annotations},
        "spec": {
            "suspend": True,
            "parallelism": parallelism,
            "completions": parallelism + more,
            "template": pod(min(cpu, 2), runs),
        },
    }
    path = f"/apis/batch/v1/namespaces/{namespace}/jobs/job-{number}"
    if path not in system.api.objects:
        try_to_make(system.api, path, body)


@workload(3, _of(namespace=QUEUES, number=range(NAMES), parallelism=(1, 2, 4, 6)))
def scale(system: System, namespace: str, number: int, parallelism: int) -> None:
    """A job grows or shrinks."""

    def edit(found: Json) -> None:
        if "conditions" in found.get("status", {}):
            return  # it has ended for good
        found["spec"]["parallelism"] = parallelism
        found["spec"]["completions"] = max(found["spec"]["completions"], parallelism)

    system.api.change(f"/apis/batch/v1/namespaces/{namespace}/jobs/job-{number}", edit)


@workload(2, _of(number=range(4), count=(1, 2, 4), least=(0, 1, 2), **_PODS))
def by_hand(
    system: System, *, namespace: str, number: int, count: int, least: int, cpu: int, runs: float
) -> None:
    """An application that nobody knows, with a DynamicWorkload that is written by hand; made again, it has another
    size."""
    name = f"hand-{number}"
    path = f"/apis/{API_VERSION}/namespaces/{namespace}/dynamicworkloads/{name}"
    requests = {"cpu": str(min(cpu, 2))}
    pod_set = {"name": "main", "count": count, "minCount": min(least, count), "requests": requests}
    if path not in system.api.objects:
        try_to_make(system.api, path, {"spec": {"podSets": [pod_set], "application": {"kind": "Own"}}})
    else:
        system.api.change(path, lambda found: found["spec"].update(podSets=[pod_set]))
    for index in range(count):
        body = pod(min(cpu, 2), runs)
        body["metadata"]["labels"] = {WORKLOAD_LABEL: name, POD_SET_LABEL: "main"}
        _make_pod(system, namespace, f"{name}-{index}", body)


@workload(3, _of(which=range(8), ends=("Failed", "Succeeded", "")))
def end(system: System, which: int, ends: str) -> None:
    """A pod fails, succeeds early, or is deleted by its owner."""
    pods = system.api.of(PODS)
    if not pods:
        return
    found = pods[which % len(pods)]
    if not ends:
        system.api.delete_gracefully(path_of(found))
    elif is_open(found) and found["spec"].get("nodeName"):
        system.api.change(path_of(found), lambda it: it["status"].update(phase=ends))


@workload(2, _of(namespace=QUEUES, name=("job", "hand"), number=range(NAMES)))
def give_up(system: System, namespace: str, name: str, number: int) -> None:
    """An application is deleted, with its pods."""
    plural = "batch/v1" if name == "job" else API_VERSION
    kind = "jobs" if name == "job" else "dynamicworkloads"
    system.api.remove(f"/apis/{plural}/namespaces/{namespace}/{kind}/{name}-{number}")
    for found in system.api.of(PODS):
        if found["metadata"].get("labels", {}).get(WORKLOAD_LABEL) == f"{name}-{number}":
            system.api.delete_gracefully(path_of(found))


@workload(3, _of(name=QUEUES, weight=(1, 2, 5), limit=(0, 2, 4, 6), guaranteed=(0, 0, 2)))
def edit_queue(system: System, name: str, weight: int, limit: int, guaranteed: int) -> None:
    spec: Json = {"weight": weight, "namespaces": {"names": [name]}}
    spec |= {"limit": {"cpu": str(limit)}} if limit else {}
    spec |= {"guaranteed": {"cpu": str(guaranteed)}} if guaranteed else {}
    path = f"/apis/{API_VERSION}/queues/{name}"
    system.api.change(path, lambda found: found.update(spec=spec))


@workload(2, _of(name=(*POOLED, "three"), cpu=(0, 2, CPU, CPU, 6)))
def edit_node(system: System, name: str, cpu: int) -> None:
    """A node comes, goes (0), or is another size."""
    path = f"/api/v1/nodes/{name}"
    if not cpu:
        system.api.remove(path)
        for found in system.api.of(PODS):
            if found["spec"].get("nodeName") == name:
                system.api.remove(path_of(found))
    elif not system.api.change(path, lambda it: it["status"]["allocatable"].update(cpu=str(cpu))):
        system.node(name, cpu=cpu)


@workload(1, _of(name=POOLED, off=(True, False)))
def cordon(system: System, name: str, off: bool) -> None:
    system.api.change(f"/api/v1/nodes/{name}", lambda it: it["spec"].update(unschedulable=off))


@workload(1, _of(name=QUEUES, bound=(False, True)))
def unbind(system: System, name: str, bound: bool) -> None:
    """A namespace loses its labels, and may get that of managed ones back: Sluice binds it then."""
    path = f"/api/v1/namespaces/{name}"
    labels = {MANAGED_LABEL: "true"} if bound else {}
    system.api.change(path, lambda it: it["metadata"].update(labels=labels))


@workload(1, _of(name=QUEUES))
def unnamespace(system: System, name: str) -> None:
    """A namespace is deleted with all that is in it, and made again."""
    path = f"/api/v1/namespaces/{name}"
    for inside in [each for each in system.api.objects if each.startswith(f"{path}/")]:
        system.api.remove(inside)
    system.api.remove(path)
    system.loop.call_later(2.0, system.namespace, name)


@workload(1, _of(name=QUEUES, number=range(3)))
def nonsense(system: System, name: str, number: int) -> None:
    """A pod that can't be read."""
    body = pod(1, 1)
    body["metadata"]["annotations"][POD_GROUP_SIZE_ANNOTATION] = "many"
    body["metadata"]["labels"] = {POD_GROUP_LABEL: "nonsense"}
    _make_pod(system, name, f"nonsense-{number}", body)


@workload(1, _of(name=QUEUES, number=range(3)))
def poison(system: System, name: str, number: int) -> None:
    """A pod that makes the core raise: it is set aside, and everybody else goes on."""
    _make_pod(system, name, f"{POISON}-{number}", pod(1, 1))


def _make_pod(system: System, namespace: str, name: str, body: Json) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    there = system.api.objects.get(path)
    if f"/api/v1/namespaces/{namespace}" not in system.api.objects:
        return
    if there is not None and there["status"]["phase"] in ("Succeeded", "Failed"):
        system.api.remove(path)
        there = None
    if there is None:
        try_to_make(system.api, path, body)
