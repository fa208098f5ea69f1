"""What each kind of application asks for: a line a kind. Another one needs its function, a line here, and one
in `sluice.applications`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sluice.applications import APPLICATION_KINDS, BY_HAND, QUEUE_JOB, ApplicationKind
from sluice.crds.values import LABEL_VALUE_PATTERN, RESOURCES_MAX
from sluice.crds.workloads import POD_COUNT_MAX, POD_SET_NAME_LENGTH_MAX, POD_SETS_MAX
from sluice.events import PodSetFacts, WorkloadFacts
from sluice.texts import cut
from sluice.vocabulary import (
    DECISION_ANNOTATION,
    POD_GROUP_LABEL,
    POD_SET_LABEL,
    QUEUE_LABEL,
    RELEASED_ANNOTATION,
    WORKLOAD_LABEL,
)

from sluice_watcher.applications import by_hand, dask, jobs, queue_jobs, ray, spark, training
from sluice_watcher.applications.asked import Asked, Part, gang
from sluice_watcher.applications.fields import ApplicationError, Fields, decision_claimed
from sluice_watcher.applications.owners import Member, Owner, controller
from sluice_watcher.applications.templates import Overheads
from sluice_watcher.requests import PODS, Object

_ASKED: Final[dict[str, Callable[[Fields], Asked]]] = {
    BY_HAND: by_hand.asked,
    QUEUE_JOB: queue_jobs.asked,
    "Job": jobs.asked,
    "SparkApplication": spark.asked,
    "RayCluster": ray.cluster_asked,
    "RayJob": ray.job_asked,
    "PyTorchJob": training.pytorch_asked,
    "TFJob": training.tf_asked,
    "DaskCluster": dask.cluster_asked,
    "DaskJob": dask.job_asked,
}

#: So much of an application's spec is shown, as JSON.
SPEC_BYTES_MAX: Final = 4096

_MEMBERS: Final = (spark.member, ray.member, training.member, dask.member, jobs.member, queue_jobs.member)
#: What the pods of a Job are to the application that made it.
_AS_POD_SET: Final = {"RayJob": ray.SUBMITTER}


def read_application(
    kind: ApplicationKind, application: Object, overheads: Overheads, *, created_ms: int
) -> WorkloadFacts:
    """What counts of an application, whatever its kind. Raises ApplicationError where it makes no sense."""
    fields = Fields(application)
    asked = _ASKED[kind.kind](fields)
    owner = controller(application)
    controlled = owner if owner is not None and owner.kind in APPLICATION_KINDS else None
    metadata = fields.at("metadata")
    annotations = metadata.at("annotations")
    suspendable = bool(kind.suspend) and asked.suspendable
    pod_sets = tuple(_facts(part, overheads) for part in asked.parts)
    _check(pod_sets)
    return WorkloadFacts(
        kind=kind.kind,
        pod_sets=pod_sets,
        created_ms=created_ms,
        queue=metadata.at("labels").text(QUEUE_LABEL),
        priority=asked.priority,
        priority_class=asked.priority_class
        or next((part.template.priority_class for part in asked.parts if part.template.priority_class), ""),
        finished=asked.finished,
        failed=asked.failed,
        generation=metadata.count("generation", 0),
        released=_is_released(asked, annotations, suspendable=suspendable),
        suspendable=suspendable,
        decision=decision_claimed(asked.decision or annotations.text(DECISION_ANNOTATION)),
        controller=controlled.uid if controlled else "",
        as_pod_set=_AS_POD_SET.get(controlled.kind, "") if controlled and kind.kind == "Job" else "",
        job=asked.job,
        gang=asked.gang or gang(annotations),
        replaces_failed=asked.replaces_failed,
        application_spec={} if kind.kind == BY_HAND else _read_of_spec(fields, kind),
    )


def _check(pod_sets: Sequence[PodSetFacts]) -> None:
    """A DynamicWorkload has to show them, and its schema has bounds."""
    names = [each.name for each in pod_sets]
    if len(names) > POD_SETS_MAX:
        raise ApplicationError(
            "spec",
            f"{len(names)} groups of pods are more than the {POD_SETS_MAX} that can be shown: merge some",
        )
    for name in names:
        if len(name) > POD_SET_NAME_LENGTH_MAX or not re.fullmatch(LABEL_VALUE_PATTERN, name):
            raise ApplicationError(
                "spec",
                f"a group of pods is called {cut(name, 80)!r}, which is no value of a label: write letters, "
                f"digits, -, _ and . and no more than {POD_SET_NAME_LENGTH_MAX} of them",
            )
        if names.count(name) > 1:
            raise ApplicationError("spec", f"two groups of pods are called {name!r}: rename one")
    for each in pod_sets:
        if max(each.count, each.max_count or 0) > POD_COUNT_MAX:
            raise ApplicationError(
                "spec", f"{each.name} has more pods than {POD_COUNT_MAX}: write a lower bound"
            )
        if len(each.requests.keys() - {PODS}) > RESOURCES_MAX:
            raise ApplicationError("spec", f"{each.name} asks for more than {RESOURCES_MAX} resources")


def _read_of_spec(fields: Fields, kind: ApplicationKind) -> dict[str, Any]:
    """The fields that were read to find out what an application asks for; nothing if they are too large to be
    shown. What holds it back is none of them."""
    read = _without_empty({name: value for name, value in fields.copy.items() if name == "spec"})
    holder = read
    for name in kind.suspend[:-1]:
        holder = holder.get(name, {})
    for name in kind.suspend[-1:]:
        holder.pop(name, None)
    spec: dict[str, Any] = _without_empty(read).get("spec", {})
    return spec if len(json.dumps(spec)) <= SPEC_BYTES_MAX else {}


def _without_empty(value: Any) -> Any:
    """What has no content was only looked for."""
    if isinstance(value, dict):
        kept = {name: _without_empty(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in ({}, [])}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _is_released(asked: Asked, annotations: Fields, *, suspendable: bool) -> bool:
    if asked.released is not None:
        return asked.released
    return not asked.suspended if suspendable else annotations.text(RELEASED_ANNOTATION) == "true"


def _facts(part: Part, overheads: Overheads) -> PodSetFacts:
    return PodSetFacts(
        name=part.name,
        count=part.count,
        min_count=part.min_count,
        max_count=part.max_count,
        completions=part.completions,
        succeeded=part.succeeded,
        requests=part.template.requests(overheads),
        node_selector=part.template.node_selector,
        replica_size=part.replica_size,
    )


def member_of(pod: Object, owner: Owner | None) -> Member | None:
    """As what a pod belongs to an application; None: it stands for itself."""
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    if WORKLOAD_LABEL in labels:
        return Member(pod_set=labels.get(POD_SET_LABEL, ""), named=labels[WORKLOAD_LABEL])
    if POD_GROUP_LABEL in labels:
        return Member(pod_set="", named=f"PodGroup/{labels[POD_GROUP_LABEL]}")
    return next((member for each in _MEMBERS if (member := each(labels, owner))), None)


def leads_to(owner: Owner | None) -> str:
    """The uid of what controls a pod, if an application may stand behind it."""
    return owner.uid if owner and (owner.kind in APPLICATION_KINDS or owner.kind == "Pod") else ""
