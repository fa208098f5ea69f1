"""A stack's real node: from nothing to a Node that takes pods, and back."""

import contextlib
import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from functools import partial

from sluice_local import build, images
from sluice_local.build import Say
from sluice_local.component import Component
from sluice_local.errors import StackError
from sluice_local.images import archive
from sluice_local.images.pause import PAUSE
from sluice_local.kubectl import apply, kubectl
from sluice_local.kubernetes import NODE_NAME, ApiServer
from sluice_local.node import cgroups
from sluice_local.node.dns import Dns
from sluice_local.node.kubelet import LABEL, Kubelet
from sluice_local.node.network import Network
from sluice_local.node.runtime import Containerd, Mounts
from sluice_local.process import send
from sluice_local.state import State

_ENDED_WITHIN_S = 30.0
_POOL = {
    "apiVersion": "sluice.dev/v1alpha1",
    "kind": "ResourcePool",
    "metadata": {"name": NODE_NAME},
    # What a simulated node offers can't take the place of what this one does.
    "spec": {"nodeSelector": {LABEL: NODE_NAME}, "supply": NODE_NAME},
}


class RealNode:
    """Whoever calls holds the stack's lock."""

    def __init__(self, state: State, api_server: ApiServer, say: Say) -> None:
        # Of the bridge and the cgroups: another for each stack of this machine, and no longer than the kernel allows.
        self.name = f"sluice-{hashlib.sha256(str(state.directory.resolve()).encode()).hexdigest()[:8]}"
        self._network = Network(self.name)
        self._mounts = Mounts(state)
        self._containerd = Containerd(state, self._mounts, self._network)
        self._dns = Dns(state, self._network, api_server)
        self._kubelet = Kubelet(state, self._mounts, self._network, api_server)
        self._api_server = api_server
        self._kubeconfig = state.directory / "kubeconfig"
        self._images = state.directory / "images"
        self._say = say

    @property
    def components(self) -> list[Component]:
        return [self._mounts, self._dns, self._containerd, self._kubelet]

    def up(self) -> None:
        build.ensure([*self._kubelet.artefacts(), *self._dns.artefacts()], self._say)
        images.make(PAUSE.name, self._images, self._say)
        self._introduce()
        if not self._mounts.daemon.pid():
            self._clear_machine()  # what an earlier one left behind would not be seen by this one
        self._mounts.start_aloud(self._say)
        self._network.up(self._api_server.port)
        self._dns.start_aloud(self._say)
        cgroups.create(self.name)
        self._containerd.start_aloud(self._say)
        for image in sorted(self._images.glob("*.tar")):
            self._containerd.take(image)
        self._kubelet.start_aloud(self._say)
        self._kubectl("wait", "--for=condition=Ready", f"node/{NODE_NAME}", "--timeout=60s")
        self._kubectl("uncordon", NODE_NAME)
        apply(self._kubeconfig, json.dumps(_POOL))

    def image(self, wanted: str) -> str:
        """Make an image, and have it on the node now, or as soon as there is one. What pods call it."""
        made = images.make(wanted, self._images, self._say)
        if self._containerd.is_ready():
            self._containerd.take(made)
        return archive.reference(made.stem)

    def down(self) -> None:
        """End it, with its pods, and take away all that it has brought to machine and cluster."""
        if not self._mounts.were_made():
            return
        has_api = self._api_server.is_ready()
        if has_api and self._kubelet.is_ready():
            self._drain()
        for server in (self._kubelet, self._containerd, self._dns):
            server.daemon.stop(grace_s=server.grace_s)
        self._clear_machine()
        for component in self.components:
            component.daemon.forget()
        if has_api:
            self._clear_cluster()
            self._mounts.empty()
        else:
            self._say(
                f"no API server runs: Node and ResourcePool {NODE_NAME} stay in its data until this is repeated"
            )

    def _introduce(self) -> None:
        """Have the API server know kubelets: it learns that at its start only."""
        server = self._api_server
        if server.knows_nodes():
            return
        self._say(f"{server.name} starts once more, to know a kubelet")
        server.keys.make()
        server.daemon.kill()  # asked to end, it would wait for every watch to end first
        server.start_aloud(self._say)

    def _drain(self) -> None:
        """While kubelet runs, pods can end by themselves. Those that don't in time are killed with the rest."""
        options = ("--force", "--disable-eviction", "--delete-emptydir-data", "--ignore-daemonsets")
        with contextlib.suppress(StackError):
            self._kubectl("drain", NODE_NAME, *options, "--grace-period=2", "--timeout=30s")

    def _clear_cluster(self) -> None:
        everywhere = ("--all-namespaces", f"--field-selector=spec.nodeName={NODE_NAME}")
        self._kubectl("delete", "pods", *everywhere, "--force", "--grace-period=0")
        self._kubectl("delete", f"node/{NODE_NAME}", f"resourcepool/{NODE_NAME}", "--ignore-not-found")

    def _clear_machine(self) -> None:
        self._end_processes()  # with the last of them its mounts and network namespaces go
        self._network.down()
        cgroups.remove(self.name)

    def _end_processes(self) -> None:
        """Again until there is none: what is killed may have started another."""
        deadline = time.monotonic() + _ENDED_WITHIN_S
        while pids := list(self._processes()):
            if time.monotonic() > deadline:
                raise StackError(f"Process {pids[0]} of the node can't be killed.")
            for pid in pids:
                send(signal.SIGKILL, pid, is_it=partial(self._owns, pid), wait_s=_ENDED_WITHIN_S)

    def _processes(self) -> Iterator[int]:
        pids = (int(entry) for entry in os.listdir("/proc") if entry.isdecimal())
        return (pid for pid in pids if self._owns(pid))

    def _owns(self, pid: int) -> bool:
        return cgroups.holds(self.name, pid) or self._mounts.are_seen_by(pid)

    def _kubectl(self, *arguments: str) -> str:
        return kubectl(f"--kubeconfig={self._kubeconfig}", *arguments)
