"""A small image with Python: the one that runs this, its standard library, and the libraries they are linked to."""

import re
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluice_local import paths
from sluice_local.build import Progress, recipe_hash
from sluice_local.images import archive

# Of the standard library: what no service needs, and what has been installed into it.
_LEFT_OUT = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|site-packages|dist-packages|config-.*)$"
)
_USERS = "root:x:0:0:root:/root:/bin/false\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"


@dataclass(frozen=True, slots=True)
class PythonImage:
    name: str = "python"
    takes: str = "seconds"

    @property
    def path(self) -> Path:
        key = recipe_hash(Path(__file__), Path(archive.__file__), _interpreter())
        return paths.cache() / f"image-python-{key}.tar"

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = f"packing Python {sys.version.split()[0]}"
        config = {
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"],
            "Cmd": ["python"],
        }
        archive.write(target, self.name, add_python, config)


def add_python(layer: tarfile.TarFile) -> None:
    interpreter, library = _interpreter(), Path(sysconfig.get_path("stdlib"))
    modules = (library / "lib-dynload").glob("*.so")
    # All keep their places, where they find each other.
    layer.add(library, _place(library), filter=_needed)
    for file in [interpreter, *sorted(_linked_to([interpreter, *modules]))]:
        member = archive.owned_by_root(layer.gettarinfo(file.resolve(), _place(file)))
        with file.open("rb") as content:
            layer.addfile(member, content)
    for name in ("python", "python3"):
        archive.add_link(layer, f"usr/local/bin/{name}", interpreter)
    archive.add_folder(layer, "tmp", 0o1777)
    archive.add_text(layer, "etc/passwd", _USERS)


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    is_left_out = member.isdir() and _LEFT_OUT.match(member.name.rpartition("/")[2])
    return None if is_left_out else archive.owned_by_root(member)


def _linked_to(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries of programs and libraries, by the places where the loader looks for them."""
    run = subprocess.run(["ldd", *programs], capture_output=True, text=True, check=False)
    return {Path(found) for found in re.findall(r"^\s+(?:\S+ => )?(/\S+) \(", run.stdout, flags=re.MULTILINE)}


def _place(file: Path) -> str:
    return str(file).removeprefix("/")
