"""Dask: a scheduler and its workers; a DaskJob brings a cluster of its own and a pod that runs against it.

The operator knows no suspension. It makes pods by way of Deployments, one a worker, so growth is another
Deployment, and the way from a pod to its cluster is long: without it, the operator's labels say whose it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sluice_watcher.applications.asked import Asked, Part, min_count, one
from sluice_watcher.applications.fields import Fields
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import read_pod_spec

SCHEDULER: Final = "scheduler"
WORKER: Final = "worker"
RUNNER: Final = "runner"
CLUSTER_LABEL: Final = "dask.org/cluster-name"
COMPONENT_LABEL: Final = "dask.org/component"
GROUP_LABEL: Final = "dask.org/workergroup-name"

_POD_SETS: Final = {"scheduler": SCHEDULER, "worker": WORKER, "job-runner": RUNNER}


def cluster_asked(cluster: Fields) -> Asked:
    """A cluster ends by being deleted, and in no other way."""
    return Asked(
        parts=_cluster(cluster, cluster.at("spec")), suspended=False, finished=False, suspendable=False
    )


def job_asked(job: Fields) -> Asked:
    spec = job.at("spec")
    runner = one(RUNNER, read_pod_spec(spec.at("job", "spec")))
    state = job.at("status").text("jobStatus")
    return Asked(
        parts=(runner, *_cluster(job, spec.at("cluster", "spec"))),
        suspended=False,
        finished=state in ("Successful", "Failed"),
        failed=state == "Failed",
        suspendable=False,
    )


def _cluster(application: Fields, spec: Fields) -> tuple[Part, ...]:
    """A scheduler is of no use without a worker, as a Spark driver without an executor."""
    worker = spec.at("worker")
    count = max(1, worker.count("replicas", 1))
    workers = Part(
        name=WORKER,
        template=read_pod_spec(worker.at("spec")),
        count=count,
        min_count=max(1, min_count(application, count=count, default=1)),
    )
    return (one(SCHEDULER, read_pod_spec(spec.at("scheduler", "spec"))), workers)


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    """A DaskJob's cluster bears the job's name and is controlled by it, so its pods belong to the job."""
    component, cluster = labels.get(COMPONENT_LABEL), labels.get(CLUSTER_LABEL)
    if component not in _POD_SETS or not cluster:
        return None
    pod_set = _POD_SETS[component]
    return Member(pod_set=pod_set, named=f"{'DaskJob' if pod_set == RUNNER else 'DaskCluster'}/{cluster}")
