"""Whether a real node can be on this machine, which packages that needs, and how to get them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sluice_local.build import Say
from sluice_local.errors import StackError
from sluice_local.node import cgroups

#: Where CNI's plugins may be: Debian's place, and that of everybody else.
_CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
_CNI_PACKAGE = "containernetworking-plugins"
_CNI_PLUGINS = ("bridge", "host-local", "loopback")
#: What is run, and the Debian package that has it.
_PROGRAMS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "ip": "iproute2",
    "openssl": "openssl",
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
}
# Both are tried for real, in namespaces that end with the trial.
_OVERLAY = """
mount -n -t tmpfs tmpfs /tmp && cd /tmp && mkdir lower upper work merged &&
mount -n -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay merged
"""
_BRIDGE = "ip link add sluice type bridge && ip link add one type veth peer name other"
_IPTABLES = """
iptables -t nat -A PREROUTING -p tcp --dport 443 -j DNAT --to-destination 127.0.0.1:443 &&
iptables -A INPUT -m conntrack --ctstate DNAT -j ACCEPT
"""


def unmet() -> str | None:
    """The first condition that this machine fails, and the remedy; None if a node can be here.

    What takes a program to find out is left to `ensure`.
    """
    return next(_unmet(), None)


def _unmet() -> Iterator[str]:
    if sys.platform != "linux":
        yield f"containers are Linux's, and this is {sys.platform}: use a Linux machine"
        return
    if os.geteuid() != 0:
        yield "only root can start containers: run the stack and its node as root"
        return
    if lacking := cgroups.lacking():
        yield f"the kernel offers no cgroups for {', '.join(lacking)}: mount them, v1 or v2, at {cgroups.ROOT}"
    if missing_packages() and not shutil.which("apt-get"):
        yield f"there is no apt-get to install {', '.join(missing_packages())}: install what has {_missing()}"
    if complaint := _complaint(["--mount", "--propagation", "private"], _OVERLAY):
        yield f"an overlay can't be mounted in a namespace ({complaint}): a container without privileges may not"


def _unmet_with_packages() -> str | None:
    """The same of what takes an installed program to find out."""
    if complaint := _complaint(["--net"], _BRIDGE):
        return f"no bridge in a network namespace ({complaint}): load the modules bridge and veth"
    if complaint := _complaint(["--net"], _IPTABLES):
        return f"iptables can't redirect ({complaint}): load the modules nf_nat and nf_conntrack"
    return None


def missing_packages() -> list[str]:
    packages = {_PROGRAMS[program] for program in _PROGRAMS if not shutil.which(program)}
    return sorted(packages | (set() if cni_plugins() else {_CNI_PACKAGE}))


def cni_plugins() -> Path | None:
    """The folder that has all that is needed of them."""
    complete = (folder for folder in _CNI_FOLDERS if all((folder / name).exists() for name in _CNI_PLUGINS))
    return next(complete, None)


def ensure(say: Say, *, agreed: bool) -> None:
    """All that a node needs of this machine, installed if need be: whoever sits at a terminal is asked first."""
    if problem := unmet():
        raise StackError(f"There can be no real node here: {problem}.")
    if packages := missing_packages():
        say(f"a real node needs these packages, which apt-get will install: {' '.join(packages)}")
        if (
            not agreed
            and sys.stdin.isatty()
            and input("Install them? [y/N] ").strip().lower() not in ("y", "yes")
        ):
            raise StackError("There can be no real node here without them.")
        _install(packages, say)
    if problem := _unmet_with_packages():
        raise StackError(f"There can be no real node here: {problem}.")


def _install(packages: Sequence[str], say: Say) -> None:
    """Have apt-get install them. Debian starts a containerd of its own where there is systemd; it is left alone."""
    say(f"apt-get installs {' '.join(packages)} …")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for step in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
        run = subprocess.run(
            ["apt-get", *step],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if run.returncode:
            raise StackError(f"apt-get {step[0]} failed:\n{(run.stdout + run.stderr)[-2000:].strip()}")
    if missing := _missing():
        raise StackError(
            f"{missing} can't be found, though apt-get has installed it: is /usr/sbin in the PATH?"
        )


def _missing() -> str:
    programs = [program for program in _PROGRAMS if not shutil.which(program)]
    return ", ".join(programs + ([] if cni_plugins() else ["CNI's plugins"]))


def _complaint(namespaces: Sequence[str], script: str) -> str:
    """What is said against a script in namespaces of its own; nothing if it succeeds."""
    try:
        run = subprocess.run(
            ["unshare", *namespaces, "sh", "-c", script], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        return "there is no unshare"
    return (run.stderr.strip() or f"exit code {run.returncode}").splitlines()[-1] if run.returncode else ""
