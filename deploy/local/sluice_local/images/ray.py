"""Ray from its wheels: for heads and workers in pods, and what operators run in them."""

import tarfile
from collections.abc import Iterator
from pathlib import Path

from sluice_local.images import archive, python
from sluice_local.images.linked import add_linked, add_programs
from sluice_local.images.wheels import RECIPES, Wheels

RAY = Wheels("ray-wheels", RECIPES / "ray.lock", takes="a minute")
_PACKAGES = "opt/ray-python"
_USER_ID = 1000  # as in Ray's own image
# KubeRay starts Ray by a shell, and its probes run grep and wget; Ray starts a job's entrypoint by sh.
_PROGRAMS = ("bash", "sh", "grep", "wget")
_COMMAND = "#!/usr/local/bin/python\nfrom ray.scripts.scripts import main\n\nmain()\n"


def _fill(layer: tarfile.TarFile) -> None:
    python.add_python(layer, "ray", _USER_ID)
    layer.add(RAY.packages, _PACKAGES, filter=archive.owned_by_root)
    archive.add_text(layer, "usr/local/bin/ray", _COMMAND, mode=0o755)
    add_programs(layer, _PROGRAMS)
    add_linked(layer, _binaries(RAY.packages))


def _binaries(folder: Path) -> Iterator[Path]:
    for file in sorted(folder.rglob("*")):
        if file.is_file() and (".so" in file.suffixes or (not file.suffix and file.stat().st_mode & 0o100)):
            yield file


RAY_IMAGE = archive.Image(
    "ray",
    _fill,
    {
        "Env": [*python.ENVIRONMENT, f"PYTHONPATH=/{_PACKAGES}", "HOME=/tmp", "RAY_USAGE_STATS_ENABLED=0"],
        "Cmd": ["bash"],
        "WorkingDir": "/tmp",
        "User": str(_USER_ID),
    },
    sources=lambda: [RAY.lock],
    needs=[RAY],
)
