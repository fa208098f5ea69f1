"""Images as archives, such as `docker save` writes and containerd imports: one layer of files of this machine."""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_local import paths
from sluice_local.build import Artefact, Progress, recipe_hash

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
Fill = Callable[[tarfile.TarFile], None]


def reference(name: str) -> str:
    """What a pod calls the image. Its host is no registry, and its tag one that kubelet doesn't try to pull."""
    return f"localhost/{name}:local"


@dataclass(frozen=True, slots=True)
class Image:
    """One of ours, as an archive that is made once into the user's cache."""

    name: str
    fill: Fill
    #: How a container of it begins, in the words of the format.
    config: Mapping[str, Any]
    #: Files which make another image of it when they change.
    sources: Callable[[], Sequence[Path]]
    needs: Sequence[Artefact] = ()
    takes: str = "half a minute at most"

    @property
    def path(self) -> Path:
        modules = sorted(Path(__file__).parent.glob("*.py"))
        return paths.cache() / f"image-{self.name}-{recipe_hash(*modules, *self.sources())}.tar"

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "packing"
        _write(target, self)


def _write(target: Path, image: Image) -> None:
    """An image with one layer."""
    layer = target.with_name("layer.tar")
    with tarfile.open(layer, "w") as tar:
        image.fill(tar)
    with layer.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    machine = platform.machine()
    description = {
        "architecture": _ARCHITECTURES.get(machine, machine),
        "os": "linux",
        "config": dict(image.config),
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [reference(image.name)], "Layers": ["layer.tar"]}]
    with tarfile.open(target, "w") as tar:
        add_text(tar, "manifest.json", json.dumps(manifest))
        add_text(tar, "config.json", json.dumps(description))
        tar.add(layer, "layer.tar", filter=owned_by_root)
    layer.unlink()


def add_text(tar: tarfile.TarFile, place: str, text: str, mode: int = 0o644) -> None:
    member = tarfile.TarInfo(place)
    member.size, member.mode = len(text.encode()), mode
    tar.addfile(member, io.BytesIO(text.encode()))


def add_file(tar: tarfile.TarFile, place: str, file: Path) -> None:
    """What is in it, or in the file that it links to."""
    member = owned_by_root(tar.gettarinfo(file.resolve(), place))
    with file.open("rb") as content:
        tar.addfile(member, content)


def add_folder(tar: tarfile.TarFile, place: str, mode: int) -> None:
    member = tarfile.TarInfo(place)
    member.type, member.mode = tarfile.DIRTYPE, mode
    tar.addfile(member)


def add_link(tar: tarfile.TarFile, place: str, to: Path) -> None:
    member = tarfile.TarInfo(place)
    member.type, member.linkname = tarfile.SYMTYPE, str(to)
    tar.addfile(member)


def owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Whoever the container runs as may read it."""
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mode |= 0o555 if member.isdir() or member.mode & 0o100 else 0o444
    return member
