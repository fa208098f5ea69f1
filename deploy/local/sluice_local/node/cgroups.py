"""A cgroup of one name in every hierarchy that this machine has, v1 or v2."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sluice_local.errors import StackError

ROOT = Path("/sys/fs/cgroup")
# Where all controllers are in one hierarchy, of version 2, this names them.
_UNIFIED = ROOT / "cgroup.controllers"
_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
# A cgroup is busy for a moment after its last process has ended.
_EMPTY_WITHIN_S = 10.0


def lacking() -> list[str]:
    """Controllers that containers need and that no hierarchy offers."""
    offered = {option for options in _hierarchies().values() for option in options}
    if _UNIFIED.exists():
        offered |= set(_UNIFIED.read_text().split())
    return [controller for controller in _CONTROLLERS if controller not in offered]


def closed() -> list[Path]:
    """Hierarchies that can be read only, as in many containers."""
    return [hierarchy for hierarchy in _hierarchies() if not os.access(hierarchy, os.W_OK)]


def create(name: str) -> None:
    if _UNIFIED.exists():
        (ROOT / "cgroup.subtree_control").write_text(
            " ".join(f"+{controller}" for controller in _CONTROLLERS)
        )
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)
        for setting in ("cpuset.cpus", "cpuset.mems"):
            if (hierarchy / setting).exists():  # in version 1, which takes no process before both are written
                (hierarchy / name / setting).write_text((hierarchy / setting).read_text())


def holds(name: str, pid: int) -> bool:
    """Whether a process is in the cgroup of that name, or below it, in any hierarchy."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
        return any(f"{line.split(':', 2)[2]}/".startswith(f"/{name}/") for line in lines)
    return False


def remove(name: str) -> None:
    """It and all below it, once their processes have ended."""
    deadline = time.monotonic() + _EMPTY_WITHIN_S
    while left := [cgroup for cgroup in _all(name) if not _removed(cgroup)]:
        if time.monotonic() > deadline:
            raise StackError(f"The cgroup {left[0]} can't be removed: see its cgroup.procs.")
        time.sleep(0.05)


def _all(name: str) -> Iterator[Path]:
    for hierarchy in _hierarchies():
        for folder, _, _ in os.walk(hierarchy / name, topdown=False):
            yield Path(folder)


def _removed(cgroup: Path) -> bool:
    try:
        cgroup.rmdir()
    except FileNotFoundError:
        pass
    except OSError:
        return False
    return True


def _hierarchies() -> dict[Path, list[str]]:
    """Where each is, and its options: in version 1 they name its controllers. Both versions may be there."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return {
        Path(where): options.split(",")
        for _, where, kind, options, *_ in mounts
        if kind in ("cgroup", "cgroup2")
    }
