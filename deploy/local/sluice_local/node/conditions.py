"""Whether a real node can be on this machine, which packages that needs, and how to get them."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from sluice_local import paths
from sluice_local.build import Say
from sluice_local.errors import StackError
from sluice_local.node import cgroups
from sluice_local.programs import run

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
    "wget": "wget",  # for Ray's image, whose probes run it
}
# Both are tried for real, in namespaces that end with the trial.
_OVERLAY = """
mount -n --make-rprivate / && mount -n -t tmpfs tmpfs /tmp && cd /tmp && mkdir lower upper work merged &&
mount -n -t overlay -o lowerdir=lower,upperdir=upper,workdir=work overlay merged
"""
_BRIDGE = "ip link add sluice type bridge && ip link add one type veth peer name other"
_IPTABLES = """
iptables -t nat -A PREROUTING -p tcp --dport 443 -j DNAT --to-destination 127.0.0.1:443 &&
iptables -A INPUT -m conntrack --ctstate DNAT -j ACCEPT
"""


def ensure(say: Say, *, agreed: bool) -> None:
    """All that a node needs of this machine, installed if need be: whoever sits at a terminal is asked first."""
    _refuse_if_unmet()
    if packages := missing_packages():
        say(f"a real node needs what apt-get will install: {' '.join(packages)}")
        if not agreed and not _agreed():
            raise StackError("There can be no real node here without it.")
        with paths.locked(paths.cache() / "apt.lock"):
            if packages := missing_packages():
                _install(packages, say)
        _refuse_if_unmet()


def unmet() -> str | None:
    """The first condition that this machine fails, and the remedy; None if a node can be here.

    Of some it takes installed programs to find out: those are judged once there are all.
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
        yield f"there are no cgroups for {', '.join(lacking)}: mount them at {cgroups.ROOT}, v1 or v2"
    if closed := cgroups.closed():
        yield f"no cgroup can be made in {closed[0]}, which is read-only: in a container that takes a privileged one"
    packages = missing_packages()
    if not {"util-linux", "mount"} & set(packages) and (complaint := _complaint("--mount", _OVERLAY)):
        yield f"no overlay can be mounted ({complaint}): in a container that takes a privileged one"
    if packages:
        if not shutil.which("apt-get"):
            yield f"{_missing()} is missing, and there is no apt-get: install what Debian has in {' '.join(packages)}"
        return
    if complaint := _complaint("--net", _BRIDGE):
        yield f"no bridge can be made in a network namespace ({complaint}): load the modules bridge and veth"
    if complaint := _complaint("--net", _IPTABLES):
        yield f"iptables can't redirect ({complaint}): load the modules nf_nat and nf_conntrack"


def _refuse_if_unmet() -> None:
    if problem := unmet():
        raise StackError(f"There can be no real node here: {problem}.")


def missing_packages() -> list[str]:
    packages = {_PROGRAMS[program] for program in _PROGRAMS if not shutil.which(program)}
    return sorted(packages | (set() if cni_plugins() else {_CNI_PACKAGE}))


def cni_plugins() -> Path | None:
    """The folder that has all that is needed of them."""
    complete = (folder for folder in _CNI_FOLDERS if all((folder / name).exists() for name in _CNI_PLUGINS))
    return next(complete, None)


def _agreed() -> bool:
    """What somebody at a terminal says; nobody else is asked."""
    return not sys.stdin.isatty() or input("Install it? [y/N] ").strip().lower() in ("y", "yes")


def _install(packages: Sequence[str], say: Say) -> None:
    """Have apt-get install them. Where there is systemd, Debian starts a containerd of its own: it is left alone."""
    say(f"apt-get installs {' '.join(packages)} …")
    apt_get = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y")
    run(*apt_get, "update")
    run(*apt_get, "install", "--no-install-recommends", *packages)
    if missing := _missing():
        raise StackError(
            f"apt-get has installed all, and {missing} can't be found: is /usr/sbin in the PATH?"
        )


def _missing() -> str:
    programs = [program for program in _PROGRAMS if not shutil.which(program)]
    return ", ".join(programs + ([] if cni_plugins() else ["CNI's plugins"]))


def _complaint(namespace: str, script: str) -> str:
    """What is said against a script in a namespace of its own; nothing if it succeeds."""
    argv = ["unshare", namespace, "sh", "-c", script]
    tried = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (
        (tried.stderr.strip() or f"exit code {tried.returncode}").splitlines()[-1] if tried.returncode else ""
    )
