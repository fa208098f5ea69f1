"""The smallest applications that make sense, to which a test adds what it is about."""

from __future__ import annotations

from typing import Any

from sluice.applications import APPLICATION_KINDS
from sluice.events import WorkloadFacts
from sluice_watcher.applications.kinds import read_application

Json = dict[str, Any]
MI = 2**20
GI = 2**30


def template(cpu: str = "1", memory: str = "1Gi", **spec: Any) -> Json:
    main = {"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"spec": {"containers": [main], **spec}}


def job(**spec: Any) -> Json:
    return _application("Job", {"template": template(), **spec})


def spark(
    *, conf: Json | None = None, driver: Json | None = None, executor: Json | None = None, **spec: Any
) -> Json:
    body = {
        "type": "Scala",
        "mainApplicationFile": "local:///opt/app.jar",
        "sparkVersion": "4.0.0",
        "sparkConf": conf or {},
        "driver": driver or {},
        "executor": executor or {},
    }
    return _application("SparkApplication", body | spec)


def workers(name: str = "small", **group: Any) -> Json:
    return {
        "groupName": name,
        "template": template("2", "4Gi"),
        "minReplicas": 0,
        "maxReplicas": 2**31 - 1,
        **group,
    }


def ray_cluster(*groups: Json, **spec: Any) -> Json:
    return _application("RayCluster", _ray(groups) | spec)


def ray_job(*groups: Json, **spec: Any) -> Json:
    body = {"rayClusterSpec": _ray(groups), "shutdownAfterJobFinishes": True}
    return _application("RayJob", body | spec)


def _ray(groups: tuple[Json, ...]) -> Json:
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": list(groups)}


def pytorch(master: int | None = 1, worker: int | None = 3, **spec: Any) -> Json:
    types = {"Master": _replicas(master), "Worker": _replicas(worker)}
    return _application("PyTorchJob", {"pytorchReplicaSpecs": types, **spec})


def tf(**types: int) -> Json:
    return _application(
        "TFJob", {"tfReplicaSpecs": {name: _replicas(count) for name, count in types.items()}}
    )


def _replicas(count: int | None) -> Json:
    return {"template": template()} | ({} if count is None else {"replicas": count})


def dask(replicas: int = 2) -> Json:
    return _application("DaskCluster", _dask(replicas))


def dask_job(replicas: int = 2) -> Json:
    return _application("DaskJob", {"job": template("250m"), "cluster": {"spec": _dask(replicas)}})


def _dask(replicas: int) -> Json:
    return {"scheduler": template("500m"), "worker": {"replicas": replicas, **template("2")}}


def annotated(application: Json, **annotations: str) -> Json:
    named = {f"sluice.dev/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return application | {"metadata": application["metadata"] | {"annotations": named}}


def _application(kind: str, spec: Json) -> Json:
    return {
        "kind": kind,
        "metadata": {"name": "nightly", "namespace": "team", "uid": "uid-of-nightly"},
        "spec": spec,
    }


def read(application: Json, **overheads: dict[str, int]) -> WorkloadFacts:
    return read_application(APPLICATION_KINDS[application["kind"]], application, overheads, created_ms=0)


def counts(application: Json) -> dict[str, tuple[int, int, int | None]]:
    """Of each pod set: how many at least, now, at most."""
    return {each.name: (each.min_count, each.count, each.max_count) for each in read(application).pod_sets}


def requests(application: Json, pod_set: str, **overheads: dict[str, int]) -> dict[str, int]:
    sets = {each.name: each for each in read(application, **overheads).pod_sets}
    return sets[pod_set].requests


def status(application: Json, **fields: Any) -> Json:
    return application | {"status": fields}


def condition(kind: str, value: str = "True") -> Json:
    return {"conditions": [{"type": kind, "status": value}]}
