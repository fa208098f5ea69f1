"""Shows the defects of docs/defects.md: a patch brings a defect back, and the test that guards against it fails.

`python -m tests.defects` lists them, and with a name, or with `all`, shows them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from textwrap import indent, shorten
from typing import Final, NamedTuple

from sluice.programs import ends_quietly

ROOT: Final = Path(__file__).parents[2]
PATCHES: Final = Path("tests/defects")
#: What a copy is made of: code, tests, and what these read.
COPIED: Final = ("pyproject.toml", "services", "shared", "deploy", "tests", "docs")
PACKAGES: Final = ("shared", "services/*", "deploy/*")
#: So many lines of a failure are shown.
LINES_SHOWN: Final = 4


class Defect(NamedTuple):
    """A row of the tables."""

    name: str
    story: str
    tests: tuple[str, ...]  # the first fails where the defect is brought back
    has_patch: bool

    @property
    def patch(self) -> Path:
        return PATCHES / f"{self.name}.patch"


def known() -> list[Defect]:
    """All defects, as docs/defects.md tells of them: name, what happened, found by, mended, guarded by, shown by."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in (ROOT / "docs/defects.md").read_text().splitlines()
        if line.startswith("| `")
    ]
    return [
        Defect(name.strip("`"), story, tuple(map(_test_of, re.findall(r"`(.+?)`", guards))), shown == "patch")
        for name, story, _, _, guards, shown in rows
    ]


def _test_of(guard: str) -> str:
    """Of a scenario and of a history that was kept, the test that plays it."""
    if "::" in guard:
        return f"tests/{guard}"
    if (ROOT / f"tests/scenarios/{guard}.yaml").exists():
        return f"tests/simulation/test_scenarios.py::test_scenario_holds[{guard}]"
    return f"tests/property/test_regressions.py::test_what_once_failed_holds[{guard}]"


@contextmanager
def a_copy() -> Iterator[Path]:
    with TemporaryDirectory(prefix="sluice-defect-") as name:
        for part in COPIED:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
            copy(ROOT / part, Path(name) / part)
        yield Path(name)


def apply(patch: Path, *options: str, to: Path) -> str:
    """What git has against it, if it has anything."""
    command = ("git", "apply", "--unidiff-zero", *options, str(ROOT / patch))
    return subprocess.run(command, cwd=to, capture_output=True, text=True, check=False).stderr


def failure(copy: Path, first: str, *others: str) -> str:
    """How tests fail in a copy; nothing if they pass there."""
    packages = [str(path) for pattern in PACKAGES for path in copy.glob(pattern)]
    options = ("-q", "--tb=short", "--no-header", "--timeout=60", "-p", "no:cacheprovider")
    ended = subprocess.run(
        (sys.executable, "-m", "pytest", *options, first, *others),
        cwd=copy,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(packages),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "200",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == 0:
        return ""
    if ended.returncode != 1:  # no test failed: none could be run
        raise RuntimeError(f"{ended.stdout}{ended.stderr}")
    errors = re.findall(r"^E +(\S.+)$", ended.stdout, flags=re.MULTILINE)
    failed = re.findall(r"^FAILED (.+)$", ended.stdout, flags=re.MULTILINE)
    return "\n".join(shorten(line, 150) for line in (errors or failed)[:LINES_SHOWN])


def show(defects: list[Defect]) -> list[str]:
    """Bring each defect back in a copy of the code; the names of those that are not seen there."""
    unseen = []
    with a_copy() as copy:
        if wrong := failure(copy, *dict.fromkeys(defect.tests[0] for defect in defects)):
            raise RuntimeError(f"on today's code a test fails:\n{wrong}")
        for defect in defects:
            if wrong := apply(defect.patch, to=copy):
                raise RuntimeError(wrong)
            seen = failure(copy, defect.tests[0])
            apply(defect.patch, "--reverse", to=copy)
            print(f"{defect.name}: {defect.story}")
            print(
                f"  With {defect.patch} {defect.tests[0]} {'fails:' if seen else 'passes: it guards nothing.'}"
            )
            if seen:
                print(indent(seen, " " * 4))
                print("  On today's code it passes.")
            else:
                unseen.append(defect.name)
            print(flush=True)
    return unseen


@ends_quietly()
def main(names: list[str]) -> int:
    defects = {defect.name: defect for defect in known()}
    if not names:
        for defect in defects.values():
            print(f"{defect.name:38} {defect.story}")
        return 0
    if names != ["all"] and not defects.keys() >= set(names):
        unknown = ", ".join(name for name in names if name not in defects)
        print(f"no defect is named {unknown}: `make defect` lists all names", file=sys.stderr)
        return 2
    chosen = list(defects.values()) if names == ["all"] else [defects[name] for name in names]
    patched = [defect for defect in chosen if defect.has_patch]
    unpatched = [defect for defect in chosen if not defect.has_patch]
    unseen = show(patched) if patched else []
    for defect in unpatched:
        print(f"{defect.name}: {defect.story}\n  No patch shows it. Guarded by {', '.join(defect.tests)}.\n")
    print(f"{len(patched) - len(unseen)} of {len(patched)} patches are caught; {len(unpatched)} have none.")
    return 1 if unseen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
