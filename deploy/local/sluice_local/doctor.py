"""What this machine lacks, and how to get it."""

import os
import shutil
import sys
from dataclasses import dataclass

from sluice_local import paths, tools
from sluice_local.errors import StackError
from sluice_local.node import conditions
from sluice_local.oldest_python import OLDEST_PYTHON
from sluice_local.tools import Tool

# Disk: Go's caches, the built programs, a stack's data. Memory: a stack, and a build beside it.
_DISK_GIB, _MEMORY_GIB = 8, 4


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    is_fine: bool
    finding: str


def examine() -> list[Check]:
    return [_python(), *(_tool(tool) for tool in tools.ALL), _disk(), _memory(), _real_node()]


def _python() -> Check:
    return Check("python", sys.version_info >= OLDEST_PYTHON, sys.version.split()[0])


def _tool(tool: Tool) -> Check:
    try:
        return Check(tool.name, True, f"{tool.version()} at {tool.find()}")
    except StackError as missing:
        if tool.comes_with_setup:
            return Check(tool.name, True, "not here yet: make setup brings it along")
        return Check(tool.name, False, str(missing))


def _disk() -> Check:
    cache = paths.cache()
    existing = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free_gib = shutil.disk_usage(existing).free / 2**30
    finding = f"{free_gib:.0f} GiB free at {existing}, {_DISK_GIB} are needed"
    return Check("disk", free_gib >= _DISK_GIB, finding)


def _memory() -> Check:
    total_gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return Check("memory", total_gib >= _MEMORY_GIB, f"{total_gib:.0f} GiB, {_MEMORY_GIB} are needed")


def _real_node() -> Check:
    """Nothing but `make node` needs one, so a machine that can't have it lacks nothing."""
    if problem := conditions.unmet():
        return Check("real node", True, f"not on this machine: {problem}")
    packages = " ".join(conditions.missing_packages())
    return Check("real node", True, f"make node installs {packages}" if packages else "make node can add one")
