"""Builds what the stack is made of, once, into the user's cache.

Each artefact is made in a scratch folder and then moved to its place, so what is there is whole: an
interrupted build goes on with the first artefact that is missing, and Go's own cache keeps the packages
compiled so far. An artefact's place carries a hash of its recipe, so a changed recipe is a new build and
never disturbs a stack that runs from the old one.
"""

import hashlib
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol

from sluice_local import paths, tools
from sluice_local.errors import StackError

Say = Callable[[str], None]


class Artefact(Protocol):
    """A file or folder that can be built."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path: ...

    def build(self, target: Path, say: Say) -> None: ...


def ensure(artefacts: Iterable[Artefact], say: Say) -> None:
    """Build what is missing, in the order given."""
    missing = [artefact for artefact in artefacts if not artefact.path.exists()]
    if missing:
        say(f"to be built, this once: {', '.join(artefact.name for artefact in missing)}")
    for artefact in missing:
        lock = paths.cache() / "build.lock"
        with paths.locked(lock, if_taken=lambda: say("waiting for another build to end …")):
            if not artefact.path.exists():
                _build(artefact, say)


def _build(artefact: Artefact, say: Say) -> None:
    say(f"building {artefact.name} …")
    started = time.monotonic()
    scratch = paths.cache() / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # left by a build that was interrupted
    scratch.mkdir(parents=True)
    # A new folder each time: a compiler that outlived its killed build must not write into this one's draft.
    draft = Path(mkdtemp(dir=scratch)) / artefact.path.name
    artefact.build(draft, say)
    artefact.path.parent.mkdir(parents=True, exist_ok=True)
    draft.rename(artefact.path)
    shutil.rmtree(scratch)
    say(f"built {artefact.name} in {time.monotonic() - started:.0f} s")


def recipe_hash(*files: Path) -> str:
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class GoBinary:
    """A program built from a Go module under `go/`, whose go.mod and go.sum pin all that goes into it."""

    name: str
    module: str
    package: str
    takes: str

    @property
    def path(self) -> Path:
        key = recipe_hash(self._folder / "go.mod", self._folder / "go.sum")
        return paths.cache() / f"{self.module}-{key}" / self.name

    @property
    def _folder(self) -> Path:
        return paths.RECIPES / "go" / self.module

    def build(self, target: Path, say: Say) -> None:
        go = tools.GO.find()
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath", "GOWORK": "off"}
        command = Command(self._folder, {**os.environ, **settings}, say)
        stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
        say(f"  {self.name}: fetching its modules and counting its packages")
        listed = command.output([go, "list", "-deps", "-f", stale, self.package])
        packages = len(listed.split())
        say(f"  {self.name}: {packages} packages to compile; all of them take {self.takes} on two cores")
        command.run(
            [go, "build", "-v", "-ldflags", self._linker_flags(), "-o", target, self.package],
            progress=lambda lines: f"{self.name}: {min(lines, packages)} of {packages} packages",
        )

    def _linker_flags(self) -> str:
        """Kubernetes reports v0.0.0 unless its version is linked in, and some clients then refuse it."""
        version = re.search(r"\n(?:require )?\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", self._go_mod())
        if not version:
            return "-s -w"
        values = {"gitVersion": version[1], "gitMajor": version[2], "gitMinor": version[3]}
        variables = (f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
        return " ".join(["-s -w", *variables])

    def _go_mod(self) -> str:
        return (self._folder / "go.mod").read_text()


@dataclass(frozen=True, slots=True)
class Command:
    """Runs a tool in a folder and tells how far it is."""

    folder: Path
    environment: dict[str, str]
    say: Say

    def output(self, argv: Sequence[str | Path]) -> str:
        run = subprocess.run(
            argv, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if run.returncode:
            raise _failure(argv, run.stderr.splitlines())
        return run.stdout

    def run(self, argv: Sequence[str | Path], *, progress: Callable[[int], str]) -> None:
        """Run it, saying every ten seconds what `progress` makes of the number of lines it has written."""
        started = said = time.monotonic()
        lines: list[str] = []
        with subprocess.Popen(
            argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            assert process.stdout
            for line in process.stdout:
                lines.append(line)
                now = time.monotonic()
                if now - said > 10:
                    said = now
                    self.say(f"  {progress(len(lines))}, {now - started:.0f} s")
        if process.returncode:
            raise _failure(argv, lines)


def _failure(argv: Sequence[str | Path], lines: Sequence[str]) -> StackError:
    words = " ".join(map(str, argv[:2]))
    return StackError(f"{words} failed:\n" + "\n".join(line.rstrip() for line in lines[-20:]))
