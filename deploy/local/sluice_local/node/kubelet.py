"""The kubelet, built from the same source as the control plane."""

import json
from collections.abc import Sequence
from ipaddress import IPv4Interface
from pathlib import Path
from typing import Any

from sluice_local import paths
from sluice_local.build import Artefact, GoBinary
from sluice_local.component import Component
from sluice_local.kubernetes import NODE, NODE_NAME, ApiServer
from sluice_local.node.dns import DOMAIN
from sluice_local.node.network import Network
from sluice_local.node.runtime import Mounts
from sluice_local.state import State

LABEL = "sluice.dev/node"
KUBELET = GoBinary("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", takes="1–2 minutes")
# Where the folder of its files is in its own mount namespace.
_FOLDER = Path("/var/lib/kubelet")


class Kubelet(Component):
    grace_s = 5.0

    def __init__(self, state: State, mounts: Mounts, network: Network, api_server: ApiServer) -> None:
        super().__init__("kubelet", state)
        self._mounts = mounts
        self._network = network
        self._api_server = api_server

    @property
    def address(self) -> str:
        return f"{self._gateway.ip}:{self.port}" if self._network.is_up() else "-"

    @property
    def _gateway(self) -> IPv4Interface:
        """The node's address is that of its pods' gateway: it belongs to this stack alone."""
        return self._network.gateway()

    def artefacts(self) -> Sequence[Artefact]:
        return [KUBELET]

    def prepare(self) -> None:
        folder = self._mounts.var_lib / "kubelet"
        keys = self._api_server.keys
        keys.serving(folder / "serving.crt", address=str(self._gateway.ip))
        (folder / "clients.crt").write_bytes(keys.authority.read_bytes())
        (folder / "resolv.conf").write_text("")  # no name is looked up outside of this machine
        (folder / "config.json").write_text(json.dumps(self._settings(), indent=2))
        paths.write_private(folder / "kubeconfig", self._api_server.kubeconfig(NODE.name))

    def argv(self) -> Sequence[str | Path]:
        return self._mounts.within(
            KUBELET.path,
            f"--config={_FOLDER}/config.json",
            f"--kubeconfig={_FOLDER}/kubeconfig",
            f"--hostname-override={NODE_NAME}",
            f"--node-ip={self._gateway.ip}",
            f"--node-labels={LABEL}={NODE_NAME}",
        )

    def ready(self) -> bool:
        """Asked by way of the API server, which has to reach it for logs and shells."""
        return self._api_server.answers(f"/api/v1/nodes/{NODE_NAME}/proxy/healthz")

    def _settings(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": str(self._gateway.ip),
            "port": self.port,
            "healthzPort": 0,
            "tlsCertFile": f"{_FOLDER}/serving.crt",
            "tlsPrivateKeyFile": f"{_FOLDER}/serving.key",
            # Only the API server has a certificate that it accepts.
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": f"{_FOLDER}/clients.crt"},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._network.name}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,  # not everybody may set the default
            "makeIPTablesUtilChains": False,
            "clusterDNS": [str(self._gateway.ip)],
            "clusterDomain": DOMAIN,
            "resolvConf": f"{_FOLDER}/resolv.conf",
            "volumePluginDir": f"{_FOLDER}/volume-plugins",
            "imageGCHighThresholdPercent": 100,  # an image that is removed can't be pulled again
            # A developer's disk is often fuller than a server's.
            "evictionHard": {
                "memory.available": "100Mi",
                "nodefs.available": "1%",
                "nodefs.inodesFree": "1%",
                "imagefs.available": "1%",
                "imagefs.inodesFree": "1%",
            },
        }
