"""Builds what the stack is made of, once, into the user's cache.

Each artefact is made in a scratch folder and then moved to its place, so what is there is whole: an
interrupted build goes on with the first artefact that is missing, and Go's own cache keeps the packages
compiled so far. An artefact's place carries a hash of its recipe, so a changed recipe is a new build and
never disturbs a stack that runs from the old one.
"""

import hashlib
import platform
import re
import shutil
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Protocol, Self

from sluice_local import paths, tools
from sluice_local.errors import StackError

Say = Callable[[str], None]


class Artefact(Protocol):
    """A file or folder that can be built."""

    @property
    def name(self) -> str: ...

    @property
    def takes(self) -> str:
        """How long the build takes on two quiet cores."""

    @property
    def path(self) -> Path: ...

    def build(self, target: Path, progress: "Progress") -> None: ...


class Progress:
    """Says every ten seconds what a build is at, also while its tools are silent."""

    def __init__(self, name: str, say: Say) -> None:
        self.step = "starting"
        self._name = name
        self._say = say
        self._started = time.monotonic()
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._ticker.join()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def _tick(self) -> None:
        while not self._ended.wait(10):
            self._say(f"  {self._name}: {self.step}, {self.seconds:.0f} s")


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
    say(f"building {artefact.name}, which takes {artefact.takes} on two cores …")
    scratch = paths.cache() / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)  # left by a build that was interrupted
    scratch.mkdir(parents=True)
    # A new folder each time: a compiler that outlived its killed build must not write into this one's draft.
    draft = Path(mkdtemp(dir=scratch)) / artefact.path.name
    with Progress(artefact.name, say) as progress:
        artefact.build(draft, progress)
    artefact.path.parent.mkdir(parents=True, exist_ok=True)
    draft.rename(artefact.path)
    shutil.rmtree(scratch)
    say(f"built {artefact.name} in {progress.seconds:.0f} s")


def recipe_hash(*files: Path) -> str:
    digest = hashlib.sha256(f"{platform.system()} {platform.machine()}".encode())
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class GoBinary:
    """A program built from a Go module of the recipes: its go.mod and go.sum pin all that goes into it."""

    name: str
    module: str
    package: str
    takes: str

    @property
    def path(self) -> Path:
        return paths.cache() / f"{self.module}-{recipe_hash(*self.sources)}" / self.name

    @property
    def sources(self) -> list[Path]:
        """All that it is built from."""
        return sorted(self.folder.iterdir())

    @property
    def folder(self) -> Path:
        return paths.RECIPES / "go" / self.module

    def build(self, target: Path, progress: Progress) -> None:
        go = tools.GO.find()
        settings = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -trimpath", "GOWORK": "off"}
        command = Command(self.folder, {**tools.GO.environment(), **settings})
        progress.step = "fetching its modules and counting its packages"
        stale = ["-deps", "-f", "{{if .Stale}}stale{{end}}"]
        packages = sum(line == "stale\n" for line in command.lines([go, "list", *stale, self.package]))
        options = ["-v", "-ldflags", self._linker_flags(), "-o", str(target)]
        compilation = command.lines([go, "build", *options, self.package])
        for compiled, _ in enumerate(compilation, start=1):
            progress.step = f"{min(compiled, packages)} of {packages} packages compiled"

    def _linker_flags(self) -> str:
        """Kubernetes reports v0.0.0 unless its version is linked in, and some clients then refuse it."""
        version = re.search(r"\n(?:require )?\s*k8s\.io/kubernetes (v(\d+)\.(\d+)\.\S+)", self._go_mod())
        if not version:
            return "-s -w"
        values = {"gitVersion": version[1], "gitMajor": version[2], "gitMinor": version[3]}
        variables = (f"-X k8s.io/component-base/version.{name}={value}" for name, value in values.items())
        return " ".join(["-s -w", *variables])

    def _go_mod(self) -> str:
        return (self.folder / "go.mod").read_text()


@dataclass(frozen=True, slots=True)
class Command:
    """Runs tools in a folder and an environment. A tool's failure is ours, with its last lines."""

    folder: Path
    environment: Mapping[str, str]

    def run(self, argv: Sequence[str | Path]) -> None:
        for _ in self.lines(argv):
            pass

    def lines(self, argv: Sequence[str | Path]) -> Iterator[str]:
        """What the tool writes, as it writes it."""
        last: deque[str] = deque(maxlen=20)
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
                last.append(line)
                yield line
        if process.returncode:
            raise StackError(f"{' '.join(map(str, argv[:2]))} failed:\n{''.join(last)}")
