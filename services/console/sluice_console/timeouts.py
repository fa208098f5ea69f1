"""What ends a workload that only waits: time-outs of those who made it, as far as its object tells.

A pod that waits behind a gate is Pending, and nothing is wrong with it. Many tools end such a pod after a minute or
two, for they take it for one that can't start. docs/orchestrators.md says which versions were tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sluice.vocabulary import POD_GROUP_LABEL

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TimeOut:
    """`what` happens to an object while it waits, and what to do about it."""

    subject: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Tool:
    """Somebody who makes pods, and is known by a label of theirs. Without a value any counts."""

    label: str
    value: str
    what: str
    remedy: str


_TOOLS: Final = (
    _Tool(
        "kubernetes_pod_operator",
        "True",
        "Airflow's KubernetesPodOperator ends a pod that is not scheduled within 120 s",
        "give the operator schedule_timeout_seconds, as long as a pod may wait; providers before 10.5 know only "
        "startup_timeout_seconds",
    ),
    _Tool(
        "kubernetes_executor",
        "True",
        "Airflow's KubernetesExecutor retries or fails a task whose pod waits for longer than 600 s",
        "raise task_queued_timeout in [scheduler] of airflow.cfg",
    ),
    _Tool(
        "prefect.io/flow-run-id",
        "",
        "Prefect's Kubernetes worker before 0.6 gives a flow run up whose pod does not start within 60 s",
        "take prefect-kubernetes 0.6 or later, or raise pod_watch_timeout_seconds in the base job template",
    ),
    _Tool(
        "skypilot-cluster-name",
        "",
        "SkyPilot before 0.14 gives a cluster up whose pods are not scheduled within 10 s, and tries elsewhere",
        "take a later one, whose clock stands still while a gate is closed, or set kubernetes.provision_timeout to -1 "
        "in ~/.sky/config.yaml",
    ),
)

_TRAINING_JOBS: Final = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
#: Fields that count a time in which the pods may only wait: by kind of object, where they stand, and what they do.
_DEADLINES: Final[Mapping[str, tuple[str, ...]]] = {
    "Job": ("spec.activeDeadlineSeconds",),
    "CronJob": ("spec.jobTemplate.spec.activeDeadlineSeconds",),
    "RayJob": ("spec.activeDeadlineSeconds", "spec.preRunningDeadlineSeconds"),
    **dict.fromkeys(_TRAINING_JOBS, ("spec.runPolicy.activeDeadlineSeconds",)),
}
_OWN: Final = "leave it out; activeDeadlineSeconds in a pod template counts from the pod's own start"
_REGISTERED: Final = "spark.scheduler.maxRegisteredResourcesWaitingTime"


def time_outs(objects: Iterable[Object]) -> Iterator[TimeOut]:
    """Of each object all that ends it, or lets it start with less, while it waits."""
    for each in objects:
        subject = _subject(each)
        for what, remedy in (*_by_tool(each), *_by_deadline(each), *_by_kind(each)):
            yield TimeOut(subject, what, remedy)


def _subject(each: Object) -> str:
    name = _at(each, "metadata.name", "") or f"{_at(each, 'metadata.generateName', '')}…"
    namespace = _at(each, "metadata.namespace", "")
    return f"{each.get('kind', 'object')} {f'{namespace}/' if namespace else ''}{name}"


def _by_tool(each: Object) -> Iterator[tuple[str, str]]:
    labels = {**_map_at(each, "spec.template.metadata.labels"), **_map_at(each, "metadata.labels")}
    for tool in _TOOLS:
        if tool.label in labels and tool.value in ("", labels[tool.label]):
            yield tool.what, tool.remedy


def _by_deadline(each: Object) -> Iterator[tuple[str, str]]:
    for path in _DEADLINES.get(each.get("kind", ""), ()):
        seconds = _at(each, path, None)
        if seconds is not None:
            yield f"{path} ends it after {seconds} s, and counts while its pods wait", _OWN


def _by_kind(each: Object) -> Iterator[tuple[str, str]]:
    kind = each.get("kind")
    if kind == "SparkApplication" and _REGISTERED not in _map_at(each, "spec.sparkConf"):
        yield (
            "its driver begins 30 s after its own start with whatever executors there are",
            f"set {_REGISTERED} if that is too few for it",
        )
    elif kind == "StatefulSet" and _is_group_made_one_by_one(each):
        yield (
            "its pods are a group, of which all must be there; but each is made only when the one before it runs",
            "set spec.podManagementPolicy to Parallel",
        )


def _is_group_made_one_by_one(each: Object) -> bool:
    is_group = POD_GROUP_LABEL in _map_at(each, "spec.template.metadata.labels")
    return is_group and _at(each, "spec.podManagementPolicy", "OrderedReady") == "OrderedReady"


def _at(each: Object, path: str, otherwise: Any) -> Any:
    """What stands at a path; `otherwise` where there is nothing."""
    found: Any = each
    for key in path.split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
        if found is None:
            return otherwise
    return found


def _map_at(each: Object, path: str) -> Object:
    """Whoever wrote an object may have written anything: that is the API server's to say."""
    found = _at(each, path, {})
    return found if isinstance(found, Mapping) else {}
