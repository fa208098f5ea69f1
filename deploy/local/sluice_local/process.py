"""Long-lived processes: start them, know them again, end exactly them."""

import json
import os
import select
import signal
import subprocess
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sluice_local.paths import write_private

# Keeps children that this process started, so that they can be reaped when they end.
_children: dict[int, subprocess.Popen[bytes]] = {}


class Daemon:
    """A process that outlives the command that started it. Its folder holds its record, log and data."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.log = directory / "log"
        self._record = directory / "process.json"

    def start(self, argv: Sequence[str], environment: Mapping[str, str]) -> None:
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                argv,
                cwd=self.directory,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C meant for the starting command is not meant for it
                umask=0o077,
            )
        _children[child.pid] = child
        write_private(self._record, json.dumps({"pid": child.pid, "born": _born(child.pid)}))

    def pid(self) -> int | None:
        """The process id, if it still belongs to the process that was started here."""
        try:
            record = json.loads(self._record.read_text())
        except FileNotFoundError:
            return None
        pid = int(record["pid"])
        if pid in _children:
            _children[pid].poll()
        born = _born(pid)
        return pid if born is not None and born == record["born"] else None

    def argv(self) -> list[str]:
        """What it was started with, as long as it runs."""
        pid = self.pid()
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0") if pid else []

    def stop(self, *, grace_s: float) -> None:
        """Ask it to end; after the grace period, end it."""
        if not self._signal(signal.SIGTERM, wait_s=grace_s):
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._signal(signal.SIGKILL, wait_s=30)

    def forget(self) -> None:
        """Of one that has ended and is not expected back, only the log stays."""
        self._record.unlink(missing_ok=True)

    def _signal(self, number: signal.Signals, *, wait_s: float) -> bool:
        """Send a signal and wait for the end. True if nothing runs any more."""
        pid = self.pid()
        if pid is None:
            return True
        ended = send(number, pid, is_it=lambda: self.pid() is not None, wait_s=wait_s)
        if ended and (child := _children.pop(pid, None)):
            child.wait()
        return ended

    def memory_bytes(self) -> int:
        pid = self.pid()
        if pid is None:
            return 0
        resident_pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return resident_pages * os.sysconf("SC_PAGE_SIZE")

    def last_words(self, lines: int = 15) -> str:
        if not self.log.exists():
            return ""
        with self.log.open(errors="replace") as file:
            return "".join(deque(file, maxlen=lines))


def send(number: signal.Signals, pid: int, *, is_it: Callable[[], bool], wait_s: float) -> bool:
    """Send a signal to a process if it is the one that is meant, and wait for its end. True if that came."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        # The handle pins the process; only now does the check hold until the signal.
        if not is_it():
            return True
        signal.pidfd_send_signal(handle, number)
        return bool(select.select([handle], [], [], wait_s)[0])
    finally:
        os.close(handle)


def _born(pid: int) -> int | None:
    """When a process started, in ticks since boot: with the pid, its identity. None once it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, *fields = stat[stat.rindex(")") + 2 :].split()
    # Its first thread may be gone while others still hold its ports.
    threads = int(fields[16])
    return None if state in "ZX" and threads < 2 else int(fields[18])
