"""What is done to pods: opened, taken back, made, cleaned up."""

from __future__ import annotations

from typing import Any

from sluice.applications import QUEUE_JOB
from sluice.decisions import Admit, CreatePod, Delete, Evict
from sluice.values import DecisionId
from sluice.vocabulary import API_VERSION, DECISION_ANNOTATION, GATE, INDEX_LABEL, JOB_LABEL

from sluice_actuator.effects.base import GONE, Outcome, carried_by, read
from sluice_actuator.effects.names import JOBS, WORKLOADS
from sluice_actuator.kube import STRATEGIC_MERGE_PATCH, Answer, Cluster, pod_path


class AdmitEffect:
    """Take the gate off, narrow the pod to its pool, write down who decided it: one strategic merge patch.

    It names the gate rather than its place in the list, needs no annotations to be there already, and changes
    nothing when it is applied again. The API server refuses it when the uid is not the pod's.
    """

    blind = True
    patient_until_ms = 0

    def __init__(self, cluster: Cluster, decision: Admit, identity: DecisionId) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._path = pod_path(decision.namespace, decision.name)

    async def write(self, now_ms: int) -> Answer:
        spec: dict[str, Any] = {"schedulingGates": [{"$patch": "delete", "name": GATE}]}
        if self._decision.node_selector:
            spec["nodeSelector"] = self._decision.node_selector
        metadata = {"uid": self._decision.uid, "annotations": {DECISION_ANNOTATION: str(self._identity)}}
        patch = {"metadata": metadata, "spec": spec}
        return await self._cluster.patch(self._path, patch, form=STRATEGIC_MERGE_PATCH)

    async def compare(self) -> Outcome | None:
        pod = await read(self._cluster, self._path)
        if pod is None or pod["metadata"]["uid"] != self._decision.uid:
            return GONE
        if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ())):
            return None
        carried = carried_by(pod["metadata"].get("annotations", {}).get(DECISION_ANNOTATION))
        if carried is not None and carried >= self._identity:
            return Outcome("AlreadyApplied", f"the pod carries decision {carried}")
        return Outcome("Conflict", f"the gate was opened by {carried or 'somebody else'}")


class EvictEffect:
    """Ask for the pod to go, at least once and until the deadline; then delete it.

    Asking comes first even when there is no grace: it leaves word on the pod that it was disrupted, which its
    owner may forgive. The API server does not hold up pods that never ran, gated ones among them.

    How long it may take to end the pod says itself, up to a bound: others wait for its room. The API server takes a
    longer time as well as a shorter one, so the pod is read first, and only a shorter one is asked for. Of one that is
    being deleted the time is cut too.
    """

    blind = False

    def __init__(
        self, cluster: Cluster, decision: Evict, identity: DecisionId, *, termination_s: int
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._termination_s = termination_s
        self._grace_s: int | None = None  # as long as it says itself
        self._path = pod_path(decision.namespace, decision.name)
        self._asked = False
        self.patient_until_ms = decision.deadline_ms

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        if self._asked and now_ms >= decision.deadline_ms:
            return await self._cluster.delete(self._path, uid=decision.uid, grace_s=self._grace_s)
        self._asked = True
        return await self._cluster.evict(
            decision.namespace, decision.name, uid=decision.uid, grace_s=self._grace_s
        )

    async def compare(self) -> Outcome | None:
        pod = await read(self._cluster, self._path)
        if pod is None or pod["metadata"]["uid"] != self._decision.uid:
            return GONE
        is_leaving = "deletionTimestamp" in pod["metadata"]
        of_its_own_s = (
            pod["metadata"].get("deletionGracePeriodSeconds", 0)
            if is_leaving
            else pod["spec"].get("terminationGracePeriodSeconds", 0)
        )
        self._grace_s = self._termination_s if of_its_own_s > self._termination_s else None
        if is_leaving and self._grace_s is None:
            return Outcome("AlreadyApplied", "the pod is being deleted")
        return None


class CreatePodEffect:
    """Make a pod of a QueueJob from its template as it is now. There is one pod of the decision's name."""

    blind = True
    patient_until_ms = 0

    def __init__(self, cluster: Cluster, decision: CreatePod, identity: DecisionId) -> None:
        self._cluster = cluster
        self._decision = decision
        self._path = pod_path(decision.namespace, decision.name)
        self._job_path = JOBS.path(decision.namespace, decision.job)

    async def write(self, now_ms: int) -> Answer:
        found = await self._cluster.get(self._job_path)
        if not found.ok:
            return found
        job = found.json()
        if job["metadata"]["uid"] != self._decision.uid:
            return Answer(404, b"")  # a later job of that name
        template = job["spec"]["template"]
        written = template.get("metadata") or {}
        owner = {"apiVersion": API_VERSION, "kind": QUEUE_JOB, "name": self._decision.job}
        mine = {JOB_LABEL: self._decision.job, INDEX_LABEL: str(self._decision.index)}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": self._decision.name,
                "namespace": self._decision.namespace,
                "labels": {**(written.get("labels") or {}), **mine},
                "annotations": written.get("annotations") or {},
                "ownerReferences": [{**owner, "uid": self._decision.uid, "controller": True}],
            },
            "spec": {"restartPolicy": "Never", **template["spec"]},
        }
        return await self._cluster.create(self._path.rpartition("/")[0], pod)

    async def compare(self) -> Outcome | None:
        found = await read(self._cluster, self._path)
        if found is None:
            return None
        owners = found["metadata"].get("ownerReferences", ())
        if any(owner["uid"] == self._decision.uid for owner in owners):
            return Outcome("AlreadyApplied", "the pod is there")
        return Outcome("Conflict", f"there is a pod {self._decision.name} of somebody else")


class DeleteEffect:
    """Clean up an object, if it still is what it was."""

    blind = False
    patient_until_ms = 0

    def __init__(self, cluster: Cluster, decision: Delete, identity: DecisionId) -> None:
        self._cluster = cluster
        self._decision = decision
        self._is_pod = decision.about == "pod"
        path = pod_path if self._is_pod else WORKLOADS.path
        self._path = path(decision.namespace, decision.name)
        self._uid = decision.uid

    async def write(self, now_ms: int) -> Answer:
        return await self._cluster.delete(self._path, uid=self._uid)

    async def compare(self) -> Outcome | None:
        found = await read(self._cluster, self._path)
        if found is None:
            return GONE
        if not self._is_pod:
            self._uid = found["metadata"]["uid"]
            return None if found["spec"]["application"].get("uid") == self._decision.uid else GONE
        if found["metadata"]["uid"] != self._decision.uid:
            return GONE
        if "deletionTimestamp" in found["metadata"]:
            return Outcome("AlreadyApplied", "the pod is being deleted")
        if not any(gate["name"] == GATE for gate in found["spec"].get("schedulingGates", ())):
            return Outcome("Conflict", "the pod's gate is open")
        return None
