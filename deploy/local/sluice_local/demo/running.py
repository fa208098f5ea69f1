"""What runs while a demo is shown, and how it is shown."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Final, TypeAlias

from rich.console import Console
from sluice.programs import INTERRUPTED

from sluice_local.demo.api import Api
from sluice_local.demo.audit import Account, Audit
from sluice_local.demo.observation import Observation, Observer
from sluice_local.demo.play import Play
from sluice_local.demo.scenario import Cast
from sluice_local.demo.shows import Show
from sluice_local.errors import StackError

_FRAMES_PER_S: Final = 4
#: On an idle machine it takes a minute or two; whatever slows it down, it ends.
_WITHIN_S: Final = 360.0

_FILE_WIDTH: Final = 132

Plays: TypeAlias = Callable[[Api, Observation, Account, threading.Lock], Play]


class Demo:
    """Everything that is known while it runs. `lock` is held by whoever reads or writes what is below it."""

    def __init__(self, api: Api, environment: dict[str, str], cast: Cast, plays: Plays) -> None:
        self.lock = threading.Lock()
        self.observation = Observation(cast)
        self.account = Account(cast)
        self.audit = Audit(environment, self.account, self.lock)
        self.play = plays(api, self.observation, self.account, self.lock)
        self._observers = [Observer(api, self.observation, self.lock, pods=pods) for pods in (True, False)]

        self.audit.start()

    def prepare(self) -> None:
        self.audit.wait_until_reading(30)
        self.audit.heed()

    def run(self, show: Show) -> float:
        """Returns the seconds it took until the play was over, or was given up."""
        for observer in self._observers:
            observer.start()
        self.play.start()
        began = time.monotonic()
        while (elapsed_s := time.monotonic() - began) < _WITHIN_S:
            is_over = self.play.is_over  # asked first: the last picture is drawn after all that happened
            with self.lock:
                show(elapsed_s, self.play.title)
            self._raise_errors()
            if is_over:
                break
            time.sleep(1 / _FRAMES_PER_S)
        return elapsed_s

    def _raise_errors(self) -> None:
        errors = {each.name: each.error for each in self._observers} | {self.play.name: self.play.error}
        for name, error in errors.items():
            if error is not None:
                raise StackError(f"The demo's {name} failed: {error}") from error
        if complaint := self.audit.complaint():
            raise StackError(f"`sluice audit tail` ended: {complaint}")


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Left to `main`: rich would exit with a code of its own."""
        raise BrokenPipeError


def open_console() -> Console:
    console = _Console(highlight=False)
    if not console.is_terminal:
        console.width = _FILE_WIDTH
    return console


def say(text: str) -> None:
    print(f"» {text}", file=sys.stderr, flush=True)


def exit_code(name: str, run: Callable[[], int], *, stopped: str) -> int:
    """How a demo ends: as `run` says, with what is wrong, or by Ctrl-C, of which it is told what that leaves behind."""
    try:
        return run()
    except StackError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"\n{stopped}", file=sys.stderr)
        return INTERRUPTED
