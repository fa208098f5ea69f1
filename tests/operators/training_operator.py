"""Jobs of the training operator, which `Stack.up` starts: nothing of it is imitated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster_api import Object


def training_job(
    kind: str, name: str, *, elastic: Mapping[str, int] | None = None, **replicas: int
) -> Object:
    """Of `PyTorchJob` or `TFJob`: how many replicas of each type, such as `Worker`, each with 1 cpu."""
    container, types = {
        "PyTorchJob": ("pytorch", "pytorchReplicaSpecs"),
        "TFJob": ("tensorflow", "tfReplicaSpecs"),
    }[kind]
    requests = {"cpu": "1", "memory": "1Gi"}
    template: dict[str, Any] = {
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": container, "image": "none", "resources": {"requests": requests}}],
        }
    }
    spec: Object = {types: {t: {"replicas": n, "template": template} for t, n in replicas.items()}}
    if elastic is not None:
        spec["elasticPolicy"] = {**elastic, "rdzvBackend": "c10d"}
    return {"apiVersion": "kubeflow.org/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
