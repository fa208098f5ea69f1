"""What a stack remembers between commands: its ports and its secrets."""

import json
import random
import secrets
import socket
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TypedDict, cast

from sluice_local import paths
from sluice_local.errors import StackError


class _Memory(TypedDict):
    ports: dict[str, int]
    secrets: dict[str, str]


class State:
    """A stack's folder. Every call reads the file anew, so that several processes may work on one stack."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file = directory / "stack.json"

    def exclusive(self) -> AbstractContextManager[None]:
        """Held by whoever starts or stops processes of this stack."""
        return paths.locked(self.directory / "lock")

    def port(self, name: str) -> int:
        """The port of that name: the same one for as long as the stack exists."""
        if port := self._read()["ports"].get(name):
            return port
        with self._ports_lock():
            memory = self._read()
            taken = {port for other in self._all_memories() for port in other["ports"].values()}
            port = memory["ports"].setdefault(name, _free_port(taken))
            self._write(memory)
        return port

    def forget_if_taken(self, name: str) -> None:
        """Before a start: give a port up that a stranger has taken since."""
        with self._ports_lock():
            memory = self._read()
            port = memory["ports"].get(name)
            if port is not None and not _can_listen(port):
                del memory["ports"][name]
                self._write(memory)

    def secret(self, name: str) -> str:
        with self._ports_lock():
            memory = self._read()
            if name not in memory["secrets"]:
                memory["secrets"][name] = secrets.token_hex(24)
                self._write(memory)
            return memory["secrets"][name]

    def _ports_lock(self) -> AbstractContextManager[None]:
        return paths.locked(self.directory.parent / "ports.lock")

    def _all_memories(self) -> list[_Memory]:
        return [_load(file) for file in self.directory.parent.glob("*/stack.json")]

    def _read(self) -> _Memory:
        return _load(self._file)

    def _write(self, memory: _Memory) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        paths.write_private(self._file, json.dumps(memory, indent=2))


def _load(file: Path) -> _Memory:
    try:
        return cast(_Memory, json.loads(file.read_text()))
    except FileNotFoundError:
        return {"ports": {}, "secrets": {}}


def _free_port(taken: set[int]) -> int:
    """Below the range that the kernel gives to outgoing connections.

    A port from that range could be some client's own end by the time a killed server wants it back.
    """
    below = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    candidates = range(max(1024, below - 12_000), below)
    for port in random.sample(candidates, len(candidates)):
        if port not in taken and _can_listen(port):
            return port
    raise StackError(f"No free port on 127.0.0.1 between {candidates.start} and {candidates.stop}.")


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
