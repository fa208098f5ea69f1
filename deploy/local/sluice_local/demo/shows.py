"""How the demo is shown: as a picture that moves, or line by line where there is no terminal."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from sluice_local.demo.audit import Account
from sluice_local.demo.observation import Observation
from sluice_local.demo.screen import NOTHING_TO_SAY, Size, amount, granted, picture, story_line

_EVERY_S: Final = 3.0
_FOR_EVER_MS: Final = 2**62
#: A picture for the documentation is taken when all three tenants have something and want more.
_PICTURE_AFTER_S: Final = 2.0
_PICTURE_WIDTH: Final = 132
_PICTURE_SIZE: Final = Size.fitting(width=_PICTURE_WIDTH, height=100)
_FONT_FACES: Final = re.compile(r"@font-face\s*{[^}]*}\s*")


class Show(Protocol):
    def __call__(self, elapsed_s: float, title: str) -> None: ...


@contextmanager
def showing(
    console: Console, observation: Observation, account: Account, *, picture_file: Path | None
) -> Iterator[Show]:
    album = _Album(observation, account, picture_file)
    if not console.is_terminal or console.is_dumb_terminal:
        lines = _Lines(console, observation, account)

        def tell(elapsed_s: float, title: str) -> None:
            lines.show(elapsed_s, title)
            album.show(elapsed_s, title)

        yield tell
        lines.finish()
        return
    size = Size.fitting(width=console.width, height=console.height)
    with Live(console=console, auto_refresh=False) as live:

        def draw(elapsed_s: float, title: str) -> None:
            drawn = picture(observation, account, elapsed_s=elapsed_s, title=title, size=size)
            live.update(drawn, refresh=True)
            album.show(elapsed_s, title)

        yield draw


class _Lines:
    def __init__(self, console: Console, observation: Observation, account: Account) -> None:
        self._console = console
        self._observation = observation
        self._account = account
        self._due_s = 0.0
        self._title = ""

    def show(self, elapsed_s: float, title: str) -> None:
        if title != self._title:
            self._title = title
            self._console.print(f"[bold]{elapsed_s:5.1f} s  {title}[/bold]", soft_wrap=True)
        self._tell(int(time.time() * 1000))
        if elapsed_s < self._due_s:
            return
        self._due_s = elapsed_s + _EVERY_S
        seen = self._observation
        tenants = "; ".join(
            f"{tenant.name} {seen.phase(tenant)} {granted(seen.status(tenant))}, "
            f"share {self._account.reports.get(tenant.name, {}).get('dominantShare', '0.0000')}"
            for tenant in seen.cast.tenants
            if seen.phase(tenant) not in NOTHING_TO_SAY
        )
        capacity = seen.cast.capacity
        held = ", ".join(f"{amount(r, seen.held(r))} of {amount(r, capacity[r])}" for r in ("cpu", "memory"))
        self._console.print(f"{elapsed_s:5.1f} s  {held} held  |  {tenants or '-'}", soft_wrap=True)

    def finish(self) -> None:
        self._tell(_FOR_EVER_MS)

    def _tell(self, now_ms: int) -> None:
        for entry in self._account.story.settled(now_ms):
            self._console.print(Text("         "), story_line(entry), sep="", soft_wrap=True)


class _Album:
    """Keeps one picture, once."""

    def __init__(self, observation: Observation, account: Account, file: Path | None) -> None:
        self._observation = observation
        self._account = account
        self._file = file
        self._since_s: float | None = None

    def show(self, elapsed_s: float, title: str) -> None:
        all_wait = all(sums.waiting and sums.running for sums in self._observation.tenants.values())
        self._since_s = (self._since_s or elapsed_s) if all_wait else None
        if self._file is None or self._since_s is None or elapsed_s - self._since_s < _PICTURE_AFTER_S:
            return
        console = Console(record=True, width=_PICTURE_WIDTH, file=io.StringIO(), force_terminal=True)
        drawn = picture(
            self._observation, self._account, elapsed_s=elapsed_s, title=title, size=_PICTURE_SIZE
        )
        console.print(drawn)
        svg = console.export_svg(title="make demo")
        # Whoever opens the picture shall not be asked to fetch fonts: any that is monospaced will do.
        self._file.write_text(_FONT_FACES.sub("", svg))
        self._file = None
