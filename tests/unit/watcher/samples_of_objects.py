"""Objects as an API server sends them, with only what a test is about."""

from __future__ import annotations

from typing import Any

from sluice_watcher.normalise import Sighting

Json = dict[str, Any]
CLUSTER = "east"
TIME_MS = 1_790_000_000_000


def seen(body: Json, change: Any = "ADDED", *, listed: bool = False) -> Sighting:
    return Sighting(object=body, change=change, cluster=CLUSTER, time_ms=TIME_MS, listed=listed)


def metadata(name: str, **more: Any) -> Json:
    return {
        "name": name,
        "uid": f"uid-of-{name}",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2026-01-02T03:04:05Z",
        **more,
    }


def container(name: str = "main", *, stays: bool = False, **requests: str) -> Json:
    """A container; one that stays is a sidecar among the init containers."""
    body: Json = {"name": name, "resources": {"requests": requests}}
    return body | {"restartPolicy": "Always"} if stays else body


def pod(name: str = "p", namespace: str = "team", **parts: Any) -> Json:
    spec = {"containers": [container(cpu="1")], **parts.pop("spec", {})}
    return {
        "metadata": metadata(name, namespace=namespace, **parts.pop("metadata", {})),
        "spec": spec,
        "status": {"phase": "Pending", **parts.pop("status", {})},
    }


def owned_by_daemonset() -> Json:
    return {"ownerReferences": [{"kind": "DaemonSet", "name": "agent", "uid": "d", "controller": True}]}


def node(name: str = "n", labels: Json | None = None, *, spec: Json | None = None, **status: Any) -> Json:
    return {
        "metadata": metadata(name, labels=labels or {}),
        "spec": spec or {},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}, **status},
    }


def namespace(name: str = "team", queue: str = "", *, managed: bool = True) -> Json:
    labels = {"kubernetes.io/metadata.name": name}
    labels |= {"sluice.dev/managed": "true"} if managed else {}
    labels |= {"sluice.dev/queue": queue} if queue else {}
    return {"metadata": metadata(name, labels=labels)}


def custom(name: str, **spec: Any) -> Json:
    """A Queue or a ResourcePool."""
    return {"metadata": metadata(name), "spec": spec}
