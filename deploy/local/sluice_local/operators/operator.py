"""What all operators have in common: an account with the rights of their manifests, and kinds of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence

from sluice_local.build import Artefact
from sluice_local.kubectl import apply, kubectl
from sluice_local.kubernetes import Client
from sluice_local.operators.module import Manifest, Manifests
from sluice_local.probes import http_ok


class Operator(Client):
    manifests: Manifests | None = None

    def artefacts(self) -> Sequence[Artefact]:
        return [*super().artefacts(), *([self.manifests] if self.manifests else [])]

    def objects(self) -> Iterable[Manifest]:
        """What has to be in the cluster before it starts."""
        return self.manifests.read() if self.manifests else []

    def prepare(self) -> None:
        super().prepare()
        objects = list(self.objects())
        apply(self.administrator, _text(objects))
        kinds = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
        if kinds:
            until = ("--for=condition=Established", "--timeout=60s", "--filename=-")
            kubectl(f"--kubeconfig={self.administrator}", "wait", *until, stdin=_text(kinds))

    def environment(self) -> Mapping[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def ready(self) -> bool:
        return http_ok(self.port, "/readyz")


def _text(objects: Iterable[Manifest]) -> str:
    return "\n---\n".join(map(json.dumps, objects))
