"""The image of the process that holds a pod's namespaces."""

import tarfile

from sluice_local.build import GoBinary
from sluice_local.images import archive

_PROGRAM = GoBinary("pause", "pause", ".", takes="seconds")


def _fill(layer: tarfile.TarFile) -> None:
    archive.add_file(layer, "pause", _PROGRAM.path)


PAUSE = archive.Image(
    "pause",
    _fill,
    {"Entrypoint": ["/pause"], "User": "65534:65534"},
    sources=lambda: _PROGRAM.sources,
    needs=[_PROGRAM],
)
