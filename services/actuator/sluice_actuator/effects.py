"""What each decision does to its object: one idempotent call, and how to see whether it was carried out.

An effect knows its object and nothing of retries, queues or logs; `settle` drives it. `write` makes the call
under a precondition that fails when the object is no longer what the decision was about. `compare` reads the
object and says what became of the decision, or None when it has not been carried out yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from sluice.applications import APPLICATION_KINDS, BY_HAND, ApplicationKind
from sluice.decisions import (
    Admit,
    AdmitWorkload,
    CreateWorkload,
    Delete,
    Evict,
    EvictWorkload,
    LabelNamespace,
    Notice,
    ObjectDecision,
    ReportPool,
    ReportQueue,
    ReportWorkload,
)
from sluice.events import Result
from sluice.values import DecisionId
from sluice.vocabulary import (
    API_VERSION,
    DECISION_ANNOTATION,
    GATE,
    QUEUE_LABEL,
    RELEASED_ANNOTATION,
)

from sluice_actuator.kube import (
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_MERGE_PATCH,
    Answer,
    Cluster,
    Json,
    Unreachable,
    events_path,
    namespace_path,
    pod_path,
    sluice_path,
)
from sluice_actuator.statuses import rfc3339, shown_pod_set, status_of


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a decision, and in words why."""

    result: Result
    message: str = ""


_WORKLOADS: Final = APPLICATION_KINDS[BY_HAND]
GONE: Final = Outcome("Gone", "the object is gone, or another bears its name")


class Effect(Protocol):
    #: Whether the first write needs no look at the object.
    blind: bool
    #: Refusals for now are borne at least until then.
    patient_until_ms: int

    async def write(self, now_ms: int) -> Answer: ...

    async def compare(self) -> Outcome | None: ...


