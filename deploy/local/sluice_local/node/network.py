"""The bridge of a node's pods, and how they get from it to the API server.

There is no kube-proxy. The one service that pods find by themselves is the API server's, and it listens on
127.0.0.1 only: what pods send to the service's address is redirected there, and nothing else of theirs gets to
127.0.0.1. Pods reach each other and this machine, and nothing beyond.
"""

import json
import random
import shlex
import subprocess
import time
from ipaddress import IPv4Interface, IPv4Network
from pathlib import Path

from sluice_local import paths
from sluice_local.errors import StackError
from sluice_local.kubernetes import SERVICE_ADDRESS
from sluice_local.programs import run

#: One of its parts is a node's network: none that a route of this machine leads to.
_RANGE = IPv4Network("10.88.0.0/16")
_PREFIX = 24
# The kernel takes a pod's interface away a moment after its last process has ended.
_EMPTY_WITHIN_S = 10.0


class Network:
    def __init__(self, name: str) -> None:
        """`name`: of the bridge, and so in each rule."""
        self.name = name
        self._bridge = Path("/sys/class/net") / name

    def gateway(self) -> IPv4Interface:
        """This machine's own address among the pods'. There is one once it is up."""
        shown = json.loads(run("ip", "-json", "-4", "address", "show", "dev", self.name))
        ((address,),) = [link["addr_info"] for link in shown]
        return IPv4Interface(f"{address['local']}/{address['prefixlen']}")

    def plugins(self) -> str:
        """What CNI's plugins do for a pod: an interface on the bridge, an address, and a way to this machine."""
        addresses = {"subnet": str(self.gateway().network), "gateway": str(self.gateway().ip)}
        bridge = {
            "type": "bridge",
            "bridge": self.name,
            "hairpinMode": True,
            "ipam": {"type": "host-local", "ranges": [[addresses]], "routes": [{"dst": "0.0.0.0/0"}]},
        }
        return json.dumps({"cniVersion": "1.0.0", "name": self.name, "plugins": [bridge]}, indent=2)

    def is_up(self) -> bool:
        return self._bridge.exists()

    def up(self, api_port: int) -> None:
        with paths.locked(paths.cache() / "network.lock"):  # or another stack chooses the same network
            if not self.is_up():
                self._add_bridge()
        rules = self._rules(api_port)
        if not all(_is_there(*rule) for rule in rules):
            self._remove_rules()
            for table, chain, rule in reversed(rules):
                _iptables(table, "-I", chain, *rule)

    def down(self) -> None:
        self._remove_rules()
        if not self.is_up():
            return
        deadline = time.monotonic() + _EMPTY_WITHIN_S
        while any((self._bridge / "brif").iterdir()):
            if time.monotonic() > deadline:
                raise StackError(
                    f"The bridge {self.name} can't be removed: it has interfaces of living pods."
                )
            time.sleep(0.05)
        run("ip", "link", "delete", self.name)

    def _add_bridge(self) -> None:
        gateway = f"{next(_free_network().hosts())}/{_PREFIX}"
        run("ip", "link", "add", self.name, "type", "bridge")
        # Said aloud, or it changes with the pods that come and go, and others lose this machine for a while.
        run("ip", "link", "set", self.name, "address", (self._bridge / "address").read_text().strip())
        run("ip", "address", "add", gateway, "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        Path(f"/proc/sys/net/ipv4/conf/{self.name}/route_localnet").write_text("1")

    def _rules(self, api_port: int) -> list[tuple[str, str, list[str]]]:
        """Table, chain and rule, in the order in which they have to stand."""
        pods = ["-i", self.name]
        to_service = ["-d", f"{SERVICE_ADDRESS}/32", "-p", "tcp", "--dport", "443"]
        return [
            (
                "nat",
                "PREROUTING",
                [*pods, *to_service, "-j", "DNAT", "--to-destination", f"127.0.0.1:{api_port}"],
            ),
            ("filter", "INPUT", [*pods, "-m", "conntrack", "--ctstate", "DNAT", "-j", "ACCEPT"]),
            ("filter", "INPUT", [*pods, "-d", "127.0.0.0/8", "-j", "DROP"]),
            (
                "filter",
                "FORWARD",
                [*pods, "-o", self.name, "-j", "ACCEPT"],
            ),  # some firewalls ask that of bridges
        ]

    def _remove_rules(self) -> None:
        for table in ("nat", "filter"):
            for line in _iptables(table, "-S").splitlines():
                command, *rule = shlex.split(line)
                if command == "-A" and self.name in rule:
                    _iptables(table, "-D", *rule)


def _free_network() -> IPv4Network:
    routes = json.loads(run("ip", "-json", "-4", "route", "show", "table", "all"))
    taken = [IPv4Network(route["dst"]) for route in routes if route["dst"] != "default"]
    candidates = list(_RANGE.subnets(new_prefix=_PREFIX))
    for candidate in random.sample(candidates, len(candidates)):
        if not any(candidate.overlaps(network) for network in taken):
            return candidate
    raise StackError(f"No free network for pods in {_RANGE}: all of it is routed elsewhere.")


def _is_there(table: str, chain: str, rule: list[str]) -> bool:
    check = ["iptables", "-w", "-t", table, "-C", chain, *rule]
    return subprocess.run(check, capture_output=True, check=False).returncode == 0


def _iptables(table: str, *arguments: str) -> str:
    return run("iptables", "-w", "-t", table, *arguments)
