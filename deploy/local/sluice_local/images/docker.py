"""Images of folders that have a Dockerfile, by whatever Docker engine answers."""

import os
import re
import subprocess
from pathlib import Path

from sluice_local.build import Command, Say
from sluice_local.errors import StackError
from sluice_local.images import archive


def name_of(folder: Path) -> str:
    name = folder.resolve().name.lower()
    if not re.fullmatch(r"[a-z0-9]+([._-][a-z0-9]+)*", name):
        raise StackError(f"{name!r} can't name an image: use letters, digits, dots and dashes.")
    return name


def build(folder: Path, target: Path, say: Say) -> None:
    if not engine_answers():
        raise StackError(
            f"{folder} has a Dockerfile, and no Docker engine answers. Start one, such as by "
            "deploy/compose/docker-engine.sh up"
        )
    command, reference = Command(folder, os.environ), archive.reference(name_of(folder))
    say(f"Docker builds {folder} …")
    command.run(["docker", "build", "--tag", reference, "."])
    draft = target.with_suffix(".draft")
    command.run(["docker", "save", "--output", draft, reference])
    draft.rename(target)


def engine_answers() -> bool:
    try:
        return subprocess.run(["docker", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
