"""What is done to applications: released, suspended, shown."""

from __future__ import annotations

from typing import Any

from sluice.applications import APPLICATION_KINDS, BY_HAND, ApplicationKind
from sluice.decisions import AdmitWorkload, CreateWorkload, EvictWorkload
from sluice.values import DecisionId
from sluice.vocabulary import API_VERSION, DECISION_ANNOTATION, QUEUE_LABEL, RELEASED_ANNOTATION

from sluice_actuator.effects.base import GONE, Outcome, carried_by, judge_carried, read
from sluice_actuator.effects.names import WORKLOADS, version_key
from sluice_actuator.kube import MERGE_PATCH, Answer, Cluster
from sluice_actuator.statuses import shown_pod_set


class NoEffect:
    """A decision that stands in the log alone."""

    blind = False
    patient_until_ms = 0

    def __init__(self, why: str) -> None:
        self._why = why

    async def write(self, now_ms: int) -> Answer:
        raise AssertionError(f"nothing is to be written: {self._why}")

    async def compare(self) -> Outcome | None:
        return Outcome("AlreadyApplied", self._why)


class ReleaseEffect:
    """Release an application or suspend it, and write down who decided it: one merge patch.

    Releasing once more undoes at most a suspension that follows at once, and pods have their gates.
    Suspending once more would end what runs by a later decision: so that is looked at first, and has the
    resourceVersion as precondition.
    """

    patient_until_ms = 0

    def __init__(
        self,
        cluster: Cluster,
        decision: AdmitWorkload | EvictWorkload,
        identity: DecisionId,
        kind: ApplicationKind,
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._kind = kind
        self._path = kind.path(decision.namespace, decision.name)
        self._version = ""
        self.blind = isinstance(decision, AdmitWorkload)

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        release = isinstance(decision, AdmitWorkload)
        annotations = {DECISION_ANNOTATION: str(self._identity)}
        patch: dict[str, Any] = {"metadata": {"uid": decision.uid, "annotations": annotations}}
        if self._version:
            patch["metadata"]["resourceVersion"] = self._version
        if decision.suspendable:
            at = patch
            for name in self._kind.suspend[:-1]:
                at = at.setdefault(name, {})
            at[self._kind.suspend[-1]] = not release
        else:
            annotations[RELEASED_ANNOTATION] = "true" if release else "false"
        return await self._cluster.patch(self._path, patch, form=MERGE_PATCH)

    async def compare(self) -> Outcome | None:
        found = await read(self._cluster, self._path)
        if found is None or found["metadata"]["uid"] != self._decision.uid:
            return GONE
        self._version = found["metadata"]["resourceVersion"]
        carried = found["metadata"].get("annotations", {}).get(DECISION_ANNOTATION)
        return judge_carried(carried_by(carried), self._identity)


class CreateWorkloadEffect:
    """Make the DynamicWorkload of an application, which controls it and takes it along when it goes."""

    blind = True
    patient_until_ms = 0

    def __init__(
        self, cluster: Cluster, decision: CreateWorkload, identity: DecisionId, versions: dict[str, str]
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._versions = versions
        self._path = WORKLOADS.path(decision.namespace, decision.name)

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        kind = APPLICATION_KINDS.get(decision.application)
        application = {
            "apiVersion": kind.api_version if kind else "v1",
            "kind": decision.application,
            "name": decision.application_name,
            "uid": decision.uid,
        }
        spec: dict[str, Any] = {
            "application": application,
            "podSets": [shown_pod_set(each) for each in decision.pod_sets],
            "priority": decision.priority,
        }
        if decision.priority_class:
            spec["priorityClassName"] = decision.priority_class
        if decision.application_spec:
            spec["applicationSpec"] = decision.application_spec
        answer = await self._cluster.create(
            self._path.rpartition("/")[0],
            {
                "apiVersion": API_VERSION,
                "kind": BY_HAND,
                "metadata": {
                    "name": decision.name,
                    "namespace": decision.namespace,
                    "labels": {QUEUE_LABEL: decision.queue} if decision.queue else {},
                    "annotations": {DECISION_ANNOTATION: str(self._identity)},
                    "ownerReferences": [{**application, "controller": True}] if kind else [],
                },
                "spec": spec,
            },
        )
        if answer.ok:
            self._versions[version_key(decision.uid)] = answer.json()["metadata"]["resourceVersion"]
        return answer

    async def compare(self) -> Outcome | None:
        found = await read(self._cluster, self._path)
        if found is None:
            return None
        if found["spec"]["application"].get("uid") != self._decision.uid:
            return Outcome("Conflict", f"there is a DynamicWorkload {self._decision.name} of something else")
        self._versions[version_key(self._decision.uid)] = found["metadata"]["resourceVersion"]
        return Outcome("AlreadyApplied", "the DynamicWorkload is there")
