"""Programs of this machine, and the shared libraries that they are linked to."""

import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

from sluice_local.errors import StackError
from sluice_local.images import archive


def add_programs(layer: tarfile.TarFile, names: Iterable[str]) -> None:
    programs = [_found(name) for name in names]
    for program in programs:
        archive.add_file(layer, f"usr/bin/{program.name}", program)
    archive.add_link(layer, "bin", Path("usr/bin"))
    add_linked(layer, programs)


def add_linked(layer: tarfile.TarFile, programs: Iterable[Path]) -> None:
    """Add what the loader finds for these programs and libraries, to the places where it looks."""
    run = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    found = set(re.findall(r"^\s+(?:\S+ => )?(/\S+) \(", run.stdout, flags=re.MULTILINE))
    for library in sorted(found - {f"/{name}" for name in layer.getnames()}):
        archive.add_file(layer, library.lstrip("/"), Path(library))


def _found(name: str) -> Path:
    if place := shutil.which(name):
        return Path(place)
    raise StackError(f"The image needs {name}, which this machine lacks: make node, or apt-get, installs it.")
