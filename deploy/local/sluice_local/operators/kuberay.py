"""KubeRay. Of its webhook, which only validates what its controllers validate too, the API server is told nothing:
it listens on one port of the machine, whichever stack it belongs to, and is off by default.
"""

from collections.abc import Sequence
from pathlib import Path

from sluice_local.build import GoBinary
from sluice_local.kubernetes import KUBERAY
from sluice_local.operators.module import Manifests
from sluice_local.operators.operator import Operator

_MODULE = "github.com/ray-project/kuberay/ray-operator"


class KubeRay(Operator):
    user = KUBERAY.name
    binary = GoBinary("kuberay", "kuberay", _MODULE, takes="1–2 minutes")
    manifests = Manifests(binary, _MODULE, folders=["config/default"])

    def argv(self) -> Sequence[str | Path]:
        return [
            self.binary.path,
            f"--health-probe-bind-address=127.0.0.1:{self.port}",
            "--metrics-addr=0",
            "--enable-leader-election=false",
            "--log-stdout-encoder=console",
            # Heads are asked by way of the API server: their names mean nothing outside of the pods' network.
            "--use-kubernetes-proxy",
        ]
