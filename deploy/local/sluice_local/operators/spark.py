"""The Spark operator: the controller, which runs spark-submit on this machine, and its webhooks, which put into the
pods what spark-submit can't.
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from sluice_local import keys, paths, tools
from sluice_local.build import Artefact, GoBinary
from sluice_local.images.spark import SPARK
from sluice_local.kubectl import apply
from sluice_local.kubernetes import SPARK_CONTROLLER, SPARK_WEBHOOK
from sluice_local.operators.module import Manifest, Manifests
from sluice_local.operators.operator import Operator
from sluice_local.probes import listens

_MODULE = "github.com/kubeflow/spark-operator/v2"
_PROGRAM = GoBinary("spark-operator", "spark-operator", f"{_MODULE}/cmd/operator", takes="1–2 minutes")
_ACCOUNTS = paths.RECIPES / "operators" / "spark-operator.yaml"
_NAMESPACE = "spark-operator"
_SECRET = "spark-operator-webhook-certs"  # the one that its account may read
_ALL_NAMESPACES = '--namespaces=""'
_GROUP = "sparkoperator.k8s.io"
#: Version and kind, of which the program makes the paths of its webhooks.
_KINDS = (
    ("v1beta2", "sparkapplication"),
    ("v1beta2", "scheduledsparkapplication"),
    ("v1alpha1", "sparkconnect"),
)


class SparkController(Operator):
    user = SPARK_CONTROLLER.name
    binary = _PROGRAM
    manifests = Manifests(_PROGRAM, _MODULE, folders=["config/crd/bases"])

    def artefacts(self) -> Sequence[Artefact]:
        return [*super().artefacts(), SPARK]

    def prepare(self) -> None:
        apply(self.administrator, _ACCOUNTS.read_text())
        super().prepare()

    def argv(self) -> Sequence[str | Path]:
        health = f"--health-probe-bind-address=127.0.0.1:{self.port}"
        return [self.binary.path, "controller", "start", _ALL_NAMESPACES, health]

    def environment(self) -> Mapping[str, str]:
        """With Spark's distribution, which finds its Java and the API server here."""
        return {
            **super().environment(),
            "SPARK_HOME": str(SPARK.packages / "pyspark"),
            "JAVA_HOME": str(tools.JAVA.find().resolve().parent.parent),
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.api_server.port),
        }


class SparkWebhook(Operator):
    user = SPARK_WEBHOOK.name
    binary = _PROGRAM
    called = "spark-operator-webhook"

    @property
    def _certificate(self) -> Path:
        return self.directory / "tls.crt"

    def prepare(self) -> None:
        keys.self_signed(self._certificate, address="127.0.0.1")
        super().prepare()

    def objects(self) -> Iterable[Manifest]:
        """Its certificate, which it reads as if a cert-manager had made it, and where the API server finds it."""
        trust = _encoded(self._certificate)
        key = _encoded(self._certificate.with_suffix(".key"))
        yield {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": _SECRET, "namespace": _NAMESPACE},
            "data": {"ca.crt": trust, "tls.crt": trust, "tls.key": key},
        }
        for kind, webhooks in (
            ("Mutating", [self._pods(), *self._kinds("mutate")]),
            ("Validating", self._kinds("validate")),
        ):
            yield {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": f"{kind}WebhookConfiguration",
                "metadata": {"name": self.name},
                "webhooks": list(webhooks),
            }

    def _pods(self) -> Manifest:
        started_by_it = {"matchLabels": {f"{_GROUP}/launched-by-spark-operator": "true"}}
        return {**self._webhook("mutate", "", "v1", "pod", ["CREATE"]), "objectSelector": started_by_it}

    def _kinds(self, verb: str) -> Iterator[Manifest]:
        for version, kind in _KINDS:
            yield self._webhook(verb, _GROUP, version, kind, ["CREATE", "UPDATE"])

    def _webhook(self, verb: str, group: str, version: str, kind: str, operations: Sequence[str]) -> Manifest:
        path = f"{verb}-{group.replace('.', '-')}-{version}-{kind}"
        rule = {
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": [f"{kind}s"],
            "operations": list(operations),
        }
        return {
            "name": f"{path}.{_GROUP}",
            "clientConfig": {
                "url": f"https://127.0.0.1:{self.port}/{path}",
                "caBundle": _encoded(self._certificate),
            },
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "NoneOnDryRun",
        }

    def argv(self) -> Sequence[str | Path]:
        return [
            self.binary.path,
            "webhook",
            "start",
            _ALL_NAMESPACES,
            f"--webhook-port={self.port}",
            f"--webhook-cert-dir={self.directory / 'read'}",
            f"--webhook-secret-name={_SECRET}",
            f"--webhook-secret-namespace={_NAMESPACE}",
            "--enable-cert-manager",
            "--health-probe-bind-address=0",
        ]

    def ready(self) -> bool:
        return listens(self.port)


def _encoded(file: Path) -> str:
    return b64encode(file.read_bytes()).decode()
