"""A small image with Python: the one that runs this, its standard library, and the libraries they are linked to."""

import re
import sys
import sysconfig
import tarfile
from functools import partial
from pathlib import Path

from sluice_local.images import archive
from sluice_local.images.linked import add_linked

# Of the standard library: what no service needs, and what has been installed into it.
_LEFT_OUT = re.compile(
    r"(test|idlelib|tkinter|turtledemo|ensurepip|lib2to3|site-packages|dist-packages|config-.*)$"
)
ENVIRONMENT = ["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"]


def add_python(layer: tarfile.TarFile, user: str, user_id: int) -> None:
    """Python, and somebody to run it whom libraries find a name and a home of."""
    interpreter, library = _interpreter(), Path(sysconfig.get_path("stdlib"))
    # Both keep their places, where they find each other.
    layer.add(library, _place(library), filter=_needed)
    archive.add_file(layer, _place(interpreter), interpreter)
    add_linked(layer, [interpreter, *(library / "lib-dynload").glob("*.so")])
    for name in ("python", "python3"):
        archive.add_link(layer, f"usr/local/bin/{name}", interpreter)
    archive.add_folder(layer, "tmp", 0o1777)
    archive.add_text(layer, "etc/passwd", _user("root", 0) + _user(user, user_id))


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    is_left_out = member.isdir() and _LEFT_OUT.match(member.name.rpartition("/")[2])
    return None if is_left_out else archive.owned_by_root(member)


def _user(name: str, number: int) -> str:
    return f"{name}:x:{number}:{number}:{name}:/tmp:/bin/false\n"


def _place(file: Path) -> str:
    return str(file).removeprefix("/")


PYTHON = archive.Image(
    "python",
    partial(add_python, user="nobody", user_id=65534),
    {"Env": ENVIRONMENT, "Cmd": ["python"]},
    sources=lambda: [_interpreter()],
)
