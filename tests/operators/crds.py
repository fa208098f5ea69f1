"""The kinds of applications that other projects define, installed in a test's cluster.

Where the folder `shared/crds` lies next to the checkout, its schemas are used as their projects publish them;
other kinds, and all of them elsewhere, get a schema of our own that lets everything through.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, cast

from cluster_api import Answer, Api, Object, eventually
from sluice_local import Endpoints
from sluice_local.kubectl import apply, kubectl
from sluice_local.stand_ins import stand_in

_PUBLISHED: Final = Path(__file__).resolve().parents[3] / "shared" / "crds"

#: Group, version, kind.
KINDS: Final = (
    ("sparkoperator.k8s.io", "v1beta2", "SparkApplication"),
    ("sparkoperator.k8s.io", "v1beta2", "ScheduledSparkApplication"),
    ("ray.io", "v1", "RayCluster"),
    ("ray.io", "v1", "RayJob"),
    ("kubeflow.org", "v1", "PyTorchJob"),
    ("kubeflow.org", "v1", "TFJob"),
    ("kubernetes.dask.org", "v1", "DaskCluster"),
    ("kubernetes.dask.org", "v1", "DaskJob"),
)


def install(endpoints: Endpoints) -> None:
    """Create or update all of them, and wait until the API server serves them."""
    texts = [_definition(group, version, kind) for group, version, kind in KINDS]
    apply(endpoints.kubeconfig, "\n---\n".join(texts))
    names = [f"crd/{_plural(kind)}.{group}" for group, _, kind in KINDS]
    kubectl(
        f"--kubeconfig={endpoints.kubeconfig}", "wait", "--for=condition=Established", "--timeout=60s", *names
    )
    api = Api(endpoints)
    for group, version, kind in KINDS:
        path = f"/apis/{group}/{version}/{_plural(kind)}"
        eventually(lambda path=path: api.get(path).ok, seconds=60)


def create(api: Api, path: str, obj: Object) -> Answer:
    """The answer, once policies know the kind: for up to half a minute after its definition was made, the API
    server answers 503 in place of applying them, and 429 while it takes up the definition itself.
    """
    return cast(Answer, eventually(lambda: _unless_unavailable(api.create(path, obj)), seconds=60))


def _unless_unavailable(answer: Answer) -> Answer | None:
    return None if answer.status in (429, 503) else answer


def _plural(kind: str) -> str:
    return f"{kind.lower()}s"


def _definition(group: str, version: str, kind: str) -> str:
    published = _PUBLISHED / f"{group}_{_plural(kind)}.yaml"
    if published.exists():
        return published.read_text()
    return json.dumps(stand_in(kind, f"{group}/{version}/{_plural(kind)}"))
