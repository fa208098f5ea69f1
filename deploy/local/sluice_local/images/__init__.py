"""Images for the real node, made on this machine: no registry has a part in it."""

from collections.abc import Mapping
from pathlib import Path

from sluice_local import build
from sluice_local.build import Say
from sluice_local.errors import StackError
from sluice_local.images import docker
from sluice_local.images.archive import Image
from sluice_local.images.pause import PAUSE
from sluice_local.images.python import PYTHON
from sluice_local.images.ray import RAY_IMAGE
from sluice_local.images.spark import SPARK_IMAGE

IMAGES: Mapping[str, Image] = {image.name: image for image in (PAUSE, PYTHON, SPARK_IMAGE, RAY_IMAGE)}


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
