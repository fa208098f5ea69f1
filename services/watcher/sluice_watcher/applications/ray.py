"""Ray: a head, and groups of workers that its autoscaler may make larger and smaller; a RayJob brings a
cluster of its own and a pod that submits the job to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sluice.crds.workloads import POD_COUNT_MAX

from sluice_watcher.applications.asked import Asked, Part, bounded, one
from sluice_watcher.applications.fields import ApplicationError, Fields
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import Template, read_template

HEAD: Final = "head"
SUBMITTER: Final = "submitter"
CLUSTER_LABEL: Final = "ray.io/cluster"
GROUP_LABEL: Final = "ray.io/group"
TYPE_LABEL: Final = "ray.io/node-type"

#: What KubeRay's containers ask for where their authors say nothing.
_AUTOSCALER: Final = {"requests": {"cpu": "500m", "memory": "512Mi"}}
_WAITS_FOR_HEAD: Final = {"requests": {"cpu": "200m", "memory": "256Mi"}}
_SUBMITTER: Final = {"requests": {"cpu": "500m", "memory": "200Mi"}}


def cluster_asked(cluster: Fields) -> Asked:
    """A cluster ends by being deleted, and in no other way."""
    spec = cluster.at("spec")
    return Asked(parts=_cluster(spec), suspended=spec.flag("suspend"), finished=False)


def job_asked(job: Fields) -> Asked:
    spec = job.at("spec")
    mode = spec.text("submissionMode") or "K8sJobMode"
    borrowed = bool(spec.at("clusterSelector").texts())  # it runs in a cluster that is there already
    parts = () if borrowed else _cluster(spec.at("rayClusterSpec"), in_head=mode == "SidecarMode")
    if mode == "K8sJobMode":
        parts = (*parts, one(SUBMITTER, _submitter(spec)))
    ends_with_job = borrowed or spec.flag("shutdownAfterJobFinishes") or "deletionStrategy" in spec
    state = job.at("status").text("jobDeploymentStatus")
    return Asked(
        parts=parts,
        suspended=spec.flag("suspend"),
        # While its cluster stays, a job that is through still holds what the cluster holds.
        finished=ends_with_job and state in ("Complete", "Failed", "ValidationFailed"),
        failed=state in ("Failed", "ValidationFailed"),
        # KubeRay refuses to suspend the others: there the pods' gates do it.
        suspendable=spec.flag("shutdownAfterJobFinishes") and not borrowed,
    )


def _cluster(spec: Fields, *, in_head: bool = False) -> tuple[Part, ...]:
    scales = spec.flag("enableInTreeAutoscaling")
    head = read_template(spec.at("headGroupSpec", "template"))
    if scales:
        options = spec.at("autoscalerOptions")
        # What is written counts alone, also where it is empty.
        head = _with(head, options if "resources" in options else Fields({"resources": _AUTOSCALER}))
    if in_head:
        head = _with(head, Fields({"resources": _SUBMITTER}))
    groups = [_group(group, scales=scales) for group in spec.each("workerGroupSpecs")]
    return (one(HEAD, head), *groups)


def _with(template: Template, container: Fields) -> Template:
    return replace(template, containers=(*template.containers, container))


def _with_init(worker: Template) -> Template:
    """KubeRay lets each worker wait for the head in an init container of its own."""
    waits = Fields({"resources": _WAITS_FOR_HEAD})
    return replace(worker, init_containers=(*worker.init_containers, waits))


def _group(group: Fields, *, scales: bool) -> Part:
    """Within its bounds whatever is written, as KubeRay does it; a replica is `numOfHosts` pods."""
    name = group.text("groupName")
    if not name or name in (HEAD, SUBMITTER):
        raise ApplicationError(
            group.path_of("groupName"),
            f"{name!r} can't be told from the other pods: write another name",
        )
    hosts = group.count("numOfHosts", 1)
    if not hosts:
        raise ApplicationError(group.path_of("numOfHosts"), "a replica has a host: write 1 or more")
    most = group.count("maxReplicas", POD_COUNT_MAX)
    least = min(group.count("minReplicas", 0), most)
    wanted = min(max(group.count("replicas", least), least), most)
    if group.flag("suspend"):
        wanted = least = 0
    if not scales:
        least = most = wanted
    bound = bounded(most)
    return Part(
        name=name,
        template=_with_init(read_template(group.at("template"))),
        count=wanted * hosts,
        min_count=least * hosts,
        max_count=None if bound is None else bound * hosts,
        replica_size=hosts,
    )


def _submitter(spec: Fields) -> Template:
    written = spec.at("submitterPodTemplate")
    if list(written):
        return read_template(written)
    default: dict[str, Any] = {"resources": _SUBMITTER}
    return Template(containers=(Fields(default),))


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    """A cluster's pods belong to its RayJob, if one controls it: that is for those to know who see both."""
    kind = labels.get(TYPE_LABEL)
    if owner is None or owner.kind != "RayCluster":
        return None
    return Member(pod_set=HEAD if kind == "head" else labels.get(GROUP_LABEL, "") if kind == "worker" else "")
