"""A real node for tests, on machines that can have one, and what it could leave behind."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from sluice_local import Stack
from sluice_local.node import conditions

#: What kubelets and containerds are known to change or to write to.
_SETTINGS: Final = (
    "vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes", "net/ipv4/ip_forward", "net/ipv4/conf/all/route_localnet",
)  # fmt: skip
_FOLDERS: Final = ("/run", "/var/lib", "/var/log", "/var/run/netns", "/etc/cni", "/opt", "/usr/libexec")
#: Another stack's node may come or go meanwhile.
_NODE_NAME: Final = re.compile(r"sluice-[0-9a-f]{8}")


def required() -> None:
    """Skip where there can be no node, and say why. Nobody's machine gets packages from tests but CI's."""
    problem = conditions.unmet()
    if not problem and not os.environ.get("CI") and (packages := conditions.missing_packages()):
        problem = f"{', '.join(packages)} are not installed (make node does that)"
    if problem:
        pytest.skip(f"no real node here: {problem}")


def python_pod(name: str, program: str, **spec: Any) -> dict[str, Any]:
    """A pod for the real node, as somebody without rights, that runs a program."""
    container = {
        "name": "main",
        "image": "localhost/python:local",
        "command": ["python", "-c", program],
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "nodeSelector": {"sluice.dev/node": "real"},
            "restartPolicy": "Never",
            "securityContext": {"runAsUser": 1000, "runAsNonRoot": True},
            "containers": [container],
            **spec,
        },
    }


def traces() -> set[str]:
    """What of this machine a node could change."""
    found = {f"mount: {line}" for line in Path("/proc/self/mounts").read_text().splitlines()}
    found |= {
        f"interface: {link['ifname']} {link.get('master', '')}"
        for link in json.loads(_output("ip", "-json", "link"))
    }
    found |= {f"rule: {line}" for line in _output("iptables-save").splitlines() if line.startswith("-A")}
    found |= {f"cgroup: {each}" for each in Path("/sys/fs/cgroup").glob("*/*/") if "process" not in each.name}
    found |= {f"file: {each}" for folder in _FOLDERS for each in Path(folder).glob("*")}
    found |= {f"{name} is {(Path('/proc/sys') / name).read_text().strip()}" for name in _SETTINGS}
    return {trace for trace in found if not _NODE_NAME.search(trace)}


def own_traces(stack: Stack) -> list[str]:
    """What bears the node's name, and processes that see its files."""
    name = stack.node_name
    found = [link["ifname"] for link in json.loads(_output("ip", "-json", "link")) if name in link["ifname"]]
    found += [line for line in _output("iptables-save").splitlines() if name in line]
    found += [str(cgroup) for cgroup in Path("/sys/fs/cgroup").glob(f"**/{name}")]
    run = stack.directory / "node" / "run"
    return found + [entry for entry in os.listdir("/proc") if entry.isdecimal() and _sees(entry, run)]


def _sees(pid: str, run: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/root/run", run)
    except OSError:
        return False


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
