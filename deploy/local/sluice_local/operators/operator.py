"""What all operators have in common: an account with the rights of their manifests, and kinds of their own."""

import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set

from sluice_local.build import Artefact
from sluice_local.errors import StackError
from sluice_local.kubectl import apply, kubectl
from sluice_local.kubernetes import Client
from sluice_local.operators.module import Manifest, Manifests
from sluice_local.probes import http_ok

_KNOWN_WITHIN_S = 60.0


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
        kinds = {each["metadata"]["name"] for each in objects if each["kind"] == "CustomResourceDefinition"}
        deadline = time.monotonic() + _KNOWN_WITHIN_S
        while unknown := kinds - self._known():
            if time.monotonic() > deadline:
                raise StackError(f"The API server doesn't offer {min(unknown)}: see its log.")
            time.sleep(0.1)

    def _known(self) -> Set[str]:
        """The kinds that the API server tells of, which is a little after it has established them."""
        return set(kubectl(f"--kubeconfig={self.administrator}", "api-resources", "--output=name").split())

    def environment(self) -> Mapping[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def ready(self) -> bool:
        return http_ok(self.port, "/readyz")


def _text(objects: Iterable[Manifest]) -> str:
    return "\n---\n".join(map(json.dumps, objects))
