"""A Redis that has on disk what it has acknowledged: Sluice's truth is in it."""

import socket
from collections.abc import Sequence
from pathlib import Path

from sluice_local import paths, tools
from sluice_local.component import Component
from sluice_local.state import State


class Redis(Component):
    def __init__(self, state: State, name: str = "redis") -> None:
        super().__init__(name, state)
        self._settings = self.directory / "redis.conf"

    @property
    def password(self) -> str:
        return self.state.secret("redis")

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{self.address}/0"

    def prepare(self) -> None:
        data = self.directory / "data"
        data.mkdir(exist_ok=True)
        settings = {
            "bind": "127.0.0.1",
            "port": self.port,
            "requirepass": self.password,
            "dir": f'"{data}"',
            "appendonly": "yes",
            "appendfsync": "always",
            "save": '""',
        }
        paths.write_private(self._settings, "".join(f"{key} {value}\n" for key, value in settings.items()))

    def argv(self) -> Sequence[str | Path]:
        return [tools.REDIS.find(), self._settings]

    def ready(self) -> bool:
        """A Redis that still loads its file answers PING with an error."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
            connection.settimeout(2)
            connection.sendall(f"AUTH {self.password}\r\nPING\r\n".encode())
            answers = connection.makefile("rb")
            return [answers.readline(), answers.readline()] == [b"+OK\r\n", b"+PONG\r\n"]
