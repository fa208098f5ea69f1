"""The training operator's PyTorchJobs and TFJobs: replicas by type, all of which train together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from sluice_watcher.applications.asked import Asked, Part, has_condition
from sluice_watcher.applications.fields import ApplicationError, Fields
from sluice_watcher.applications.owners import Member, Owner
from sluice_watcher.applications.templates import read_template

REPLICAS: Final = {"PyTorchJob": "pytorchReplicaSpecs", "TFJob": "tfReplicaSpecs"}
TYPE_LABEL: Final = "training.kubeflow.org/replica-type"


def _asked(replicas: str, job: Fields) -> Asked:
    spec = job.at("spec")
    types = spec.at(replicas)
    names = sorted(types)
    if not names:
        raise ApplicationError(types.path, "nothing would run: write a type of replicas, such as Worker")
    policy = spec.at("runPolicy")
    elastic = spec.at("elasticPolicy")
    return Asked(
        parts=tuple(
            _part(name.lower(), types.at(name), elastic if name == "Worker" else Fields({})) for name in names
        ),
        suspended=policy.flag("suspend"),
        finished=has_condition(job, "Succeeded", "Failed"),
        failed=has_condition(job, "Failed"),
        priority_class=policy.at("schedulingPolicy").text("priorityClass"),
    )


pytorch_asked = partial(_asked, REPLICAS["PyTorchJob"])
tf_asked = partial(_asked, REPLICAS["TFJob"])


def _part(name: str, replicas: Fields, elastic: Fields) -> Part:
    """Only an elastic job goes on with fewer than all, and takes more."""
    count = replicas.count("replicas", 1)
    least = elastic.count("minReplicas", count)
    most = elastic.count("maxReplicas", count)
    if least > most:
        raise ApplicationError(
            elastic.path_of("minReplicas"),
            f"{least} is more than maxReplicas ({most}): lower it",
        )
    count = min(max(count, least), most)
    return Part(
        name=name,
        template=read_template(replicas.at("template")),
        count=count,
        min_count=least,
        max_count=most,
    )


def member(labels: Mapping[str, str], owner: Owner | None) -> Member | None:
    if owner is None or owner.kind not in REPLICAS:
        return None
    return Member(pod_set=labels.get(TYPE_LABEL, "").lower())
