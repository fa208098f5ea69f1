"""What is told to people: bindings, statuses, notices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sluice.decisions import LabelNamespace, Notice, Report, ReportJob, ReportWorkload
from sluice.values import DecisionId
from sluice.vocabulary import API_VERSION, DECISION_ANNOTATION, QUEUE_LABEL

from sluice_actuator.effects.base import GONE, Outcome, carried_by, judge_carried, read
from sluice_actuator.effects.names import JOBS, WORKLOADS
from sluice_actuator.kube import (
    JSON_PATCH,
    MERGE_PATCH,
    Answer,
    Cluster,
    Json,
    events_path,
    namespace_path,
    sluice_path,
)
from sluice_actuator.statuses import rfc3339, status_of


class LabelNamespaceEffect:
    """Bind a namespace, or unbind it. What was read must still stand: an administrator may be faster."""

    blind = False
    patient_until_ms = 0

    def __init__(self, cluster: Cluster, decision: LabelNamespace, identity: DecisionId) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._path = namespace_path(decision.name)
        self._version = ""

    async def write(self, now_ms: int) -> Answer:
        metadata = {
            "uid": self._decision.uid,
            "resourceVersion": self._version,
            "labels": {QUEUE_LABEL: self._decision.queue or None},
            "annotations": {DECISION_ANNOTATION: str(self._identity)},
        }
        return await self._cluster.patch(self._path, {"metadata": metadata}, form=MERGE_PATCH)

    async def compare(self) -> Outcome | None:
        namespace = await read(self._cluster, self._path)
        if namespace is None or namespace["metadata"]["uid"] != self._decision.uid:
            return GONE
        self._version = namespace["metadata"]["resourceVersion"]
        carried = namespace["metadata"].get("annotations", {}).get(DECISION_ANNOTATION)
        return judge_carried(carried_by(carried), self._identity)


class ReportEffect:
    """Replace a status, whole: a merge would keep amounts of pools long gone.

    Reports must not overtake each other, and a status moves only with its spec and with reports, so the
    precondition is the resourceVersion. It is remembered from one report to the next, and stands for the uid
    too: no other object has had it, and a change of uid is ignored where only the status is written.
    """

    patient_until_ms = 0

    def __init__(
        self,
        cluster: Cluster,
        decision: Report,
        identity: DecisionId,
        versions: dict[str, str],
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._versions = versions
        self._path = _path_of(decision)
        self._key = f"{decision.kind}/{decision.uid}"
        if isinstance(decision, ReportWorkload) and decision.resource_version:
            versions.setdefault(self._key, str(decision.resource_version))
        self.blind = self._key in versions

    async def write(self, now_ms: int) -> Answer:
        key = self._key
        patch: Json = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": self._versions[key]},
            {"op": "add", "path": "/status", "value": status_of(self._decision, self._identity)},
        ]
        answer = await self._cluster.patch(self._path + "/status", patch, form=JSON_PATCH)
        if answer.ok and self._is_last:
            del self._versions[key]
        elif answer.ok:
            self._versions[key] = answer.json()["metadata"]["resourceVersion"]
        elif answer.status == 404:
            del self._versions[key]
        return answer

    async def compare(self) -> Outcome | None:
        found = await read(self._cluster, self._path)
        if found is None or not self._is_about(found):
            self._versions.pop(self._key, None)
            return GONE
        self._versions[self._key] = found["metadata"]["resourceVersion"]
        return judge_carried(carried_by(found.get("status", {}).get("decision")), self._identity)

    @property
    def _is_last(self) -> bool:
        report = self._decision
        return isinstance(report, ReportWorkload | ReportJob) and report.phase in ("Finished", "Failed")

    def _is_about(self, found: Mapping[str, Any]) -> bool:
        """A DynamicWorkload that shows an application bears a uid of its own."""
        uids = {found["metadata"]["uid"]}
        if isinstance(self._decision, ReportWorkload):
            uids.add(found["spec"]["application"].get("uid", ""))
        return self._decision.uid in uids


class NoticeEffect:
    """Tell people in a Kubernetes Event on the object. Its name is the decision's, so there is only one."""

    blind = True
    patient_until_ms = 0

    _KINDS: Final = {
        "pod": ("v1", "Pod"),
        "namespace": ("v1", "Namespace"),
        "queue": (API_VERSION, "Queue"),
        "resourcepool": (API_VERSION, "ResourcePool"),
    }

    def __init__(self, cluster: Cluster, decision: Notice, identity: DecisionId) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._exists = False

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        api_version, kind = self._KINDS[decision.about]
        namespace = decision.namespace or "default"  # where events on cluster-scoped objects live
        time = rfc3339(decision.time_ms)
        answer = await self._cluster.create(
            events_path(namespace),
            {
                "metadata": {
                    "name": f"sluice-{decision.cell}-{decision.seq}",
                    "namespace": namespace,
                    "annotations": {DECISION_ANNOTATION: str(self._identity)},
                },
                "involvedObject": {
                    "apiVersion": api_version,
                    "kind": kind,
                    "name": decision.name,
                    "uid": decision.uid,
                    "namespace": decision.namespace,
                },
                "type": "Warning",  # a notice says what somebody has to put right
                "reason": decision.reason,
                "message": decision.sentence,
                "source": {"component": "sluice"},
                "firstTimestamp": time,
                "lastTimestamp": time,
                "count": 1,
            },
        )
        self._exists = answer.status == 409
        return answer

    async def compare(self) -> Outcome | None:
        """Creating it once more is the comparison: the name can be taken by this decision alone."""
        return Outcome("AlreadyApplied", "the notice is there") if self._exists else None


def _path_of(report: Report) -> str:
    if isinstance(report, ReportWorkload):
        return WORKLOADS.path(report.namespace, report.name)
    if isinstance(report, ReportJob):
        return JOBS.path(report.namespace, report.name)
    return sluice_path(f"{report.kind}s", report.name)