class Effects:
    """Makes the effect of any decision about an object of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._versions: dict[str, str] = {}

    def of(self, decision: ObjectDecision, identity: DecisionId) -> Effect:
        effect: Effect
        match decision:
            case Admit():
                effect = AdmitEffect(self._cluster, decision, identity)
            case Evict():
                effect = EvictEffect(self._cluster, decision)
            case LabelNamespace():
                effect = LabelNamespaceEffect(self._cluster, decision, identity)
            case AdmitWorkload() | EvictWorkload():
                kind = APPLICATION_KINDS.get(decision.application)
                if kind is None:
                    effect = NoEffect(f"a {decision.application} has no object: its pods' gates hold it back")
                else:
                    effect = ReleaseEffect(self._cluster, decision, identity, kind, self._versions)
            case CreateWorkload():
                effect = CreateWorkloadEffect(self._cluster, decision, identity, self._versions)
            case Delete():
                effect = DeleteEffect(self._cluster, decision)
            case ReportQueue() | ReportPool() | ReportWorkload():
                effect = ReportEffect(self._cluster, decision, identity, self._versions)
            case Notice():
                effect = NoticeEffect(self._cluster, decision, identity)
            case _:
                raise TypeError(f"no effect is known for decisions of type {decision.type!r}")
        return effect


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
        pod = await _read(self._cluster, self._path)
        if pod is None or pod["metadata"]["uid"] != self._decision.uid:
            return GONE
        if any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates", ())):
            return None
        carried = _carried(pod["metadata"].get("annotations", {}).get(DECISION_ANNOTATION))
        if carried is not None and carried >= self._identity:
            return Outcome("AlreadyApplied", f"the pod carries decision {carried}")
        return Outcome("Conflict", f"the gate was opened by {carried or 'somebody else'}")


class EvictEffect:
    """Ask for the pod to go, at least once and until the deadline; then delete it.

    Asking comes first even when there is no grace: it leaves word on the pod that it was disrupted, which its
    owner may forgive. The API server does not hold up pods that never ran, gated ones among them.
    """

    blind = True

    def __init__(self, cluster: Cluster, decision: Evict) -> None:
        self._cluster = cluster
        self._decision = decision
        self._path = pod_path(decision.namespace, decision.name)
        self._asked = False
        self.patient_until_ms = decision.deadline_ms

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        if self._asked and now_ms >= decision.deadline_ms:
            return await self._cluster.delete(self._path, uid=decision.uid)
        self._asked = True
        return await self._cluster.evict(decision.namespace, decision.name, uid=decision.uid)

    async def compare(self) -> Outcome | None:
        pod = await _read(self._cluster, self._path)
        if pod is None or pod["metadata"]["uid"] != self._decision.uid:
            return GONE
        if "deletionTimestamp" in pod["metadata"]:
            return Outcome("AlreadyApplied", "the pod is being deleted")
        return None


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

    An application that was released may be suspended again later, so a decision that is read once more must
    not undo a later one: the precondition is the resourceVersion, first the one that the scheduler saw.
    """

    blind = True
    patient_until_ms = 0

    def __init__(
        self,
        cluster: Cluster,
        decision: AdmitWorkload | EvictWorkload,
        identity: DecisionId,
        kind: ApplicationKind,
        versions: dict[str, str],
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._kind = kind
        self._versions = versions
        self._path = kind.path(decision.namespace, decision.name)
        self._version = str(decision.resource_version)

    async def write(self, now_ms: int) -> Answer:
        decision = self._decision
        release = isinstance(decision, AdmitWorkload)
        annotations = {DECISION_ANNOTATION: str(self._identity)}
        patch: dict[str, Any] = {
            "metadata": {
                "uid": decision.uid,
                "resourceVersion": self._version,
                "annotations": annotations,
            }
        }
        if decision.suspendable:
            at = patch
            for name in self._kind.suspend[:-1]:
                at = at.setdefault(name, {})
            at[self._kind.suspend[-1]] = not release
        else:
            annotations[RELEASED_ANNOTATION] = "true" if release else "false"
        answer = await self._cluster.patch(self._path, patch, form=MERGE_PATCH)
        if answer.ok and decision.application == BY_HAND:
            self._versions[decision.uid] = answer.json()["metadata"]["resourceVersion"]
        return answer

    async def compare(self) -> Outcome | None:
        found = await _read(self._cluster, self._path)
        if found is None or found["metadata"]["uid"] != self._decision.uid:
            return GONE
        self._version = found["metadata"]["resourceVersion"]
        carried = found["metadata"].get("annotations", {}).get(DECISION_ANNOTATION)
        return _judge_carried(_carried(carried), self._identity)


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
        self._path = _WORKLOADS.path(decision.namespace, decision.name)

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
            self._versions[decision.uid] = answer.json()["metadata"]["resourceVersion"]
        return answer

    async def compare(self) -> Outcome | None:
        found = await _read(self._cluster, self._path)
        if found is None:
            return None
        if found["spec"]["application"].get("uid") != self._decision.uid:
            return Outcome("Conflict", f"there is a DynamicWorkload {self._decision.name} of something else")
        self._versions[self._decision.uid] = found["metadata"]["resourceVersion"]
        return Outcome("AlreadyApplied", "the DynamicWorkload is there")


class DeleteEffect:
    """Clean up an object, if it still is what it was."""

    blind = False
    patient_until_ms = 0

    def __init__(self, cluster: Cluster, decision: Delete) -> None:
        self._cluster = cluster
        self._decision = decision
        self._is_pod = decision.about == "pod"
        path = pod_path if self._is_pod else _WORKLOADS.path
        self._path = path(decision.namespace, decision.name)
        self._uid = decision.uid

    async def write(self, now_ms: int) -> Answer:
        return await self._cluster.delete(self._path, uid=self._uid)

    async def compare(self) -> Outcome | None:
        found = await _read(self._cluster, self._path)
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
        namespace = await _read(self._cluster, self._path)
        if namespace is None or namespace["metadata"]["uid"] != self._decision.uid:
            return GONE
        self._version = namespace["metadata"]["resourceVersion"]
        carried = namespace["metadata"].get("annotations", {}).get(DECISION_ANNOTATION)
        return _judge_carried(_carried(carried), self._identity)


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
        decision: ReportQueue | ReportPool | ReportWorkload,
        identity: DecisionId,
        versions: dict[str, str],
    ) -> None:
        self._cluster = cluster
        self._decision = decision
        self._identity = identity
        self._versions = versions
        self._path = (
            _WORKLOADS.path(decision.namespace, decision.name)
            if isinstance(decision, ReportWorkload)
            else sluice_path(f"{decision.kind}s", decision.name)
        )
        self.blind = decision.uid in versions

    async def write(self, now_ms: int) -> Answer:
        uid = self._decision.uid
        patch: Json = [
            {"op": "replace", "path": "/metadata/resourceVersion", "value": self._versions[uid]},
            {"op": "add", "path": "/status", "value": status_of(self._decision, self._identity)},
        ]
        answer = await self._cluster.patch(self._path + "/status", patch, form=JSON_PATCH)
        if answer.ok and self._is_last:
            del self._versions[uid]
        elif answer.ok:
            self._versions[uid] = answer.json()["metadata"]["resourceVersion"]
        elif answer.status == 404:
            del self._versions[uid]
        return answer

    async def compare(self) -> Outcome | None:
        found = await _read(self._cluster, self._path)
        if found is None or not self._is_about(found):
            self._versions.pop(self._decision.uid, None)
            return GONE
        self._versions[self._decision.uid] = found["metadata"]["resourceVersion"]
        return _judge_carried(_carried(found.get("status", {}).get("decision")), self._identity)

    @property
    def _is_last(self) -> bool:
        return isinstance(self._decision, ReportWorkload) and self._decision.phase in ("Finished", "Failed")

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


async def _read(cluster: Cluster, path: str) -> dict[str, Any] | None:
    """The object, or None when there is none; Unreachable when the API server does not say."""
    answer = await cluster.get(path)
    if answer.status == 404:
        return None
    if not answer.ok:
        raise Unreachable(f"GET {path}: {answer.status} {answer.message}")
    found: dict[str, Any] = answer.json()
    return found


def _carried(text: str | None) -> DecisionId | None:
    return DecisionId.parse(text) if text else None


def _judge_carried(carried: DecisionId | None, identity: DecisionId) -> Outcome | None:
    if carried is None or carried < identity:
        return None
    if carried == identity:
        return Outcome("AlreadyApplied", "the object carries this decision")
    return Outcome("Superseded", f"the object carries the later decision {carried}")
