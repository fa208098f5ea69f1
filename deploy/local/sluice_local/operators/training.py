"""The training operator. Of its webhooks, which only validate, the API server is told nothing: their certificate,
which it makes for itself, holds for a service's name and not for this machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from sluice_local import keys
from sluice_local.build import GoBinary
from sluice_local.kubernetes import TRAINING_OPERATOR
from sluice_local.operators.module import Manifest, Manifests
from sluice_local.operators.operator import Operator
from sluice_local.probes import listens

_MODULE = "github.com/kubeflow/training-operator"
#: Where its certificates are mounted in a cluster. It waits for this file, and then reads them below TMPDIR.
_AS_MOUNTED = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")


class TrainingOperator(Operator):
    user = TRAINING_OPERATOR.name
    binary = GoBinary(
        "training-operator", "training-operator", f"{_MODULE}/cmd/training-operator.v1", takes="2–3 minutes"
    )
    manifests = Manifests(binary, _MODULE, folders=["manifests/overlays/standalone"])

    def prepare(self) -> None:
        super().prepare()
        if not _AS_MOUNTED.exists():
            _AS_MOUNTED.parent.mkdir(parents=True, exist_ok=True)
            _AS_MOUNTED.touch()
        mounted = self.directory / _AS_MOUNTED.relative_to("/tmp")
        mounted.parent.mkdir(parents=True, exist_ok=True)
        keys.self_signed(mounted, address="127.0.0.1")  # any will do for a server that nobody asks

    def objects(self) -> Iterable[Manifest]:
        """It gives its webhooks a certificate before it begins, so there have to be some."""
        for manifest in super().objects():
            for webhook in manifest.get("webhooks", ()):
                webhook["rules"] = []
            yield manifest

    def argv(self) -> Sequence[str | Path]:
        return [
            self.binary.path,
            "--enable-scheme=pytorchjob",
            "--enable-scheme=tfjob",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            f"--webhook-server-port={self.port}",
        ]

    def environment(self) -> Mapping[str, str]:
        return {**super().environment(), "TMPDIR": str(self.directory)}

    def ready(self) -> bool:
        """The last thing that it starts is the server of its webhooks."""
        return listens(self.port)
