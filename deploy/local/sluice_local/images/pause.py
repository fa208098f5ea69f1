"""The image of the process that holds a pod's namespaces."""

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice_local.build import Artefact, GoBinary, Progress
from sluice_local.images import archive

_PROGRAM = GoBinary("pause", "pause", ".", takes="seconds")


@dataclass(frozen=True, slots=True)
class PauseImage:
    name: str = "pause"
    takes: str = "seconds"

    @property
    def needs(self) -> Sequence[Artefact]:
        return [_PROGRAM]

    @property
    def path(self) -> Path:
        return archive.path_of(self.name, *_PROGRAM.sources)

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "packing it"
        archive.write(target, self.name, _fill, {"Entrypoint": ["/pause"], "User": "65534:65534"})


def _fill(layer: tarfile.TarFile) -> None:
    archive.add_file(layer, "pause", _PROGRAM.path)
