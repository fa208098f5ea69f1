"""What an operator's module carries beside its program: its kinds, and the rights of its account."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sluice_local import tools
from sluice_local.build import Command, GoBinary, Progress, recipe_hash
from sluice_local.kubectl import kubectl

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Manifests:
    """Of a module, what its operator needs in a cluster where it runs as a process of the stack, in JSON."""

    program: GoBinary
    module: str
    #: Folders that kustomize knows, or else ones full of manifests.
    folders: Sequence[str]
    takes: str = "seconds"

    @property
    def name(self) -> str:
        return f"{self.program.name}'s manifests"

    @property
    def path(self) -> Path:
        modules = sorted(Path(__file__).parent.glob("*.py"))
        return self.program.path.with_name(f"manifests-{recipe_hash(*modules)}.json")

    def build(self, target: Path, progress: Progress) -> None:
        progress.step = "fetching its module"
        texts = [_text(self.source() / folder) for folder in self.folders]
        target.write_text(json.dumps([each for text in texts for each in _wanted(text)]))

    def read(self) -> list[Manifest]:
        manifests: list[Manifest] = json.loads(self.path.read_text())
        return manifests

    def source(self) -> Path:
        """The folder of the module, which Go has fetched or fetches now."""
        command = Command(self.program.folder, tools.GO.environment())
        download: list[str | Path] = [tools.GO.find(), "mod", "download", "-json", self.module]
        return Path(json.loads("".join(command.lines(download)))["Dir"])


def _text(folder: Path) -> str:
    if (folder / "kustomization.yaml").exists():
        return kubectl("kustomize", folder)
    return "\n---\n".join(file.read_text() for file in sorted(folder.glob("*.yaml")))


def _wanted(text: str) -> Iterable[Manifest]:
    """Its own pod, and the way to it, is a process of the stack."""
    import yaml  # noqa: PLC0415 (some commands work before `make setup` brings it)

    manifests = yaml.safe_load_all(text)
    return (each for each in manifests if each and each["kind"] not in ("Deployment", "Service"))
