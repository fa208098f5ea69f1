"""Where things are kept: builds in the user's cache, stacks in the user's state, nothing in the checkout.

The recipes (go.mod, pom.xml, manifests) are read from the checkout, so the package is installed editable.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

RECIPES = Path(__file__).resolve().parent.parent
DEPLOY = RECIPES.parent


def cache() -> Path:
    return _xdg("XDG_CACHE_HOME", ".cache") / "local"


def stacks() -> Path:
    return _xdg("XDG_STATE_HOME", ".local/state") / "stacks"


def _xdg(variable: str, fallback: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / fallback) / "sluice"


def write_private(path: Path, text: str) -> None:
    """Replace a file that may hold secrets, so that no reader ever sees half of it."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(text)
    draft.replace(path)


@contextmanager
def locked(path: Path, *, if_taken: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold a lock that other threads and processes respect and that the kernel frees when we die."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with path.open("w") as file:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if_taken()
            flock(file, LOCK_EX)
        yield
