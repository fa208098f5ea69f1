"""The kinds of applications: where the API server keeps them, and what holds one of them back.

The watcher knows besides what each asks for (`sluice_watcher.applications`). A DynamicWorkload that somebody
writes by hand stands for an application of any other kind.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sluice.vocabulary import API_VERSION


@dataclass(frozen=True, slots=True)
class ApplicationKind:
    kind: str
    api_version: str
    plural: str
    suspend: tuple[str, ...] = ()  # the field that holds it back; empty: its pods' gates do

    @property
    def collection(self) -> str:
        """Where the API server lists all of them."""
        prefix = "/apis" if "/" in self.api_version else "/api"
        return f"{prefix}/{self.api_version}/{self.plural}"

    def path(self, namespace: str, name: str) -> str:
        collection, _, plural = self.collection.rpartition("/")
        return f"{collection}/namespaces/{namespace}/{plural}/{name}"


_SUSPEND: Final = ("spec", "suspend")
_RUN_POLICY: Final = ("spec", "runPolicy", "suspend")

#: What a Spark application is called that no operator has started: there is no object but its pods.
WITHOUT_OPERATOR: Final = "SparkDriver"
#: Its pods are made by Sluice itself.
QUEUE_JOB: Final = "QueueJob"
#: Written by hand, for an application that nobody here knows.
BY_HAND: Final = "DynamicWorkload"

APPLICATION_KINDS: Final = {
    each.kind: each
    for each in (
        ApplicationKind(BY_HAND, API_VERSION, "dynamicworkloads"),
        ApplicationKind(QUEUE_JOB, API_VERSION, "queuejobs"),
        ApplicationKind("Job", "batch/v1", "jobs", _SUSPEND),
        ApplicationKind("SparkApplication", "sparkoperator.k8s.io/v1beta2", "sparkapplications", _SUSPEND),
        ApplicationKind("RayCluster", "ray.io/v1", "rayclusters", _SUSPEND),
        ApplicationKind("RayJob", "ray.io/v1", "rayjobs", _SUSPEND),
        ApplicationKind("PyTorchJob", "kubeflow.org/v1", "pytorchjobs", _RUN_POLICY),
        ApplicationKind("TFJob", "kubeflow.org/v1", "tfjobs", _RUN_POLICY),
        ApplicationKind("DaskCluster", "kubernetes.dask.org/v1", "daskclusters"),
        ApplicationKind("DaskJob", "kubernetes.dask.org/v1", "daskjobs"),
    )
}


def listed_as(kind: str) -> str:
    """What a SYNC calls applications of a kind: each kind is listed on its own."""
    return f"workload/{kind}"
