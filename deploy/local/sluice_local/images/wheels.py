"""What others publish for Python, as a lock pins it."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from sluice_local import paths
from sluice_local.build import Command, Progress, recipe_hash

RECIPES = paths.RECIPES / "images"


@dataclass(frozen=True, slots=True)
class Wheels:
    """A virtual environment, built once into the user's cache."""

    name: str
    lock: Path
    takes: str

    @property
    def path(self) -> Path:
        return paths.cache() / f"{self.name}-{recipe_hash(self.lock)}"

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def packages(self) -> Path:
        (folder,) = self.path.glob("lib/python*/site-packages")
        return folder

    def build(self, target: Path, progress: Progress) -> None:
        uv = Path(sys.executable).with_name("uv")
        command = Command(RECIPES, os.environ)
        command.run([uv, "venv", "--quiet", "--python", sys.executable, target])
        progress.step = "fetching and unpacking"
        where: list[str | Path] = ["--python", target / "bin" / "python"]
        # What has a distribution of sources only is built by what the same lock pins.
        pinned: list[str | Path] = ["--require-hashes", "--build-constraints", self.lock, self.lock]
        command.run([uv, "pip", "sync", "--quiet", *where, *pinned])
