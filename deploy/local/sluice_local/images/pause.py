"""The image of the process that holds a pod's namespaces."""

import tarfile
from dataclasses import dataclass
from pathlib import Path

from sluice_local import paths
from sluice_local.build import GoBinary, Progress, recipe_hash
from sluice_local.images import archive

_PROGRAM = GoBinary("pause", "pause", ".", takes="seconds")


@dataclass(frozen=True, slots=True)
class PauseImage:
    name: str = "pause"
    takes: str = "seconds"

    @property
    def path(self) -> Path:
        return paths.cache() / f"image-pause-{_PROGRAM.key}-{recipe_hash(Path(archive.__file__))}.tar"

    def build(self, target: Path, progress: Progress) -> None:
        program = target.with_name("pause")
        _PROGRAM.build(program, progress)

        def fill(layer: tarfile.TarFile) -> None:
            layer.add(program, "pause", filter=archive.owned_by_root)

        archive.write(target, self.name, fill, {"Entrypoint": ["/pause"], "User": "65534:65534"})
