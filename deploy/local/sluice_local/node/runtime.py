"""The two processes that containers need: one that holds the node's mount namespace, and containerd in it."""

import os
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from string import Template

from sluice_local import paths
from sluice_local.component import Component
from sluice_local.images import archive
from sluice_local.images.pause import PAUSE
from sluice_local.node import conditions
from sluice_local.node.network import Network
from sluice_local.programs import run
from sluice_local.state import State

_RECIPES = paths.RECIPES / "node"


class Mounts(Component):
    """Holds the mount namespace that containerd, kubelet and containers share, with folders of the stack in the
    places of some of the machine's."""

    reached_by = "-"

    def __init__(self, state: State) -> None:
        super().__init__("node", state)
        self.run = self.directory / "run"
        self.var_lib = self.directory / "var-lib"
        self.var_log = self.directory / "var-log"

    def prepare(self) -> None:
        self.empty()
        for folder in ("containerd/registries/_default", "kubelet", "cni/net.d"):
            (self.var_lib / folder).mkdir(parents=True, exist_ok=True)
        self.run.mkdir()
        self.var_log.mkdir()

    def empty(self) -> None:
        """As after a machine's start: images stay, and what ran is forgotten."""
        for forgotten in (self.var_log, self.var_lib / "kubelet", self.var_lib / "cni", self.run):
            shutil.rmtree(forgotten, ignore_errors=True)

    def were_made(self) -> bool:
        """Whether there is a node, or a part of one, or anything of it left."""
        return self.run.exists()

    def argv(self) -> Sequence[str | Path]:
        unshare = ["unshare", "--mount", "--propagation", "private"]
        return [*unshare, "sh", _RECIPES / "mounts.sh", self.directory]

    def ready(self) -> bool:
        return (self.run / "mounted").exists()

    def within(self, *argv: str | Path) -> list[str | Path]:
        """The command that runs another among the node's mounts, and lets containers read what it writes."""
        namespace = f"--mount=/proc/{self.daemon.pid()}/ns/mnt"
        return ["nsenter", namespace, "--", "sh", "-c", 'umask 022 && exec "$@"', "sh", *argv]

    def are_seen_by(self, pid: int) -> bool:
        """Whether a process is in the namespace. That can be told after its holder has ended, too."""
        try:
            return os.path.samefile(f"/proc/{pid}/root/run", self.run)
        except OSError:
            return False


class Containerd(Component):
    grace_s = 5.0
    reached_by = "unix socket"

    def __init__(self, state: State, mounts: Mounts, network: Network) -> None:
        super().__init__("containerd", state)
        self._mounts = mounts
        self._network = network

    def prepare(self) -> None:
        folder = self._mounts.var_lib / "containerd"
        settings = Template((_RECIPES / "containerd.toml").read_text())
        text = settings.substitute(pause=archive.reference(PAUSE.name), cni_plugins=conditions.cni_plugins())
        (folder / "config.toml").write_text(text)
        (self._mounts.var_lib / "cni" / "net.d" / "pods.conflist").write_text(self._network.plugins())
        shutil.copy(_RECIPES / "hosts.toml", folder / "registries" / "_default" / "hosts.toml")

    def argv(self) -> Sequence[str | Path]:
        return self._mounts.within("containerd", "--config=/var/lib/containerd/config.toml")

    def ready(self) -> bool:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(f"/proc/{self.daemon.pid()}/root/run/containerd/containerd.sock")
        return True

    def take(self, image: Path) -> None:
        """Import an image's archive, unless the same has been imported."""
        known = self._mounts.var_lib / "containerd" / "imported" / image.name
        file = image.stat()
        identity = f"{file.st_size} {file.st_mtime_ns}"
        if known.exists() and known.read_text() == identity:
            return
        argv = self._mounts.within("ctr", "--namespace=k8s.io", "images", "import", "-")
        with image.open("rb") as archive:
            run(*argv, stdin=archive)
        known.parent.mkdir(exist_ok=True)
        known.write_text(identity)
