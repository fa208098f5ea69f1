"""The kinds of applications: a line a kind. Another one needs its function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sluice.events import PodSetFacts
from sluice.vocabulary import QUEUE_LABEL

from sluice_watcher.applications import dask, jobs, ray, spark, training
from sluice_watcher.applications.asked import Asked, Part
from sluice_watcher.applications.fields import ApplicationError, Fields
from sluice_watcher.applications.owners import Controllers, Member, chain_of
from sluice_watcher.applications.templates import Overheads
from sluice_watcher.requests import Object


@dataclass(frozen=True, slots=True)
class ApplicationKind:
    kind: str
    path: str  # where the API server lists all of them
    asked: Callable[[Fields], Asked]
    suspend: tuple[str, ...] = ()  # the field that holds it back; empty: its pods' gates do


_SUSPEND: Final = ("spec", "suspend")
_RUN_POLICY: Final = ("spec", "runPolicy", "suspend")

KINDS: Final = {
    each.kind: each
    for each in (
        ApplicationKind("Job", "/apis/batch/v1/jobs", jobs.asked, _SUSPEND),
        ApplicationKind(
            "SparkApplication", "/apis/sparkoperator.k8s.io/v1beta2/sparkapplications", spark.asked, _SUSPEND
        ),
        ApplicationKind("RayCluster", "/apis/ray.io/v1/rayclusters", ray.cluster_asked, _SUSPEND),
        ApplicationKind("RayJob", "/apis/ray.io/v1/rayjobs", ray.job_asked, _SUSPEND),
        ApplicationKind(
            "PyTorchJob", "/apis/kubeflow.org/v1/pytorchjobs", training.pytorch_asked, _RUN_POLICY
        ),
        ApplicationKind("TFJob", "/apis/kubeflow.org/v1/tfjobs", training.tf_asked, _RUN_POLICY),
        ApplicationKind("DaskCluster", "/apis/kubernetes.dask.org/v1/daskclusters", dask.cluster_asked),
        ApplicationKind("DaskJob", "/apis/kubernetes.dask.org/v1/daskjobs", dask.job_asked),
    )
}

#: The order matters: a RayJob's submitter is made by a Job, which is none of its own.
_MEMBERS: Final = (spark.member, ray.member, training.member, dask.member, jobs.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """What counts of an application, whatever its kind."""

    pod_sets: tuple[PodSetFacts, ...]
    queue: str
    priority_class: str
    suspended: bool
    finished: bool
    suspendable: bool


def read_application(kind: ApplicationKind, application: Object, overheads: Overheads) -> Application:
    """Raises ApplicationError where it makes no sense."""
    fields = Fields(application)
    asked = kind.asked(fields)
    names = [part.name for part in asked.parts]
    for name in names:
        if names.count(name) > 1:
            raise ApplicationError("spec", f"two groups of pods are called {name!r}: rename one")
    return Application(
        pod_sets=tuple(_facts(part, overheads) for part in asked.parts),
        queue=fields.at("metadata", "labels").text(QUEUE_LABEL),
        priority_class=asked.priority_class
        or next((part.template.priority_class for part in asked.parts if part.template.priority_class), ""),
        suspended=asked.suspended,
        finished=asked.finished,
        suspendable=bool(kind.suspend) and asked.suspendable,
    )


def _facts(part: Part, overheads: Overheads) -> PodSetFacts:
    return PodSetFacts(
        name=part.name,
        count=part.count,
        min_count=part.min_count,
        max_count=part.max_count,
        completions=part.completions,
        requests=part.template.requests(overheads),
        node_selector=part.template.node_selector,
    )


def member_of(pod: Object, controllers: Controllers) -> Member | None:
    """Which application a pod belongs to, and as what; None: it stands for itself.

    Labels say as what, controllers whose: a label can be written by whoever creates pods, a controller's uid
    has to be that of an object that is there. Where labels alone have to do, they can only charge another
    application of the same namespace.
    """
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    chain = chain_of(pod, controllers)
    return next((member for each in _MEMBERS if (member := each(labels, chain))), None)
