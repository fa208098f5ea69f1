"""How the demo is shown: as a picture that moves, or line by line where there is no terminal."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live

from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.scenario import CAPACITY, PODS, TENANTS
from sluice_local.demo.screen import Size, amount, picture

_EVERY_S: Final = 2.0
#: A picture for the documentation is taken when all three tenants have waited for a while.
_PICTURE_AFTER_S: Final = 20.0
_PICTURE_WIDTH: Final = 132
_PICTURE_SIZE: Final = Size.fitting(width=_PICTURE_WIDTH, height=100)
_FONT_FACES: Final = re.compile(r"@font-face\s*{[^}]*}\s*")


class Show(Protocol):
    def __call__(self, elapsed_s: float, created: int) -> None: ...


@contextmanager
def showing(
    console: Console, observation: Observation, account: Account, *, picture_file: Path | None
) -> Iterator[Show]:
    album = _Album(observation, account, picture_file)
    if not console.is_terminal or console.is_dumb_terminal:
        lines = _Lines(console, observation, account)

        def tell(elapsed_s: float, created: int) -> None:
            lines.show(elapsed_s, created)
            album.show(elapsed_s, created)

        yield tell
        return
    size = Size.fitting(width=console.width, height=console.height)
    with Live(console=console, auto_refresh=False) as live:

        def draw(elapsed_s: float, created: int) -> None:
            drawn = picture(observation, account, elapsed_s=elapsed_s, created=created, size=size)
            live.update(drawn, refresh=True)
            album.show(elapsed_s, created)

        yield draw


class _Lines:
    def __init__(self, console: Console, observation: Observation, account: Account) -> None:
        self._console = console
        self._observation = observation
        self._account = account
        self._due_s = 0.0

    def show(self, elapsed_s: float, created: int) -> None:
        if elapsed_s < self._due_s:
            return
        self._due_s = elapsed_s + _EVERY_S
        seen = self._observation
        queues = "; ".join(
            f"{tenant.name} {sums.waiting} waiting {sums.running} running {sums.finished} finished, "
            f"share {self._account.reports.get(tenant.name, {}).get('dominantShare', '0.0000')}"
            for tenant in TENANTS
            for sums in [seen.tenants[tenant.name]]
        )
        held = ", ".join(amount(r, seen.held(r)) for r in ("cpu", "memory"))
        of = ", ".join(amount(r, CAPACITY[r]) for r in ("cpu", "memory"))
        self._console.print(
            f"{elapsed_s:5.1f} s  {created}/{PODS} created, {self._account.opened} gates opened, "
            f"{seen.finished} finished, {held} held of {of}  |  {queues}",
            soft_wrap=True,
        )


class _Album:
    """Keeps one picture, once."""

    def __init__(self, observation: Observation, account: Account, file: Path | None) -> None:
        self._observation = observation
        self._account = account
        self._file = file

    def show(self, elapsed_s: float, created: int) -> None:
        if self._file is None or elapsed_s < _PICTURE_AFTER_S:
            return
        console = Console(record=True, width=_PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
        drawn = picture(
            self._observation, self._account, elapsed_s=elapsed_s, created=created, size=_PICTURE_SIZE
        )
        console.print(drawn)
        svg = console.export_svg(title="make demo")
        # Whoever opens the picture shall not be asked to fetch fonts: any that is monospaced will do.
        self._file.write_text(_FONT_FACES.sub("", svg))
        self._file = None
