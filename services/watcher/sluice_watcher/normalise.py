"""Kubernetes objects → events: pure functions from an object as the API server sends it to what counts of it.

They may raise on an object that makes no sense; whoever calls them sets that object aside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, TypedDict

from sluice.applications import ApplicationKind
from sluice.crds import CrdError, parse_queue, parse_resource_pool
from sluice.crds.facts import pool_facts, queue_facts
from sluice.events import (
    Change,
    Gang,
    NamespaceEvent,
    NodeEvent,
    NodeFacts,
    ObjectEvent,
    PodEvent,
    PodFacts,
    PoolEvent,
    PoolFacts,
    PriorityClassEvent,
    QueueEvent,
    QueueFacts,
    WorkloadEvent,
    WorkloadFacts,
)
from sluice.texts import cut
from sluice.values import LabelRequirement, Resources
from sluice.vocabulary import (
    DECISION_ANNOTATION,
    GATE,
    GROUP,
    NAME_LABEL,
    POD_GROUP_SIZE_ANNOTATION,
    QUEUE_LABEL,
    SAVED_AT_ANNOTATION,
)

from sluice_watcher.applications.asked import gang as gang_of
from sluice_watcher.applications.fields import ApplicationError, Fields, count_of, decision_claimed
from sluice_watcher.applications.kinds import leads_to, member_of, read_application
from sluice_watcher.applications.owners import controller
from sluice_watcher.applications.templates import Overheads
from sluice_watcher.requests import Object, amounts, effective_requests

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
#: Of a namespace that has more, only its name's and Sluice's own count.
NAMESPACE_LABELS_MAX: Final = 1000
#: `fromisoformat` takes much more: dates alone, and times without a zone.
_RFC_3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """An object, and how and when the watcher came to see it."""

    object: Object
    change: Change
    cluster: str
    time_ms: int
    listed: bool  # in a re-list, not in the watch: another record comes right behind


class _Identity(TypedDict):
    time_ms: int
    cluster: str
    more: bool
    change: Change
    uid: str
    name: str
    namespace: str
    resource_version: int


def _identity(seen: Sighting) -> _Identity:
    metadata = seen.object["metadata"]
    return {
        "time_ms": seen.time_ms,
        "cluster": seen.cluster,
        "more": seen.listed,
        "change": seen.change,
        "uid": metadata["uid"],
        "name": metadata["name"],
        "namespace": metadata.get("namespace", ""),
        "resource_version": int(metadata["resourceVersion"]),
    }


def pod(seen: Sighting) -> PodEvent:
    metadata, spec = seen.object["metadata"], seen.object["spec"]
    annotations = metadata.get("annotations") or {}
    owner = controller(seen.object)
    member = member_of(seen.object, owner)
    group_size, gang = _group(seen)
    facts = PodFacts(
        requests=effective_requests(seen.object),
        created_ms=_milliseconds(metadata["creationTimestamp"]),
        queue=_labels(seen.object).get(QUEUE_LABEL, ""),
        priority=spec.get("priority") or 0,
        gated=_is_gated(seen.object),
        decision=decision_claimed(annotations.get(DECISION_ANNOTATION, "")),
        node=spec.get("nodeName", ""),
        node_selector=spec.get("nodeSelector") or {},
        phase=seen.object["status"].get("phase", "Pending"),
        deleting="deletionTimestamp" in metadata,
        owner=leads_to(owner),
        workload=member.named if member else "",
        pod_set=member.pod_set if member else "",
        group_size=group_size,
        gang=gang,
        saved_ms=_saved_ms(seen),
        ends_in_ms=(spec.get("activeDeadlineSeconds") or 0) * 1000,
        claims_devices=bool(spec.get("resourceClaims")),
    )
    return PodEvent(**_identity(seen), pod=facts)


def is_unmanaged(pod: Object, selector: Iterable[LabelRequirement] = ()) -> bool:
    """Mirror pods and DaemonSets' pods: nobody queues with them, they are what a node costs. And pods that
    the selector leaves out.

    Policies put no gate on them. A pod that has one, or a decision that opened it, is an ordinary one whose
    owner has dressed it up: whoever may patch a pod may write any owner and label into it.
    """
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    if DECISION_ANNOTATION in annotations or _is_gated(pod):
        return False
    return (
        MIRROR_ANNOTATION in annotations
        or any(
            owner["kind"] == "DaemonSet" and owner.get("controller")
            for owner in metadata.get("ownerReferences") or ()
        )
        or not all(required.matches(_labels(pod)) for required in selector)
    )


def _group(seen: Sighting) -> tuple[int, Gang | None]:
    """How many pods its group has, and by when they must run, as its author says.

    Annotations may be changed at any time. What a pod holds is counted whatever nonsense they say, and so is
    its end: only a pod that still waits can't be read for it.
    """
    annotations = Fields(seen.object["metadata"].get("annotations") or {}, "metadata.annotations")
    try:
        text = annotations.text(POD_GROUP_SIZE_ANNOTATION) or "0"
        return count_of(text, annotations.path_of(POD_GROUP_SIZE_ANNOTATION)), gang_of(annotations)
    except ApplicationError:
        if _is_gated(seen.object) and seen.change != "DELETED":
            raise
        return 0, None


def unread_of_pod(pod: Object) -> ApplicationError | None:
    """What is passed over of a pod because it makes no sense, though the pod itself goes on."""
    try:
        _saved_at_ms(pod)
    except ApplicationError as error:
        return error
    return None


def _saved_ms(seen: Sighting) -> int:
    """When a pod says that it last saved its work. A pod must not look worthless by its annotation, nor become
    unreadable by it: what is no RFC 3339 time, or lies in the future, says nothing."""
    try:
        saved_ms = _saved_at_ms(seen.object)
    except ApplicationError:
        return 0
    return saved_ms if 0 < saved_ms <= seen.time_ms else 0


def _saved_at_ms(pod: Object) -> int:
    annotations = Fields(pod["metadata"].get("annotations") or {}, "metadata.annotations")
    text = annotations.text(SAVED_AT_ANNOTATION)
    if not text:
        return 0
    try:
        if _RFC_3339.fullmatch(text):
            return _milliseconds(text.upper())
    except (ValueError, OverflowError):
        pass
    raise ApplicationError(
        annotations.path_of(SAVED_AT_ANNOTATION),
        f"{text!r} is no time: write one such as 2026-01-31T12:00:00Z (RFC 3339). The pod goes on as if it had "
        "never saved its work",
    )


def _is_gated(pod: Object) -> bool:
    return any(gate["name"] == GATE for gate in pod["spec"].get("schedulingGates") or ())


def node(seen: Sighting) -> NodeEvent:
    spec, status = seen.object["spec"], seen.object["status"]
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    # On a bare API server nobody reports for a node: without any conditions it counts as ready.
    ready = not conditions or conditions.get("Ready") == "True"
    facts = NodeFacts(
        allocatable=amounts(status.get("allocatable")),
        labels=_labels(seen.object),
        schedulable=ready and not spec.get("unschedulable", False),
    )
    return NodeEvent(**_identity(seen), node=facts)


def namespace(seen: Sighting, *, managed_selector: Mapping[str, str]) -> NamespaceEvent:
    labels = _labels(seen.object)
    return NamespaceEvent(
        **_identity(seen),
        managed=managed_selector.items() <= labels.items(),
        queue=labels.get(QUEUE_LABEL, ""),
        labels=labels if len(labels) <= NAMESPACE_LABELS_MAX else _own_labels(labels),
    )


def _own_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """A namespace's name and Sluice's own labels. Others may be so many that no record can hold them."""
    return {
        name: value for name, value in labels.items() if name == NAME_LABEL or name.startswith(f"{GROUP}/")
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeClassSeen(ObjectEvent):
    """What its pods take on top. Nobody is told of it: it is in what applications ask for."""

    type: ClassVar[str] = "runtimeclass"
    overhead: Resources


def runtime_class(seen: Sighting) -> RuntimeClassSeen:
    overhead = (seen.object.get("overhead") or {}).get("podFixed")
    return RuntimeClassSeen(**_identity(seen), overhead=amounts(overhead))


def priority_class(seen: Sighting) -> PriorityClassEvent:
    is_default = bool(seen.object.get("globalDefault"))
    return PriorityClassEvent(**_identity(seen), value=seen.object["value"], global_default=is_default)


def queue(seen: Sighting) -> QueueEvent:
    return QueueEvent(**_identity(seen), queue=_queue_facts(seen.object))


def pool(seen: Sighting) -> PoolEvent:
    return PoolEvent(**_identity(seen), pool=_pool_facts(seen.object))


def application(
    seen: Sighting, *, kind: ApplicationKind, selector: Mapping[str, str], overheads: Overheads
) -> WorkloadEvent:
    """An application that the selector leaves out is as good as gone: its pods stand for themselves."""
    identity = _identity(seen)
    if not selector.items() <= _labels(seen.object).items():
        identity["change"] = "DELETED"
    created_ms = _milliseconds(seen.object["metadata"]["creationTimestamp"])
    try:
        facts = read_application(kind, seen.object, overheads, created_ms=created_ms)
    except ApplicationError as error:
        facts = WorkloadFacts(kind=kind.kind, pod_sets=(), created_ms=created_ms, problem=cut(str(error)))
    return WorkloadEvent(**identity, workload=facts)


def _queue_facts(queue: Object) -> QueueFacts:
    generation = queue["metadata"]["generation"]
    try:
        spec = parse_queue(queue)
    except CrdError as error:
        return QueueFacts(generation=generation, problem=cut(str(error)))
    return queue_facts(
        spec, generation=generation, created_ms=_milliseconds(queue["metadata"]["creationTimestamp"])
    )


def _pool_facts(pool: Object) -> PoolFacts:
    generation = pool["metadata"]["generation"]
    try:
        spec = parse_resource_pool(pool)
    except CrdError as error:
        return PoolFacts(generation=generation, problem=cut(str(error)))
    return pool_facts(spec, generation=generation)


def _labels(owner: Object) -> dict[str, str]:
    labels: dict[str, str] = owner["metadata"].get("labels") or {}
    return labels


def _milliseconds(timestamp: str) -> int:
    return int(datetime.fromisoformat(timestamp).timestamp() * 1000)
