"""What answers the names that a real node's pods look up: CoreDNS, on the node's address in their network."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from sluice_local import paths
from sluice_local.build import GoBinary
from sluice_local.kubectl import apply
from sluice_local.kubernetes import DNS, ApiServer, Client
from sluice_local.node.network import Network
from sluice_local.probes import http_ok
from sluice_local.state import State

#: What the names of services end with.
DOMAIN = "cluster.local"
_RECIPES = paths.RECIPES / "node"


class Dns(Client):
    grace_s = 5.0
    user = DNS.name
    binary = GoBinary("coredns", "coredns", ".", takes="1–2 minutes")

    def __init__(self, state: State, network: Network, api_server: ApiServer) -> None:
        super().__init__(state, api_server)
        self._network = network

    @property
    def address(self) -> str:
        return f"{self._network.gateway().ip}:53" if self._network.is_up() else "-"

    def prepare(self) -> None:
        super().prepare()
        apply(self.administrator, (_RECIPES / "dns.yaml").read_text())
        settings = Template((_RECIPES / "Corefile").read_text())
        text = settings.substitute(address=self._network.gateway().ip, port=self.port, domain=DOMAIN)
        (self.directory / "Corefile").write_text(text)

    def argv(self) -> Sequence[str | Path]:
        return [self.binary.path]

    def ready(self) -> bool:
        return http_ok(self.port, "/ready")
