"""Images for the real node, made on this machine: no registry has a part in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from sluice_local import build
from sluice_local.build import Artefact, Say
from sluice_local.errors import StackError
from sluice_local.images import docker
from sluice_local.images.pause import PauseImage
from sluice_local.images.python import PythonImage
from sluice_local.images.ray import RayImage
from sluice_local.images.spark import SparkImage


class Image(Artefact, Protocol):
    """An archive of ours."""

    @property
    def needs(self) -> Sequence[Artefact]:
        """What must have been built before it."""


_OURS: tuple[Image, ...] = (PauseImage(), PythonImage(), SparkImage(), RayImage())
IMAGES: Mapping[str, Image] = {image.name: image for image in _OURS}


def make(wanted: str, folder: Path, say: Say) -> Path:
    """The archive, in the folder, of an image of ours or of a folder that has a Dockerfile."""
    folder.mkdir(parents=True, exist_ok=True)
    if image := IMAGES.get(wanted):
        build.ensure([*image.needs, image], say)
        return _linked(folder / f"{wanted}.tar", image.path)
    source = Path(wanted)
    if not (source / "Dockerfile").exists():
        raise StackError(f"{wanted} is neither {', '.join(IMAGES)} nor a folder with a Dockerfile.")
    target = folder / f"{docker.name_of(source)}.tar"
    docker.build(source, target, say)
    return target


def _linked(link: Path, to: Path) -> Path:
    draft = link.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    draft.symlink_to(to)
    return draft.replace(link)
