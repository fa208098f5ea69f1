"""What all servers of a stack have in common: files to prepare, a command, an address, a way to be ready."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from sluice_local.build import Artefact, Say
from sluice_local.errors import StackError
from sluice_local.process import Daemon
from sluice_local.state import State


class Component(ABC):
    ready_within_s = 120.0
    grace_s = 20.0
    #: Of one that has no port: what stands in the place of its address.
    reached_by = ""

    def __init__(self, name: str, state: State) -> None:
        self.name = name
        self.state = state
        self.directory = state.directory / name
        self.daemon = Daemon(self.directory)

    @property
    def address(self) -> str:
        return self.reached_by or f"127.0.0.1:{self.port}"

    @property
    def port(self) -> int:
        return self.state.port(self.name)

    @property
    def port_names(self) -> Sequence[str]:
        return [] if self.reached_by else [self.name]

    def artefacts(self) -> Sequence[Artefact]:
        """What must have been built before it can start."""
        return []

    def prepare(self) -> None:  # noqa: B027 (not every server reads files)
        """Write the files that the process reads."""

    @abstractmethod
    def argv(self) -> Sequence[str | Path]: ...

    def environment(self) -> Mapping[str, str]:
        return {}

    @abstractmethod
    def ready(self) -> bool:
        """Whether it does its work now. An OSError or a ValueError means not yet."""

    def start(self) -> float | None:
        """Start it unless it runs, and wait until it is ready. Returns the seconds that a start took."""
        started = None if self.daemon.pid() else time.monotonic()
        if started:
            self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            for name in self.port_names:
                self.state.forget_if_taken(name)
            self.prepare()
            self._launch()
        self._wait_until_ready()
        return time.monotonic() - started if started else None

    def start_aloud(self, say: Say) -> None:
        seconds = self.start()
        if seconds is not None:
            say(f"{self.name} is ready after {seconds:.1f} s at {self.address}")

    def _launch(self) -> None:
        argv = [str(word) for word in self.argv()]
        try:
            self.daemon.start(argv, {**os.environ, **self.environment()})
        except FileNotFoundError as missing:
            raise StackError(f"{self.name} can't start: there is no {argv[0]}.") from missing

    def is_ready(self) -> bool:
        if self.daemon.pid() is None:
            return False
        try:
            return self.ready()
        except (OSError, ValueError):
            return False

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + self.ready_within_s
        while not self.is_ready():
            if self.daemon.pid() is None:
                raise StackError(f"{self.name} ended while it started.{self._story()}")
            if time.monotonic() > deadline:
                raise StackError(f"{self.name} isn't ready after {self.ready_within_s:.0f} s.{self._story()}")
            time.sleep(0.05)

    def _story(self) -> str:
        return f" Its log, {self.daemon.log}, ends with:\n{self.daemon.last_words()}"
