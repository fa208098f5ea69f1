"""Whoever else acts in the cluster: its scheduler, kubelets, the Job controller, and tenants' own controllers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, Final

from fakes.actuated_cluster import _Refused
from simulation.system.api import ApiServer, Json
from simulation.system.loop import VirtualLoop

PODS: Final = "/api/v1/pods"
NODES: Final = "/api/v1/nodes"
JOBS: Final = "/apis/batch/v1/jobs"
#: On pods: so many seconds they run, and what becomes of them then.
RUNS: Final = "test/runs"
ENDS: Final = "test/ends"
PASS_S: Final = 0.5
BOOKMARK_S: Final = 60.0


def cpu_of(pod: Json) -> int:
    """In milli-cores."""
    return sum(int(each["resources"]["requests"]["cpu"]) * 1000 for each in pod["spec"]["containers"])


def is_open(pod: Json) -> bool:
    """Whether it holds a share: it is behind no gate, and did not end."""
    return not pod["spec"].get("schedulingGates") and pod["status"].get("phase") not in (
        "Succeeded",
        "Failed",
    )


class Controllers:
    """All of them, in one pass every half second. They see everything at once, and are never at fault."""

    def __init__(self, loop: VirtualLoop, api: ApiServer, rng: Random) -> None:
        self._loop, self._api, self._rng = loop, api, rng
        self._started: dict[str, float] = {}
        loop.call_later(PASS_S, self._pass)
        loop.call_later(BOOKMARK_S, self._bookmark)

    def _bookmark(self) -> None:
        for collection in self._api.collections:
            self._api.watched.bookmark(collection)
        self._loop.call_later(BOOKMARK_S, self._bookmark)

    def _pass(self) -> None:
        for job in self._api.of(JOBS):
            self._look_after(job)
        self._place()
        for pod in self._api.of(PODS):
            self._run(pod)
        self._loop.call_later(PASS_S, self._pass)

    # ---- the scheduler

    def _place(self) -> None:
        pods = self._api.of(PODS)
        taken: defaultdict[str, int] = defaultdict(int)
        for pod in pods:
            if is_open(pod):
                taken[pod["spec"].get("nodeName", "")] += cpu_of(pod)
        for pod in pods:
            spec = pod["spec"]
            if not is_open(pod) or spec.get("nodeName"):
                continue
            for node in self._api.of(NODES):
                name, room = node["metadata"]["name"], int(node["status"]["allocatable"]["cpu"]) * 1000
                if not _selects(spec.get("nodeSelector", {}), node) or node["spec"].get("unschedulable"):
                    continue
                if taken[name] + cpu_of(pod) <= room:
                    taken[name] += cpu_of(pod)
                    self._api.change(path_of(pod), lambda it, name=name: it["spec"].update(nodeName=name))
                    break

    # ---- kubelets

    def _run(self, pod: Json) -> None:
        path, uid, phase = path_of(pod), pod["metadata"]["uid"], pod["status"]["phase"]
        if "deletionTimestamp" in pod["metadata"]:
            self._api.remove(path)
        elif not pod["spec"].get("nodeName") or phase in ("Succeeded", "Failed"):
            return
        elif phase == "Pending":
            self._started[uid] = self._loop.time()
            self._api.change(path, lambda it: it["status"].update(phase="Running"))
        elif self._loop.time() - self._started[uid] >= float(_annotation(pod, RUNS) or 5):
            ends = _annotation(pod, ENDS) or "Succeeded"
            self._api.change(path, lambda it: it["status"].update(phase=ends))

    # ---- the Job controller

    def _look_after(self, job: Json) -> None:
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        mine = [pod for pod in self._api.of(PODS) if _owner(pod) == job["metadata"]["uid"]]
        alive = [pod for pod in mine if pod["status"]["phase"] in ("Pending", "Running")]
        succeeded = sum(pod["status"]["phase"] == "Succeeded" for pod in mine)
        status: Json = {"active": len(alive), "succeeded": succeeded}
        spec = job["spec"]
        if succeeded >= spec["completions"]:
            status["conditions"] = [{"type": "Complete", "status": "True"}]
        path = f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}"
        if job.get("status") != status:
            self._api.change(path, lambda it: it.update(status=status))
        if spec.get("suspend") or "conditions" in status:
            for pod in alive:
                self._api.delete_gracefully(path_of(pod))
            return
        wanted = min(spec["parallelism"], spec["completions"] - succeeded)
        for pod in alive[wanted:] if len(alive) > wanted else ():
            self._api.delete_gracefully(path_of(pod))
        for number in self._free_numbers(namespace, name, wanted - len(alive)):
            owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
            body = {**spec["template"], "metadata": {"ownerReferences": [{**owner, "controller": True}]}}
            try_to_make(self._api, f"/api/v1/namespaces/{namespace}/pods/{name}-{number}", body)

    def _free_numbers(self, namespace: str, name: str, count: int) -> Iterator[int]:
        number = 0
        while count > 0:
            if f"/api/v1/namespaces/{namespace}/pods/{name}-{number}" not in self._api.objects:
                count -= 1
                yield number
            number += 1


def try_to_make(api: ApiServer, path: str, body: Json) -> bool:
    """Policies may refuse it."""
    try:
        api.make(path, body)
    except _Refused:
        return False
    return True


def path_of(pod: Json) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _selects(selector: dict[str, str], node: Json) -> bool:
    return bool(selector.items() <= node["metadata"].get("labels", {}).items())


def _annotation(pod: Json, name: str) -> Any:
    return pod["metadata"].get("annotations", {}).get(name)


def _owner(pod: Json) -> str:
    return next((each["uid"] for each in pod["metadata"].get("ownerReferences", ())), "")
