"""The training operator itself, built from its module and run beside the cluster, as the account and with the
rights that its manifests give it: nothing of it is imitated. Of its webhooks, which only validate, the API
server is told nothing: it could not reach them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml
from cluster_api import Api, Object, account_token
from sluice_local import Endpoints, build, paths, tools
from sluice_local.build import Command, GoBinary, Progress, Say
from sluice_local.component import Component
from sluice_local.kubectl import KUBECTL, apply, kubeconfig, kubectl
from sluice_local.state import State

_RECIPES: Final = Path(__file__).resolve().parent
_MODULE: Final = "github.com/kubeflow/training-operator"
_OPERATOR: Final = GoBinary(
    "training-operator",
    "training",
    f"{_MODULE}/cmd/training-operator.v1",
    takes="2–3 minutes",
    recipes=_RECIPES,
)
_NAMESPACE: Final = "kubeflow"
#: Where its certificates are mounted in a cluster. It waits for this file, and then reads them below TMPDIR.
_AS_MOUNTED: Final = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")


@dataclass(frozen=True, slots=True)
class _Manifests:
    """What its module says must be in a cluster: the kinds, an account and its rights."""

    name: str = "the training operator's manifests"
    takes: str = "seconds"

    @property
    def path(self) -> Path:
        return _OPERATOR.path.with_suffix(".yaml")

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "fetching its module"
        command = Command(_RECIPES / _OPERATOR.module, tools.GO.environment())
        fetched = json.loads("".join(command.lines([tools.GO.find(), "mod", "download", "-json", _MODULE])))
        target.write_text(kubectl("kustomize", Path(fetched["Dir"], "manifests", "overlays", "standalone")))


_MANIFESTS: Final = _Manifests()


def provide(say: Say) -> None:
    build.ensure([_OPERATOR, KUBECTL, _MANIFESTS], say)


class _Operator(Component):
    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__("training-operator", State(endpoints.kubeconfig.parent))
        self._endpoints = endpoints
        self._kubeconfig = self.directory / "kubeconfig"

    def prepare(self) -> None:
        manifests = [each for each in yaml.safe_load_all(_MANIFESTS.path.read_text()) if _is_wanted(each)]
        apply(self._endpoints.kubeconfig, "\n---\n".join(map(json.dumps, manifests)))
        token = account_token(Api(self._endpoints), _NAMESPACE, "training-operator")
        server = {
            "server": self._endpoints.api_server,
            "certificate-authority": str(self._endpoints.ca_file),
        }
        paths.write_private(self._kubeconfig, kubeconfig(server, {"token": token}))
        self._mount_certificates()

    def _mount_certificates(self) -> None:
        """Any will do for a server that nobody asks."""
        if not _AS_MOUNTED.exists():
            _AS_MOUNTED.parent.mkdir(parents=True, exist_ok=True)
            _AS_MOUNTED.touch()
        mounted = self.directory / _AS_MOUNTED.parent.relative_to("/tmp")
        mounted.mkdir(parents=True, exist_ok=True)
        own = self.state.directory / "kube-apiserver" / "certificates" / "apiserver.crt"
        for name, target in (("tls.crt", own), ("tls.key", own.with_suffix(".key"))):
            (mounted / name).unlink(missing_ok=True)
            (mounted / name).symlink_to(target)

    def argv(self) -> Sequence[str | Path]:
        return [
            _OPERATOR.path,
            f"--kubeconfig={self._kubeconfig}",
            "--enable-scheme=pytorchjob",
            "--enable-scheme=tfjob",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--webhook-server-port={self.port}",
        ]

    def environment(self) -> Mapping[str, str]:
        return {"TMPDIR": str(self.directory)}

    def ready(self) -> bool:
        """The last thing that it starts is the server of its webhooks."""
        socket.create_connection(("127.0.0.1", self.port), timeout=2).close()
        return True


def _is_wanted(manifest: Object) -> bool:
    """Its own pod is the process here. It gives its webhooks a certificate of their own before it begins."""
    for webhook in manifest.get("webhooks", ()):
        webhook["rules"] = []
    return manifest["kind"] not in ("Deployment", "Service")


@contextmanager
def training_operator(endpoints: Endpoints) -> Iterator[None]:
    operator = _Operator(endpoints)
    operator.start()
    try:
        yield
    finally:
        operator.daemon.stop(grace_s=operator.grace_s)


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
