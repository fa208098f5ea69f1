"""What all commands of ours have in common. Only the standard library: `make doctor` runs before a setup."""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Final, NoReturn

#: The last resort of every message about a server that does not answer.
START_OR_POINT: Final = (
    'start the embedded stack and point this shell at it (make up, then eval "$(make env)"), '
    "or set {variable} to where it is"
)
#: What a shell shows of a program whose reader went away before it had said everything.
UNREAD: Final = 128 + signal.SIGPIPE
#: And of one that somebody has interrupted (Ctrl-C).
INTERRUPTED: Final = 128 + signal.SIGINT


def run(module: str) -> int:
    """Load a program and run it. Ctrl-C ends it at once, also while it loads, which takes a second, and while it
    works without a pause: asyncio would wait for one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    main = import_module(module).main
    signal.signal(signal.SIGINT, _interrupt)
    return int(main())


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def ends_quietly() -> Iterator[None]:
    """Around or on a `main`: when nobody reads on (`| head`), it ends without a word and with exit code 141, and
    when it is interrupted, with 130.

    Python ignores SIGPIPE, and that is right for connections: only a standard output that is gone ends us.
    """
    try:
        try:
            yield
        except SystemExit:  # `--help` ends so
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except BrokenPipeError:
        if not _is_unread():
            raise
        # The interpreter flushes once more at its end, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(UNREAD) from None
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def become(program: str | Path, arguments: Sequence[str]) -> NoReturn:
    """Go on as another program, which gets SIGPIPE as a shell would have given it."""
    sys.stdout.flush()
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.execvp(program, [Path(program).name, *arguments])


def _is_unread() -> bool:
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
